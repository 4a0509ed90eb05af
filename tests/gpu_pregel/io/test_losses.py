"""Every format keeps a graph, or refuses it and names a format that keeps it; nothing is lost silently."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import FormatError
from tests.devices import EXHAUSTIVE

NAMES = ["a.csv", "a.tsv", "a.txt", "a.el", "a.wel", "a.edges.gz", "a.mtx", "a.graph", "a.v", "a.bin", "a.wbin"]
NAMES += ["a.sg", "a.wsg", "a.parquet", "a.pregel"]
WEIGHTS = [None, "int32", "int64", "uint32", "uint64", "float32", "float64"]
STATE_DIRECTION = ("a.mtx", "a.v", "a.sg", "a.wsg", "a.parquet", "a.pregel")
STATE_DTYPE = ("a.wsg", "a.parquet", "a.pregel")

Build = Callable[[Any, bool], gp.Graph]


def weights_of(dtype: str | None, count: int) -> Any:
    return None if dtype is None else (np.arange(1, count + 1) / (4 if dtype[0] == "f" else 1)).astype(dtype)


def edges(src: Any, dst: Any, **options: Any) -> Build:
    """Return a function that builds this graph with weights of a dtype, directed or not."""

    def build(dtype: Any, directed: bool) -> gp.Graph:
        return gp.Graph.from_edgelist(src, dst, weights_of(dtype, len(src)), directed=directed, **options)

    return build


GRAPHS: dict[str, Build] = {
    "numbers": edges([0, 2, 1], [1, 1, 0]),
    "names": edges(["b", "c", "a"], ["c", "a", "b"]),
    "names with blanks and commas": edges(["New York", "Rome, GA"], ["Rome, GA", 'the "Hub"']),
    "names that look like numbers": edges(["007", "8"], ["8", "9"]),
    "names of which one looks like a number": edges(["x", "8"], ["8", "9"]),
    "names of columns": edges(["source"], ["target"]),
    "names that look like comments": edges(["#a", "%b"], ["%b", "c"]),
    "names with line breaks": edges(["a\nb", "c\rd"], ["c\rd", "e"]),
    "names with blanks around": edges([" a", "a"], ["a", "a "]),
    "names that begin with a byte order mark": edges(["\ufeffa", "b"], ["b", "c"]),
    "the empty name": edges(["", "a"], ["a", "b"]),
    "integers with gaps": edges([10, 7, 3], [7, 3, 99]),
    "negative integers": edges([-10, 7], [7, 5]),
    "large integers": edges([2**40, 5], [5, 2**62]),
    "integers beyond 64 bits (signed)": edges(np.array([2**63, 5], np.uint64), np.array([5, 2**63], np.uint64)),
    "isolated vertices": edges([0, 2], [2, 3], num_vertices=6),
    "isolated names": edges(["a", "c"], ["b", "a"], vertices=["x", "y"]),
    "isolated integers": edges([10, 30], [20, 40], vertices=[5, 99]),
    "self-loops": edges([0, 1, 1], [0, 1, 2]),
    "repeated edges": edges([0, 0, 1], [1, 1, 0]),
    "no edges": edges([], [], num_vertices=3),
    "no vertices": edges([], []),
    "names without edges": edges([], [], vertices=["a", "b"]),
}


def content(graph: gp.Graph) -> Any:
    """Return the set of ids and the multiset of edges by id, with their weights."""
    src, dst, weight = graph.to_edgelist()
    ids = graph.to_ids(np.arange(graph.num_vertices)).tolist()
    ends = [
        (ids[u], ids[v]) if graph.is_directed else frozenset((ids[u], ids[v])) for u, v in zip(src, dst, strict=True)
    ]
    weights = [None] * len(ends) if weight is None else weight.tolist()
    kinds = {type(one) for one in ids}
    dtype = None if weight is None or not ends else weight.dtype
    return set(ids), kinds, Counter(zip(ends, weights, strict=True)), dtype, graph.is_directed


def assert_kept(path: Path, graph: gp.Graph) -> None:
    options: dict[str, Any] = {}
    if path.name not in STATE_DIRECTION:
        options["directed"] = graph.is_directed
    if path.name not in STATE_DTYPE and graph.weights is not None:
        options["weight_dtype"] = graph.weights.dtype
    assert content(gp.read_graph(path, **options)) == content(graph)


def remedies(error: FormatError) -> list[str]:
    """Return the suffixes after "save as" and "use the suffix"."""
    found = re.findall(r"(?:save as|use the suffix) ((?:\.\w+(?:, | or )?)+)", error.problem)
    return re.findall(r"\.\w+", " ".join(found))


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_format_keeps_everything_or_refuses(name: str, kind: str, directed: bool, tmp_path: Path) -> None:
    kept = 0
    dtypes = WEIGHTS if kind == "numbers" or EXHAUSTIVE else WEIGHTS[::3]
    for dtype in dtypes:
        graph = GRAPHS[kind](dtype, directed)
        path = tmp_path / name
        refusal = None
        try:
            graph.save(path)
        except FormatError as error:
            refusal = error
        if refusal is None:
            kept += 1
            assert_kept(path, graph)
        else:
            assert list(tmp_path.iterdir()) == []
            best = remedies(refusal)[0]
            graph.save(tmp_path / f"a{best}")
            assert_kept(tmp_path / f"a{best}", graph)
        for file in tmp_path.iterdir():
            file.unlink()
    if name in ("a.pregel", "a.parquet"):
        assert kept == len(dtypes)


@pytest.mark.parametrize(
    "name, build, problem",
    [
        ("a.mtx", GRAPHS["names"], "matrix-market files hold vertex numbers, not ids: save as .pregel"),
        ("a.graph", GRAPHS["integers with gaps"], "metis files hold vertex numbers, not ids: save as .pregel"),
        ("a.sg", GRAPHS["names"], "gapbs files hold vertex numbers, not ids: save as .pregel"),
        ("a.v", GRAPHS["names"], "graphalytics files require integer ids: save as .pregel"),
        ("a.csv", GRAPHS["isolated vertices"], "the graph has vertices without edges, which .csv files cannot hold"),
        (
            "a.bin",
            GRAPHS["isolated vertices"],
            "vertices without edges, which gemini files cannot hold: save as .pregel",
        ),
        ("a.el", GRAPHS["isolated integers"], "which text files with ids cannot hold: save as .pregel"),
        (
            "a.txt",
            GRAPHS["names with blanks and commas"],
            "the id 'New York' would be read from .txt files as something",
        ),
        ("a.csv", GRAPHS["names that look like numbers"], "strings such as '007', which would be read as numbers"),
    ],
)
def test_refusals(name: str, build: Build, problem: str, tmp_path: Path) -> None:
    graph = build(None, False)
    with pytest.raises(FormatError, match=re.escape(problem)):
        graph.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    graph.save(tmp_path / name, lossy=True)
    read = gp.read_graph(tmp_path / name)
    assert read.num_stored_edges == graph.num_stored_edges
    assert (read.ids is None) == (build not in (GRAPHS["isolated vertices"], GRAPHS["isolated integers"]))


def test_lossy_drops_weights(tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist(["x", "y"], ["y", "z"], [1.5, 2.5])
    for name in ("a.el", "a.sg", "a.bin"):
        graph.save(tmp_path / name, lossy=True)
        read = gp.read_graph(tmp_path / name)
        assert read.weights is None
        assert read.indices.tolist() == graph.indices.tolist()


def test_the_number_of_vertices_is_the_last_line(tmp_path: Path) -> None:
    """GAPBS reads until the first line that is no edge; SNAP's header states no such number."""
    gp.Graph.from_edgelist([0], [1], num_vertices=4).save(tmp_path / "a.el")
    assert (tmp_path / "a.el").read_text() == "0 1\n# gpu_pregel: num_vertices=4\n"
    assert gp.read_graph(tmp_path / "a.el", num_vertices=9).num_vertices == 9
    (tmp_path / "b.el").write_text("# gpu_pregel: num_vertices=4\n0 1\n")
    assert gp.read_graph(tmp_path / "b.el").num_vertices == 2
    (tmp_path / "c.el").write_text("# Nodes: 5 Edges: 1\n0 7\n")
    assert gp.read_graph(tmp_path / "c.el").ids.tolist() == [0, 7]  # type: ignore[union-attr]
    (tmp_path / "d.el").write_text("0 7\n# gpu_pregel: num_vertices=4\n")
    with pytest.raises(FormatError, match="num_vertices is 4"):
        gp.read_graph(tmp_path / "d.el")


