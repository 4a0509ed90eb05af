"""Columns of data frames and Arrow tables of edges, and attributes of NetworkX graphs, as ids and weights."""

from __future__ import annotations

import re
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
from gpu_pregel.cli import main
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FormatError, GraphError
from tests.graphs import edge_lists
from tests.packages import needs

pandas = needs("pandas", "test")


def table_of(kind: str, columns: dict[Any, Any]) -> tuple[Callable[..., gp.Graph], Any]:
    if kind == "pandas":
        return gp.Graph.from_pandas, pandas.DataFrame(columns)
    return gp.Graph.from_arrow, pyarrow.table(columns)


def build(kind: str, columns: dict[Any, Any], folder: Path, **options: Any) -> gp.Graph:
    """Build a graph from a table with these columns, of which files are written."""
    if kind in ("pandas", "arrow"):
        constructor, table = table_of(kind, columns)
        return constructor(table, **options)
    path = folder / f"edges.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return gp.read_graph(path, **options)
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in (columns, *rows)))
    return gp.read_graph(path, **{"header": True, **options})


KINDS = pytest.mark.parametrize("kind", ["pandas", "arrow"])
SOURCES = pytest.mark.parametrize("source", ["pandas", "arrow", "csv", "parquet"])
UNNAMED = "no columns have the names source and target, src and dst, or from and to; available columns: "
COLUMNS: list[tuple[str, dict[str, Any], dict[str, Any], tuple[int, int, float | None] | str]] = [
    ("two columns", {"a": [0], "b": [1]}, {}, (0, 1, None)),
    ("source and target", {"x": [5], "target": [1], "source": [0]}, {}, (0, 1, None)),
    ("src and dst", {"x": [5], "dst": [1], "src": [0]}, {}, (0, 1, None)),
    ("from and to", {"to": [1], "from": [0], "weight": [7.0]}, {}, (0, 1, 7.0)),
    ("two columns in reverse", {"target": [1], "source": [0]}, {}, (0, 1, None)),
    ("value", {"source": [0], "target": [1], "value": [7.0]}, {}, (0, 1, 7.0)),
    ("weights between", {"source": [0], "Weights": [7.0], "target": [1]}, {}, (0, 1, 7.0)),
    ("capitals and spaces", {"x": [5], " Target": [1], "SOURCE ": [0], "Weight": [7.0]}, {}, (0, 1, 7.0)),
    ("a time is no weight", {"source": [0], "target": [1], "ts": [9], "amount": [5.0]}, {}, (0, 1, None)),
    ("an amount is no weight", {"source": [0], "target": [1], "amount": [5.0]}, {}, (0, 1, None)),
    ("chosen weight", {"source": [0], "target": [1], "ts": [9], "amount": [5.0]}, {"weight": "amount"}, (0, 1, 5.0)),
    ("instead of weight", {"src": [0], "dst": [1], "weight": [7.0], "c": [5.0]}, {"weight": "c"}, (0, 1, 5.0)),
    ("no weight", {"from": [0], "to": [1], "weight": [7.0]}, {"weight": None}, (0, 1, None)),
    ("a value as target", {"id": [0], "value": [1]}, {"weight": None}, (0, 1, None)),
    ("chosen ends", {"x": [0], "y": [5], "z": [1]}, {"source": "z", "target": "x"}, (1, 0, None)),
    ("ends beside a weight", {"a": [0], "b": [1], "value": [7.0]}, {"source": "a", "target": "b"}, (0, 1, 7.0)),
    ("a weight as source", {"weight": [0], "b": [1]}, {"source": "weight", "target": "b"}, (0, 1, None)),
    (
        "accounts",
        {"tx_id": [3], "from_account": [0], "to_account": [1]},
        {},
        f"{UNNAMED}'tx_id', 'from_account', 'to_account': say which are meant, as in CALL"
        "source='from_account', target='to_account'), and weight= if one holds weights",
    ),
    (
        "accounts with a weight",
        {"fromAccount": [0], "toAccount": [1], "weight": [3]},
        {},
        f"{UNNAMED}'fromAccount', 'toAccount', 'weight': say which are meant, as in CALL"
        "source='fromAccount', target='toAccount')",
    ),
    (
        "three columns",
        {"a": [0], "b": [1], "c": [2]},
        {},
        f"{UNNAMED}'a', 'b', 'c': say which are meant, as in CALLsou",
    ),
    ("only a weight chosen", {"a": [0], "b": [1], "c": [2]}, {"weight": "c"}, f"{UNNAMED}'a', 'b', 'c': say which are"),
    (
        "numbers as names",
        {"0": [0], "1": [1], "2": [5]},
        {},
        f"{UNNAMED}'0', '1', '2': say which are meant, as in CALL",
    ),
    (
        "row numbers",
        {"": [0], "a": [5], "b": [6]},
        {},
        "available columns: '', 'a', 'b': say which are meant, as in CALLsource='a', target='b')",
    ),
    (
        "no name",
        {"": [0], "a": [5]},
        {},
        "the first column has no name: if it holds row numbers, write the table without them",
    ),
    (
        "a target first",
        {"target": [1], "page": [0]},
        {},
        "'target', 'page': say which are meant, as in CALLsource='page', t",
    ),
    ("a source last", {"sent": [1], "From": [0]}, {}, "as in CALLsource='From', target='sent')"),
    ("a target alone, last", {"page": [0], "target": [1]}, {}, (0, 1, None)),
    (
        "two sources",
        {"Source": [0], "source": [1], "target": [5]},
        {},
        "several pairs of columns have the names source and target",
    ),
    ("row numbers before named columns", {"": [3], "source": [0], "target": [1]}, {}, (0, 1, None)),
    ("one end", {"source": [0], "to": [1], "x": [5]}, {}, f"{UNNAMED}'source', 'to', 'x': say which are meant"),
    ("a weight and one end", {"source": [0], "weight": [1]}, {}, "edges need two columns of ids, beside weights"),
    (
        "two pairs",
        {"source": [0], "target": [1], "from": [0], "to": [1]},
        {},
        "several pairs of columns have the names source and target, src and dst, or from and to; available columns: "
        "'source', 'target', 'from', 'to': say which are meant, as in CALLsource='source', target='target')",
    ),
    (
        "weight and value",
        {"source": [0], "target": [1], "value": [1.0], "weight": [7.0]},
        {},
        "the columns 'value', 'weight' may hold weights: pass weight='value', another one, or weight=None",
    ),
    ("source alone", {"a": [0], "b": [1], "c": [2]}, {"source": "a"}, "source= and target= belong together: pass both"),
    ("no such weight", {"a": [0], "b": [1]}, {"weight": "cost"}, f"{UNNAMED}'a', 'b': say"),
    (
        "no such weight of edges",
        {"src": [0], "dst": [1]},
        {"weight": "cost"},
        "no column 'cost'; available columns: 'src'",
    ),
    ("no such end", {"a": [0], "b": [1]}, {"source": "x", "target": "b"}, "no column 'x'; available columns: 'a', 'b'"),
    (
        "one column twice",
        {"a": [0], "b": [1]},
        {"source": "a", "target": "a"},
        "source, target and weight must be different columns, not source='a', target='a'",
    ),
]


