"""Tests that nothing a user holds can change the arrays of a graph."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError

Array = np.ndarray[Any, Any]


def parts() -> tuple[Array, Array, Array, Array]:
    """Return a path of three vertices as arrays that a graph could use without conversion."""
    return (
        np.array([0, 1, 3, 4]),
        np.array([1, 0, 2, 1], np.uint32),
        np.array([5.0, 5.0, 6.0, 6.0]),
        np.array([30, 10, 20]),
    )


def arrays_of(graph: gp.Graph) -> list[Array]:
    found: list[Array | None] = [graph.indptr, graph.indices, graph.weights, graph.ids]
    return [array for array in found if array is not None]


def view_of(array: Array, kind: str) -> Array:
    """Return a view of an array through which it can be written, or not."""
    if kind in ("read-only memory", "read-only buffer"):
        memory = memoryview(array).toreadonly()  # type: ignore[arg-type]
        return np.asarray(memory) if kind == "read-only memory" else np.frombuffer(memory, array.dtype)
    view = array.view()
    view.flags.writeable = kind == "writable"
    return view


@pytest.mark.parametrize("kind", ["writable", "read-only", "read-only memory", "read-only buffer"])
def test_writing_to_the_arrays_of_from_csr_does_not_change_the_graph(kind: str) -> None:
    given = parts()
    views = [view_of(array, kind) for array in given]
    graph = gp.Graph.from_csr(*views[:3], ids=views[3])
    for array in given:
        array[:] = 1_000_000
    assert [array.tolist() for array in arrays_of(graph)] == [array.tolist() for array in parts()]
    assert gp.connected_components(graph).to_numpy().tolist() == [0, 0, 0]


def test_weights_and_ids_of_an_edge_list_are_copied() -> None:
    weights, names = np.array([1.0, 2.0]), np.array(["a", "b"], object)
    graph = gp.Graph.from_edgelist(names, names[::-1], weights)
    weights[:], names[:] = 9, "c"
    assert graph.weights is not None
    assert (graph.weights.tolist(), graph.to_ids(np.arange(2)).tolist()) == ([1, 2, 1, 2], ["a", "b"])


def test_copy_false_shares_suitable_arrays() -> None:
    given = parts()
    graph = gp.Graph.from_csr(*given[:3], ids=given[3], copy=False)
    assert all(np.shares_memory(one, other) for one, other in zip(arrays_of(graph), given, strict=True))
    assert all(array.flags.writeable for array in given)
    with pytest.raises(ArgumentTypeError, match="copy must be True or False, not None"):
        gp.Graph.from_csr(*given[:3], copy=cast(bool, None))


def test_arrays_that_cannot_be_written_are_shared(tmp_path: Path) -> None:
    first = gp.Graph.from_csr(*parts()[:3], ids=parts()[3])
    second = gp.Graph.from_csr(*first.to_csr(), ids=first.ids)
    assert all(np.shares_memory(one, other) for one, other in zip(arrays_of(first), arrays_of(second), strict=True))
    indices = parts()[1]
    indices.tofile(tmp_path / "indices")
    mapped = np.memmap(tmp_path / "indices", np.uint32, "r")
    assert np.shares_memory(gp.Graph.from_csr(parts()[0], mapped).indices, mapped)
    constant = np.frombuffer(indices.tobytes(), np.uint32)
    assert np.shares_memory(gp.Graph.from_csr(parts()[0], constant).indices, constant)
    copied = np.memmap(tmp_path / "indices", np.uint32, "c")
    assert not np.shares_memory(gp.Graph.from_csr(parts()[0], copied).indices, copied)


@pytest.mark.parametrize("restore", [lambda graph: graph, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_arrays_of_a_graph_cannot_be_made_writable(restore: Any) -> None:
    graph = restore(gp.Graph.from_edgelist(["a", "b"], ["b", "c"], [2.0, 3.0], directed=True))
    assert gp.connected_components(graph).to_dict() == {"a": "a", "b": "a", "c": "a"}
    facts = [graph.out_degrees, graph.in_degrees, *graph.csc]
    for array in [*arrays_of(graph), *facts]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.flags.writeable = True
        assert not isinstance(array.base, np.ndarray)