ODD_NAMES = st.text(st.sampled_from("ab,;\"#% \t\n\r'1.-\\é\x00"), max_size=4)


@settings(max_examples=150)
@given(pairs=st.lists(st.tuples(ODD_NAMES, ODD_NAMES), min_size=1, max_size=6), name=st.sampled_from(NAMES))
def test_names_of_all_kinds(pairs: Any, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    graph = gp.Graph.from_edgelist([u for u, _ in pairs], [v for _, v in pairs], directed=name != "a.graph")
    path = tmp_path_factory.getbasetemp() / f"names{Path(name).suffix}"
    try:
        graph.save(path)
    except FormatError:
        assert Path(name).suffix not in (".parquet", ".pregel")
    else:
        assert content(gp.read_graph(path, directed=graph.is_directed)) == content(graph)


def test_snap_files_have_the_vertices_that_occur(data: Path) -> None:
    votes = gp.read_graph(data / "snap" / "wiki-Vote.txt")
    assert votes.num_vertices == 7115
    assert len(np.unique(gp.connected_components(votes).labels)) == 24


UNUSUAL_IDS: dict[str, tuple[Any, str, list[str]]] = {
    "tuples": ([(0, 1), (1, 2)], "tuple such as (0, 1)", []),
    "integers and strings": ([1, "1"], "int and str", []),
    "integers and floats": ([1, 2.5], "float and int", []),
    "large integers": ([1, 2**70], f"int such as {2**70}", []),
    "dates": ([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], "date such as datetime.date(2026, 1, 1)", []),
    "timedelta64": (np.arange(2).astype("m8[s]"), "timedelta64 such as np.timedelta64(0,'s')", []),
    "lone surrogates": (["\ud800", "b"], "str such as '\\ud800'", []),
    "floats": ([1.5, 2.5], "float such as 1.5", [".parquet"]),
    "booleans": ([True, False], "bool such as True", [".parquet"]),
    "bytes": ([b"a", b"\xff"], "bytes such as b'a'", [".parquet"]),
    "datetime64": (np.arange(2).astype("M8[s]"), "datetime64 such as", [".parquet"]),
}
"""Ids, how errors describe them, and the formats that hold them."""


@pytest.mark.parametrize("kind", UNUSUAL_IDS)
@pytest.mark.parametrize("name", ["a.el", "a.csv", "a.mtx", "a.e", "a.pregel", "a.parquet"])
def test_remedies_for_unusual_ids_hold_them(name: str, kind: str, tmp_path: Path) -> None:
    ids, described, holders = UNUSUAL_IDS[kind]
    graph = gp.Graph.from_edgelist(ids[:1], ids[1:])
    path = tmp_path / name
    if path.suffix in holders:
        graph.save(path)
        assert_kept(path, graph)
        return
    with pytest.raises(FormatError) as caught:
        graph.save(path)
    assert remedies(caught.value) == holders
    assert holders or "use integers or strings as ids" in str(caught.value)
    assert path.suffix in (".mtx", ".e") or f"not {described}" in str(caught.value)
    graph.save(path, lossy=True)  # ids are lost in every format alike
    assert gp.read_graph(path, directed=False).ids is None


def test_remedies_hold_isolated_vertices_and_numerals(tmp_path: Path) -> None:
    for graph in (
        gp.Graph.from_edgelist(["a b"], ["c"], vertices=["d"]),
        gp.Graph.from_edgelist(["007"], ["7"]),
    ):
        with pytest.raises(FormatError) as caught:
            graph.save(tmp_path / "a.el")
        assert remedies(caught.value) == [".pregel", ".parquet"]
        for suffix in remedies(caught.value):
            graph.save(tmp_path / f"a{suffix}")
            assert_kept(tmp_path / f"a{suffix}", graph)


def test_a_graph_of_no_vertices_keeps_its_table_of_ids(tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist(["a"], ["b"]).subgraph([])
    for name in ("a.pregel", "a.parquet", "a.csv", "a.mtx"):
        graph.save(tmp_path / name)
        assert gp.read_graph(tmp_path / name).num_vertices == 0