@SOURCES
@pytest.mark.parametrize(
    ("columns", "options", "outcome"), [row[1:] for row in COLUMNS], ids=[row[0] for row in COLUMNS]
)
def test_columns_of_every_kind_of_table(
    source: str, columns: dict[str, Any], options: dict[str, Any], outcome: Any, tmp_path: Path
) -> None:
    if isinstance(outcome, str):
        call = f"gp.read_graph('{tmp_path}/edges.{source}', "
        call = {"pandas": "gp.Graph.from_pandas(edges, ", "arrow": "gp.Graph.from_arrow(edges, "}.get(source, call)
        with pytest.raises(ArgumentError) as caught:
            build(source, columns, tmp_path, **options)
        assert outcome.replace("CALL", call) in str(caught.value)
        return
    graph = build(source, columns, tmp_path, directed=True, num_vertices=6, **options)
    src, dst, weights = graph.to_edgelist()
    assert (src.tolist(), dst.tolist()) == ([outcome[0]], [outcome[1]])
    assert (None if weights is None else weights.tolist()) == (None if outcome[2] is None else [outcome[2]])


IDS: list[tuple[str, dict[str, list[Any]], bool]] = [  # and whether the first row of text may hold ids as well
    ("any two", {"x": ["ann"], "y": ["bob"]}, True),
    ("any two above integers", {"x": [3], "y": [4]}, False),
    ("a pair", {"from": ["ann"], "to": ["bob"]}, False),
    ("a pair and a weight", {"weights": [0.5], "Source": ["ann"], "Target": ["bob"]}, False),
    ("a mixed pair", {"source": ["ann"], "dst": ["bob"]}, False),
    ("a mixed pair of three", {"x": ["cid"], "source": ["ann"], "dst": ["bob"]}, False),
    ("accounts", {"tx_id": ["t1"], "from_account": ["ann"], "to_account": ["bob"]}, True),
    ("accounts and an amount", {"from_account": ["ann"], "to_account": ["bob"], "amount": [5]}, False),
    ("four columns", {"a": ["ann"], "b": ["bob"], "c": ["cid"], "d": ["dan"]}, True),
    ("a source and a weight", {"source": ["ann"], "weight": [0.5]}, False),
    ("a weight and a target", {"weight": [0.5], "dst": ["ann"]}, False),
    ("an id and a value", {"id": ["ann"], "value": [0.5]}, True),
    ("no columns beside weights", {"weight": [0.5], "value": [2]}, True),
]
EACH_TABLE = pytest.mark.parametrize(("columns", "is_ambiguous"), [row[1:] for row in IDS], ids=[row[0] for row in IDS])
CALL = re.compile(r"gp\.(?:read_graph|Graph\.\w+)\((?:.*?), ([^()]+)\)")


