"""Columns of data frames and Arrow tables of edges, and attributes of NetworkX graphs, as ids and weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FormatError, GraphError
from tests.graphs import edge_lists
from tests.packages import needs

pandas = needs("pandas", "test")


def table_of(kind: str, columns: dict[Any, Any]) -> tuple[Callable[..., gp.Graph], Any]:
    if kind == "pandas":
        return gp.Graph.from_pandas, pandas.DataFrame(columns)
    return gp.Graph.from_arrow, pyarrow.table(columns)


def read_file(columns: dict[Any, Any], path: Path, **options: Any) -> gp.Graph:
    """Write the columns to a file and read it."""
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return gp.read_graph(path, **options)
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (columns, *rows)))
    return gp.read_graph(path, header=True, **options)


KINDS = pytest.mark.parametrize("kind", ["pandas", "arrow"])
COLUMNS: list[tuple[str, dict[str, Any], dict[str, Any], tuple[int, int], float | None]] = [
    ("first two", {"a": [0], "b": [1], "c": [7.0]}, {}, (0, 1), None),
    ("weight", {"a": [0], "b": [1], "weight": [7.0]}, {}, (0, 1), 7.0),
    ("weight first", {"weight": [7.0], "a": [0], "b": [1]}, {}, (0, 1), 7.0),
    ("value", {"a": [0], "b": [1], "value": [7.0]}, {}, (0, 1), 7.0),
    ("weight before value", {"a": [0], "b": [1], "value": [1.0], "weight": [7.0]}, {}, (0, 1), 7.0),
    ("weight between", {"a": [0], "Weight": [7.0], "b": [1]}, {}, (0, 1), 7.0),
    ("no weight", {"a": [0], "b": [1], "weight": [7.0]}, {"weight": None}, (0, 1), None),
    ("no weight first", {"weight": [7.0], "a": [0], "b": [1]}, {"weight": None}, (0, 1), None),
    ("two columns and no weight", {"id": [0], "value": [1]}, {"weight": None}, (0, 1), None),
    ("another weight first", {"c": [5.0], "a": [0], "b": [1]}, {"weight": "c"}, (0, 1), 5.0),
    ("another weight", {"a": [0], "b": [1], "weight": [7.0], "c": [5.0]}, {"weight": "c"}, (0, 1), 5.0),
    ("source and target", {"x": [5], "target": [1], "source": [0]}, {}, (0, 1), None),
    ("src and dst", {"x": [5], "dst": [1], "src": [0]}, {}, (0, 1), None),
    ("from and to", {"to": [1], "from": [0], "weight": [7.0]}, {}, (0, 1), 7.0),
    ("capitals and spaces", {"x": [5], " Target": [1], "SOURCE ": [0], "Weight": [7.0]}, {}, (0, 1), 7.0),
    ("numbers as names", {"0": [0], "1": [1], "2": [5]}, {}, (0, 1), None),
    ("given", {"x": [0], "y": [5], "z": [1]}, {"source": "z", "target": "x"}, (1, 0), None),
    ("weight as source", {"weight": [0], "b": [1]}, {"source": "weight", "target": "b"}, (0, 1), None),
]


@KINDS
@pytest.mark.parametrize(
    ("columns", "options", "ends", "weight"), [row[1:] for row in COLUMNS], ids=[c[0] for c in COLUMNS]
)
def test_columns_of_tables(
    kind: str, columns: dict[str, Any], options: dict[str, Any], ends: tuple[int, int], weight: float | None
) -> None:
    constructor, table = table_of(kind, columns)
    graph = constructor(table, directed=True, num_vertices=6, **options)
    src, dst, weights = graph.to_edgelist()
    assert (src.tolist(), dst.tolist()) == ([ends[0]], [ends[1]])
    assert (None if weights is None else weights.tolist()) == (None if weight is None else [weight])


IN_FILES = [
    row
    for row in COLUMNS
    # A third column of text holds weights whatever its name.
    if "source" not in row[2] and row[0] not in ("first two", "numbers as names")
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("columns", "options", "ends", "weight"), [row[1:] for row in IN_FILES], ids=[c[0] for c in IN_FILES]
)
def test_files_have_the_same_columns(
    suffix: str, columns: dict[str, Any], options: dict[str, Any], ends: Any, weight: float | None, tmp_path: Path
) -> None:
    graph = read_file(columns, tmp_path / f"edges{suffix}", directed=True, num_vertices=6, **options)
    src, dst, weights = graph.to_edgelist()
    assert (src.tolist(), dst.tolist()) == ([ends[0]], [ends[1]])
    assert (None if weights is None else weights.tolist()) == (None if weight is None else [weight])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_with_a_weight_and_one_other_column_is_rejected(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="edges need a source and a target besides the weight: pass columns="):
        read_file({"a": [0], "weight": [1]}, tmp_path / f"edges{suffix}")


WRONG: list[tuple[str, dict[str, Any], dict[str, Any], type[Exception], str]] = [
    ("no such weight", {"a": [0], "b": [1]}, {"weight": "cost"}, ArgumentError, "weight='cost': no such column; avail"),
    (
        "no such source",
        {"a": [0], "b": [1]},
        {"source": "x", "target": "b"},
        ArgumentError,
        "source='x': no such column",
    ),
    ("one column", {"a": [0]}, {}, ArgumentError, "edges need a source and a target .*; available columns: 'a'"),
    (
        "a weight of one column",
        {"a": [0], "weight": [1]},
        {},
        ArgumentError,
        "edges need a source and a target besides",
    ),
    ("no columns", {}, {}, ArgumentError, "edges need a source and a target .*; available columns: none"),
    ("null id", {"a": ["x", None], "b": ["y", "z"]}, {}, GraphError, "column 'a' is null in row 1: drop the row"),
    ("null weight", {"a": [0], "b": [1], "weight": [None]}, {}, GraphError, "column 'weight' is null in row 0"),
    ("NaN", {"a": [0], "b": [1], "weight": [np.nan]}, {}, GraphError, "NaN|column 'weight' is null in row 0"),
    (
        "weights of strings",
        {"a": [0], "b": [1], "value": ["x"]},
        {},
        ArgumentTypeError,
        "column 'value' has weights of dtype object, not numbers: pass weight=None",
    ),
]


@KINDS
@pytest.mark.parametrize(
    ("columns", "options", "error", "message"), [row[1:] for row in WRONG], ids=[c[0] for c in WRONG]
)
def test_wrong_columns_are_named(
    kind: str, columns: dict[str, Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    constructor, table = table_of(kind, columns)
    with pytest.raises(error, match=message):
        constructor(table, **options)


def test_names_of_columns_need_not_be_strings() -> None:
    frame = pandas.DataFrame({0: ["a"], 1: ["b"], (2, 3): [7.0]})
    graph = gp.Graph.from_pandas(frame, weight=(2, 3))  # type: ignore[arg-type]
    assert graph.to_arrow().to_pydict() == {"source": ["a"], "target": ["b"], "weight": [7.0]}


def test_repeated_names_of_columns_are_refused() -> None:
    frame = pandas.DataFrame([[0, 1, 2]], columns=["a", "a", "b"])
    with pytest.raises(ArgumentError, match="source='a': 2 columns have this name: rename them"):
        gp.Graph.from_pandas(frame)
    table = pyarrow.table([[0], [1], [2]], names=["a", "b", "b"])
    with pytest.raises(ArgumentError, match="target='b': 2 columns have this name"):
        gp.Graph.from_arrow(table)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "Int64", "UInt16", "int64[pyarrow]", "category"])
def test_integers_of_any_pandas_dtype_are_ids_in_ascending_order(dtype: str) -> None:
    frame = pandas.DataFrame({"a": [9, 3], "b": [3, 6]}).astype(dtype)
    graph = gp.Graph.from_pandas(frame)
    assert graph.ids is not None
    assert graph.ids.tolist() == [3, 6, 9]
    assert graph.has_edge(9, 3)


@pytest.mark.parametrize("dtype", ["object", "str", "string[pyarrow]", "category"])
def test_strings_of_any_pandas_dtype_are_ids(dtype: str) -> None:
    frame = pandas.DataFrame({"a": ["x", "y"], "b": ["y", "z"]}).astype(dtype)
    assert gp.connected_components(gp.Graph.from_pandas(frame)).to_dict() == {"x": "x", "y": "x", "z": "x"}


@pytest.mark.parametrize("dtype", ["float32", "Float64", "float64[pyarrow]", "Int32"])
def test_numbers_of_any_pandas_dtype_are_weights(dtype: str) -> None:
    frame = pandas.DataFrame({"a": [0], "b": [1], "weight": [2]}).astype({"weight": dtype})
    weights = gp.Graph.from_pandas(frame).weights
    assert weights is not None
    assert weights.tolist() == [2, 2]


def test_any_table_of_the_pycapsule_interface_is_taken() -> None:
    graph = gp.Graph.from_edgelist(["a", "b"], ["b", "c"], [1.5, 2.5])
    for table in (graph, graph.to_pandas(), graph.to_arrow().to_batches()[0]):
        again = gp.Graph.from_arrow(table)
        assert again.to_arrow() == graph.to_arrow()


def test_tables_name_source_target_and_weight() -> None:
    graph = gp.Graph.from_edgelist([0], [1], [2.5])
    assert graph.to_arrow().column_names == list(graph.to_pandas().columns) == ["source", "target", "weight"]
    assert gp.Graph.from_edgelist([0], [1]).to_arrow().column_names == ["source", "target"]


# Attributes of NetworkX graphs


def test_a_misspelt_weight_attribute_is_an_error() -> None:
    graph = networkx.Graph()
    graph.add_edge("a", "b", cost=3)
    weights = gp.Graph.from_networkx(graph, weight="cost").weights
    assert weights is not None
    assert weights.tolist() == [3, 3]
    assert gp.Graph.from_networkx(graph).weights is None
    with pytest.raises(GraphError, match="no edge has the attribute 'price': pass the name of another one"):
        gp.Graph.from_networkx(graph, weight="price")
    assert gp.Graph.from_networkx(networkx.empty_graph(2), weight="price").weights is None


def test_a_weight_that_is_no_number_is_named() -> None:
    graph = networkx.Graph()
    graph.add_weighted_edges_from([("a", "b", 1.0), ("b", "c", "far")])
    with pytest.raises(ArgumentTypeError, match=r"edge \('b', 'c'\) has the weight 'far', which is not a number"):
        gp.connected_components(graph)
    graph["b"]["c"]["weight"] = float("nan")
    with pytest.raises(GraphError, match=r"edge \('b', 'c'\) has the weight NaN: use a number or drop the edge"):
        gp.Graph.from_networkx(graph)


@given(graph=edge_lists(max_vertices=12), directed=st.booleans(), multiple=st.booleans(), data=st.data())
def test_networkx_graphs_of_every_kind_keep_edges_and_weights(
    graph: Any, directed: bool, multiple: bool, data: Any
) -> None:
    n, edges = graph
    kinds = {(False, False): networkx.Graph, (False, True): networkx.MultiGraph, (True, False): networkx.DiGraph}
    oracle = kinds.get((directed, multiple), networkx.MultiDiGraph)()
    oracle.add_nodes_from(f"v{v}" for v in range(n))
    for number, (u, v) in enumerate(edges):
        oracle.add_edge(f"v{u}", f"v{v}", weight=number / 2)
    part = oracle.subgraph(data.draw(st.sets(st.sampled_from(sorted(oracle.nodes)))))
    for each in (oracle, part, networkx.freeze(oracle)):
        built = gp.Graph.from_networkx(each)
        assert built.is_directed == directed
        assert (len(built), len(built.to_edgelist()[0])) == (len(each), each.number_of_edges())
        found = zip(*built.to_arrow().to_pydict().values(), strict=True)
        ends = tuple if directed else frozenset
        expected = sorted((w, sorted(ends((u, v)))) for u, v, w in each.edges(data="weight"))
        assert sorted((w, sorted(ends((u, v)))) for u, v, w in found) == expected
        if directed:
            assert all(each.has_edge(u, v) for u, v, _ in zip(*built.to_arrow().to_pydict().values(), strict=True))


def test_integer_nodes_become_an_integer_table_in_their_order() -> None:
    graph = gp.Graph.from_networkx(networkx.path_graph([7, 3, 5]))
    assert graph.ids is not None
    assert (graph.ids.tolist(), graph.ids.dtype) == ([7, 3, 5], np.int64)
    assert graph.neighbors(3).tolist() == [7, 5]
    negative = gp.Graph.from_networkx(networkx.path_graph([-1, 4]))
    assert negative.ids is not None
    assert (negative.ids.tolist(), negative.ids.dtype) == ([-1, 4], np.int64)
    assert gp.Graph.from_networkx(networkx.path_graph(3)).ids is None
    for nodes in ([-1, 2**70], [True, 2], ["a", 1]):
        ids = gp.Graph.from_networkx(networkx.path_graph(nodes)).ids
        assert ids is not None
        assert (ids.dtype, ids.tolist()) == (object, nodes)


def test_a_column_of_integers_beside_one_of_floats_is_refused() -> None:
    # pandas makes a column with a missing number one of floats, also after the row is dropped.
    frame = pandas.DataFrame({"source": [1, 2, 3], "target": [2, 3, None]}).dropna()
    with pytest.raises(ArgumentTypeError, match=r"src has dtype int64 and dst has dtype float64.*astype\('int64'\)"):
        gp.Graph.from_pandas(frame)
    frame["target"] = frame["target"].astype("int64")
    assert gp.Graph.from_pandas(frame).to_pandas()["target"].tolist() == [2, 3]
    floats = gp.Graph.from_edgelist(np.array([0.5]), np.array([1.5]))
    assert floats.vertices([1.5, 0.5]).tolist() == [1, 0]
