"""Integers among weights and initial values, which are exact or refused; missing nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, FormatError, GraphError
from tests.programs import DISTANCES


@pytest.mark.parametrize("values", [[2**53 + 1, 0.5], [2**64, 1], [0.5, 10**400], [2**63 + 1, -1]])
def test_integers_among_weights_are_not_rounded(values: list[Any]) -> None:
    graph = networkx.Graph()
    graph.add_weighted_edges_from([("a", "b", values[0]), ("b", "c", values[1])])
    with pytest.raises(GraphError, match=r"edge \('\w', '\w'\) has the weight .* no dtype holds exactly"):
        gp.Graph.from_networkx(graph)
    with pytest.raises(GraphError, match=r"the weight of edge \d is .* which no dtype holds exactly beside the other"):
        gp.Graph.from_edgelist([0, 1], [1, 2], values)


@pytest.mark.parametrize(
    ("values", "dtype"), [([2**63 + 1, 1], "uint64"), ([2**53, 0.5], "float64"), ([2**63 - 1, -1], "int64")]
)
def test_integers_among_weights_are_kept(values: list[Any], dtype: str) -> None:
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", values[0]), ("b", "c", values[1])])
    for built in (gp.Graph.from_networkx(graph), gp.Graph.from_edgelist([0, 1], [1, 2], values, directed=True)):
        assert built.weights is not None
        assert (built.weights.dtype, built.weights.tolist()) == (np.dtype(dtype), values)


def test_integers_of_parquet_are_not_rounded(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"source": [0], "target": [1], "weight": [2**53 + 1]}), path)
    with pytest.raises(FormatError, match="edge 0: the weight 9007199254740993 does not fit float64 exactly"):
        gp.read_graph(path, weight_dtype="float64")
    weights = gp.read_graph(path).weights
    assert weights is not None
    assert weights.tolist() == [2**53 + 1] * 2


@pytest.mark.parametrize("node", [float("nan"), (1, float("nan"))])
def test_a_missing_node_of_networkx_is_refused(node: Any) -> None:
    graph = networkx.Graph([(node, 1)])
    with pytest.raises(GraphError, match=r"the graph has the node .*nan.*, a missing value: remove it, or relabel it"):
        gp.Graph.from_networkx(graph)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            np.array([1, 2**53 + 1, 3]),
            r"initial is 9,007,199,254,740,993 at vertex 1, which float64 cannot hold exactly",
        ),
        ([0.5, 2**53 + 1, 3], r"initial is, at vertex 1, 9,007,199,254,740,993, which no dtype holds exactly"),
    ],
)
def test_initial_integers_are_not_rounded(values: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gp.run(gp.Graph.from_edgelist([0, 1], [1, 2], [1, 2]), DISTANCES, initial=values, device="python")


def test_long_doubles_are_not_rounded() -> None:
    weights = np.array([0.5, 2**53 + 1], np.longdouble)
    with pytest.raises(GraphError, match=rf"the weight of edge 1, {2**53 + 1}\.0, is no float64"):
        gp.Graph.from_edgelist([0, 1], [1, 2], weights)
    assert gp.Graph.from_edgelist([0], [1], weights[:1], directed=True).weights == [0.5]