def outcome_of(kind: str, columns: dict[str, Any], folder: Path, **options: Any) -> Any:
    """Return the edges of a table, by id, or the error about its columns without place and call."""
    try:
        graph = build(kind, columns, folder, **{"header": "auto", **options} if kind == "csv" else options)
    except ArgumentError as error:
        return CALL.sub(r"CALL(\1)", str(error).partition(": ")[2] if "edges." in str(error) else str(error))
    return [sorted(map(str, row.values())) for row in graph.to_arrow().to_pylist()]


@EACH_TABLE
def test_a_table_has_one_outcome_whatever_holds_it(columns: dict[str, Any], is_ambiguous: bool, tmp_path: Path) -> None:
    expected = outcome_of("parquet", columns, tmp_path)
    assert outcome_of("pandas", columns, tmp_path) == outcome_of("arrow", columns, tmp_path) == expected
    if is_ambiguous:
        with pytest.raises(FormatError, match=r"may be (names of columns or )?ids: use gp\.read_graph"):
            outcome_of("csv", columns, tmp_path)
        assert outcome_of("csv", columns, tmp_path, header=True) == expected
    else:
        assert outcome_of("csv", columns, tmp_path) == expected


@SOURCES
@EACH_TABLE
def test_the_calls_of_errors_work_at_once(
    source: str, columns: dict[str, Any], is_ambiguous: bool, tmp_path: Path
) -> None:
    try:
        build(source, columns, tmp_path, **{"header": "auto"} if source == "csv" else {})
    except (ArgumentError, FormatError) as error:
        calls = re.findall(r"gp\.(?:read_graph|Graph\.\w+)\([^()]+\)", str(error))
    else:
        assert not is_ambiguous or source != "csv"
        return
    weights = {"weight", "value"}
    assert bool(calls) == (len(set(columns) - weights) > 1 or (source == "csv" and is_ambiguous))
    for call in calls:
        edges = table_of(source, columns)[1] if source in ("pandas", "arrow") else None
        graph = eval(call, {"gp": gp, "edges": edges})
        is_row = "header=False" in call
        assert graph.num_edges == 1 + is_row
        used = set(columns) if is_row or len(columns) == 2 else set(re.findall(r"(?:source|target)='(\w+)'", call))
        assert is_row or not used & weights
        if {"from_account", "to_account"} <= set(columns):
            assert is_row or used == {"from_account", "to_account"}
        assert is_row or sorted(graph.to_ids([0, 1])) == sorted(columns[name][0] for name in used)


def test_the_command_line_offers_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "names.csv"
    path.write_text("tx_id,from_account,to_account\nt1,ann,bob\n")
    assert main(["cc", "-f", str(path)]) == 1
    expected = "ids: use --columns from_account,to_account for names, or --no-header --no-weights for ids"
    assert expected in capsys.readouterr().err


HEADERLESS: list[tuple[str, dict[str, Any], tuple[int, int, float | None] | str]] = [
    ("0 1", {}, (0, 1, None)),
    ("0 1 7", {}, (0, 1, 7.0)),
    ("0 1 7", {"weight": None}, (0, 1, None)),
    ("0 1 7", {"weight": 2}, (0, 1, 7.0)),
    ("0 1 7", {"source": 1, "target": 0}, (1, 0, 7.0)),
    ("5 0 1", {"source": 1, "target": 2}, (0, 1, None)),
    ("0 1 7 9", {"source": 0, "target": 1, "weight": 2}, (0, 1, 7.0)),
    ("0 1 7 9", {"source": 0, "target": 1}, (0, 1, None)),
    (
        "0 1 7 9",
        {},
        "4 columns without a header: say which are meant by position, as in CALLsource=0, target=1), and weight= if "
        "one holds weights",
    ),
    ("0 1 7 9", {"weight": None}, "4 columns without a header: say which are meant by position"),
    ("0 1 7", {"weight": 0}, "3 columns without a header: say which are meant by position"),
    ("0 1", {"weight": 0}, "must be different columns, not weight=0"),
    ("0 1", {"source": 0, "target": 4}, "no column 4; available positions: 0 to 1"),
]


@pytest.mark.parametrize(("line", "options", "outcome"), HEADERLESS)
@pytest.mark.parametrize(("name", "separator"), [("a.txt", " "), ("a.csv", ",")])
def test_columns_of_text_without_a_header(
    name: str, separator: str, line: str, options: dict[str, Any], outcome: Any, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(line.replace(" ", separator) + "\n")
    if isinstance(outcome, str):
        with pytest.raises(ArgumentError) as caught:
            gp.read_graph(path, **options)
        assert outcome.replace("CALL", f"gp.read_graph('{path}', ") in str(caught.value)
        return
    src, dst, weights = gp.read_graph(path, directed=True, num_vertices=6, **options).to_edgelist()
    assert (src.tolist(), dst.tolist()) == ([outcome[0]], [outcome[1]])
    assert (None if weights is None else weights.tolist()) == (None if outcome[2] is None else [outcome[2]])


def test_the_command_line_names_its_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "paid.csv"
    path.write_text("tx_id,from_account,to_account,amount\n1,2,3,5\n2,3,4,6\n")
    assert main(["cc", "-f", str(path)]) == 2
    assert "say which are meant, as in --columns from_account,to_account, and --weight if" in capsys.readouterr().err
    assert main(["cc", "-f", str(path), "--columns", "from_account,to_account"]) == 0
    path.write_text("1 2 3 4\n")
    assert main(["cc", "-f", str(path), "--format", "edgelist"]) == 2
    assert "by position, as in --columns 0,1, and --weight if" in capsys.readouterr().err


WRONG: list[tuple[str, dict[str, Any], dict[str, Any], type[Exception], str]] = [
    ("one column", {"a": [0]}, {}, ArgumentError, "edges need a source and a target; available columns: 'a'"),
    ("no columns", {}, {}, ArgumentError, "edges need a source and a target; available columns: none"),
    ("null id", {"a": ["x", None], "b": ["y", "z"]}, {}, GraphError, "column 'a' is null in row 1: drop the row"),
    ("null weight", {"src": [0], "dst": [1], "weight": [None]}, {}, GraphError, "column 'weight' is null in row 0"),
    ("NaN", {"src": [0], "dst": [1], "weight": [np.nan]}, {}, GraphError, "NaN|column 'weight' is null in row 0"),
    (
        "weights of strings",
        {"src": [0], "dst": [1], "value": ["x"]},
        {},
        ArgumentTypeError,
        "column 'value' has weights of dtype object, not numbers: convert it, as with astype",
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
    graph = gp.Graph.from_pandas(frame, 0, 1, (2, 3))  # type: ignore[arg-type]
    assert graph.to_arrow().to_pydict() == {"source": ["a"], "target": ["b"], "weight": [7.0]}


def test_repeated_names_of_columns_are_refused() -> None:
    frame = pandas.DataFrame([[0, 1, 2]], columns=["a", "a", "b"])
    with pytest.raises(ArgumentError, match="2 columns have the name 'a': rename them"):
        gp.Graph.from_pandas(frame, "a", "b")
    table = pyarrow.table([[0], [1], [2]], names=["a", "b", "b"])
    with pytest.raises(ArgumentError, match="2 columns have the name 'b'"):
        gp.Graph.from_arrow(table, "a", "b")


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
    frame = pandas.DataFrame({"src": [0], "dst": [1], "weight": [2]}).astype({"weight": dtype})
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


# Tables hold ids exactly or not at all
