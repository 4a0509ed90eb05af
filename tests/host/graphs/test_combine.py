"""Parallel edges combined into one, compared with pandas and NetworkX; the dtypes of the weights; refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.cli import main
from gpu_pregel.errors import ArgumentError, GraphError
from gpu_pregel.host.graphs import csr as host_csr
from tests.graphs import arrays, edge_lists
from tests.packages import needs

networkx = needs("networkx", "test")
pandas = needs("pandas", "test")
sparse = needs("scipy.sparse", "test")

COMBINE = ("sum", "min", "max", "mean", "first", "count")
DTYPES = ("i4", "u4", "i8", "u8", "f4", "f8")
RESULTS = {
    "sum": dict(zip(DTYPES, ("i8", "i8", "i8", "u8", "f4", "f8"), strict=True)),
    "mean": dict(zip(DTYPES, ("f8", "f8", "f8", "f8", "f4", "f8"), strict=True)),
    "count": dict.fromkeys(DTYPES, "i8"),
}
"""The dtypes of results that are not those of the weights."""


def edges_of(graph: gp.Graph) -> list[list[Any]]:
    table: list[list[Any]] = graph.to_pandas().to_numpy().tolist()
    return table


def grouped(edges: list[tuple[int, int]], weight: Any, combine: str, directed: bool) -> list[list[Any]]:
    """Return the combined edges by pandas, those of an undirected graph with the smaller end first."""
    frame = pandas.DataFrame(edges, columns=["source", "target"], dtype=np.int64).assign(weight=weight)
    if not directed:
        frame[["source", "target"]] = np.sort(frame[["source", "target"]].to_numpy(), axis=1)
    wide = frame.assign(weight=frame["weight"].astype("f8" if combine == "mean" else weight.dtype))
    combined = wide.groupby(["source", "target"])["weight"].agg(combine)
    table: list[list[Any]] = combined.reset_index().to_numpy().tolist()
    return table


@pytest.fixture(autouse=True)
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small graphs be built by several threads, from several parts and buckets."""
    for name, value in {
        "_EDGES_PER_THREAD": 1,
        "_EDGES_PER_BUCKET": 8,
        "_EDGES_PER_PART": 5,
        "_VERTEX_CHUNK": 3,
    }.items():
        monkeypatch.setattr(host_csr, name, value)


@pytest.mark.parametrize("combine", COMBINE)
def test_edge_lists_agree_with_pandas(combine: str) -> None:
    @given(
        graph=edge_lists(max_vertices=9, max_edges=60),
        seed=st.integers(0, 9),
        dtype=st.sampled_from(DTYPES),
        directed=st.booleans(),
        threads=st.sampled_from([1, 3]),
    )
    def check(graph: Any, seed: int, dtype: str, directed: bool, threads: int) -> None:
        n, edges = graph
        weight = np.random.default_rng(seed).integers(0, 64, len(edges)).astype(dtype)
        built = gp.Graph.from_edgelist(
            *arrays(edges), weight, num_vertices=n, directed=directed, combine=combine, threads=threads
        )
        assert built.weights is not None
        assert built.weights.dtype == RESULTS.get(combine, {}).get(dtype, dtype)
        assert not built.has_duplicates
        found, expected = edges_of(built), grouped(edges, weight, combine, directed)
        assert np.allclose(found, expected, rtol=1e-6) if combine == "mean" else found == expected
        again = gp.Graph.from_csr(*built.to_csr(), directed=directed)  # which checks the symmetry
        assert again.num_stored_edges == built.num_stored_edges

    check()


@given(graph=edge_lists(max_vertices=9, max_edges=60), seed=st.integers(0, 9), directed=st.booleans())
def test_sums_of_floats_are_symmetric_and_do_not_depend_on_threads(graph: Any, seed: int, directed: bool) -> None:
    n, edges = graph
    weight = np.random.default_rng(seed).standard_normal(len(edges)).astype(np.float32)
    options: dict[str, Any] = {"num_vertices": n, "directed": directed, "combine": "sum"}
    one, other = (gp.Graph.from_edgelist(*arrays(edges), weight, threads=threads, **options) for threads in (1, 3))
    assert one.content_hash == other.content_hash
    gp.Graph.from_csr(*one.to_csr(), directed=directed)


@pytest.mark.parametrize("combine", [*COMBINE, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_undirected_and_simple_graphs_agree_with_edge_lists(combine: str | None, weighted: bool) -> None:
    @given(graph=edge_lists(max_vertices=9, max_edges=60), seed=st.integers(0, 9), directed=st.booleans())
    def check(graph: Any, seed: int, directed: bool) -> None:
        n, edges = graph
        weight = np.random.default_rng(seed).integers(-9, 9, len(edges)) if weighted else None
        ends = arrays(edges)
        options: dict[str, Any] = {"num_vertices": n}
        built = gp.Graph.from_edgelist(*ends, weight, directed=directed, **options)
        if weighted and combine == "first":
            for call in (built.to_undirected, built.simplify) if directed else (built.simplify,):
                with pytest.raises(ArgumentError, match="combine='first' needs the order of an edge list"):
                    call(combine=combine)
            return
        if not weighted and combine == "sum":
            with pytest.raises(ArgumentError, match="pass combine='count' for the number of parallel edges"):
                built.simplify(combine=combine)
            return
        plain = gp.Graph.from_edgelist(*ends, weight, combine=combine, **options)
        assert edges_of(built.to_undirected(combine=combine)) == edges_of(plain)
        merged = combine or "first"
        options |= {"directed": directed, "self_loops": "drop"}
        simple = gp.Graph.from_edgelist(*ends, weight, combine=merged, **options)
        several = gp.Graph.from_edgelist(*ends, weight, **options).has_duplicates
        if weighted and combine is None and several:
            with pytest.raises(GraphError, match=r"several edges from . to . have weights: pass combine='sum'"):
                built.simplify()
        else:
            assert edges_of(built.simplify(combine=combine)) == edges_of(simple)

    check()


EDGES = [("ann", "bob", 5), ("bob", "ann", 3), ("ann", "bob", 9), ("bob", "cid", 4)]
BOTH_WAYS = {
    None: [["ann", "bob", 3], ["ann", "bob", 5], ["ann", "bob", 9], ["bob", "cid", 4]],
    "sum": [["ann", "bob", 17], ["bob", "cid", 4]],
    "min": [["ann", "bob", 3], ["bob", "cid", 4]],
    "max": [["ann", "bob", 9], ["bob", "cid", 4]],
    "mean": [["ann", "bob", 17 / 3], ["bob", "cid", 4]],
    "first": [["ann", "bob", 5], ["bob", "cid", 4]],
    "count": [["ann", "bob", 3], ["bob", "cid", 1]],
}


def frame() -> Any:
    return pandas.DataFrame(EDGES, columns=["source", "target", "weight"])


def multigraph() -> Any:
    graph = networkx.MultiGraph()
    graph.add_weighted_edges_from(EDGES)
    return graph


def read(folder: Path, suffix: str, **options: Any) -> gp.Graph:
    path = folder / f"edges.{suffix}"
    if suffix == "parquet":
        frame().to_parquet(path)
    elif suffix == "csv":
        frame().to_csv(path, index=False)
    elif suffix == "txt":
        path.write_text("".join(f"{u} {v} {weight}\n" for u, v, weight in EDGES))
    else:
        gp.Graph.from_pandas(frame()).save(path)
    return gp.read_graph(path, **options)


SOURCES: dict[str, Callable[..., gp.Graph]] = {
    "edge list": lambda _, **options: gp.Graph.from_edgelist(*zip(*EDGES, strict=True), **options),
    "pandas": lambda _, **options: gp.Graph.from_pandas(frame(), **options),
    "Arrow": lambda _, **options: gp.Graph.from_arrow(pa.Table.from_pandas(frame()), **options),
    "NetworkX": lambda _, **options: gp.Graph.from_networkx(multigraph(), **options),
    "CSV": lambda folder, **options: read(folder, "csv", **options),
    "text": lambda folder, **options: read(folder, "txt", **options),
    "Parquet": lambda folder, **options: read(folder, "parquet", **options),
    "pregel": lambda folder, **options: read(folder, "pregel", **options),
    "CSR": lambda _, **options: gp.Graph.from_csr(
        *gp.Graph.from_pandas(frame()).to_csr(), ids=["ann", "bob", "cid"], **options
    ),
    "SciPy": lambda _, **options: gp.Graph.from_scipy(
        sparse.coo_array(
            ([5, 5, 3, 3, 9, 9, 4, 4], ([0, 1, 0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 1, 0, 2, 1])), shape=(3, 3)
        ),
        ids=["ann", "bob", "cid"],
        **options,
    ),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("combine", BOTH_WAYS)
def test_every_constructor_and_reader_combines_alike(source: str, combine: str | None, tmp_path: Path) -> None:
    if combine == "first" and source in ("pregel", "CSR", "SciPy"):
        with pytest.raises(ArgumentError, match=r"'first' needs the order of an edge list.*pass combine='min'"):
            SOURCES[source](tmp_path, combine=combine)
        return
    graph = SOURCES[source](tmp_path, combine=combine)
    assert not graph.is_directed
    assert edges_of(graph) == BOTH_WAYS[combine]


def test_a_directed_file_is_combined_after_its_reverse_edges_are_added(tmp_path: Path) -> None:
    path = tmp_path / "paid.pregel"
    gp.Graph.from_pandas(frame(), directed=True).save(path)
    assert edges_of(gp.read_graph(path, combine="sum")) == [["ann", "bob", 14], ["bob", "ann", 3], ["bob", "cid", 4]]
    assert edges_of(gp.read_graph(path, combine="sum", directed=False)) == BOTH_WAYS["sum"]
    assert edges_of(gp.read_graph(path, directed=False)) == BOTH_WAYS[None]


def test_entries_that_are_symmetric_once_added_up() -> None:
    matrix = sparse.coo_array(([1, 2, 3], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert gp.Graph.from_scipy(matrix).is_directed
    assert edges_of(gp.Graph.from_scipy(matrix, combine="sum")) == [[0, 1, 3]]
    assert edges_of(gp.Graph.from_scipy(matrix, combine="sum", directed=False)) == [[0, 1, 3]]
    with pytest.raises(GraphError, match="undirected but not symmetric"):
        gp.Graph.from_scipy(matrix, combine="min", directed=False)


def test_no_weight_is_lost_on_the_way_to_communities() -> None:
    """33.8 million of amounts became 13.6 million."""
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 40, (2, 2_000))
    paid = gp.Graph.from_edgelist(src, dst, rng.integers(1, 99, 2_000), directed=True)
    assert paid.weights is not None
    with pytest.raises(GraphError) as caught:
        gp.louvain(paid, device="cpu")
    assert (
        "pass graph.to_undirected(), which keeps all edges between two vertices, or graph.to_undirected(combine='sum')"
        in str(caught.value)
    )
    loops = paid.to_pandas().query("source == target")["weight"].sum()
    for both in (paid.to_undirected(), paid.to_undirected(combine="sum")):
        assert both.weights is not None
        assert both.weights.sum() == 2 * paid.weights.sum() - loops
    labels = [
        gp.louvain(both, device="cpu").to_numpy() for both in (paid.to_undirected(), paid.to_undirected(combine="sum"))
    ]
    assert gp.modularity(paid.to_undirected(), labels[0]) == pytest.approx(
        gp.modularity(paid.to_undirected(combine="sum"), labels[0])
    )


@pytest.mark.parametrize(
    ("weights", "dtype", "combine", "result"),
    [
        ([2**31 - 1, 2**31 - 1], "i4", "sum", 2**32 - 2),
        ([2**32 - 1, 2**32 - 1], "u4", "sum", 2**33 - 2),
        ([2**62, 2**62 - 1], "i8", "sum", 2**63 - 1),
        ([2**62, 2**62], "i8", "sum", None),
        ([-(2**62), -(2**62)], "i8", "sum", -(2**63)),
        ([-(2**63), -1], "i8", "sum", None),
        ([2**63, 2**63 - 1], "u8", "sum", 2**64 - 1),
        ([2**63, 2**63], "u8", "sum", None),
        ([3e38, 3e38], "f4", "sum", None),
        ([3e38, 3e38], "f4", "mean", np.float32(3e38).item()),
        ([1e308, 1e308], "f8", "sum", None),
        ([np.inf, 1.0], "f8", "sum", np.inf),
        ([np.inf, -np.inf], "f8", "sum", None),
        ([2**53 + 1, 2**53 + 1], "i8", "count", 2),
        ([1, 2], "i4", "mean", 1.5),
    ],
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_sums_are_exact_or_refused(
    weights: list[Any], dtype: str, combine: str, result: Any, directed: bool, stored: bool
) -> None:
    edges = [30, 7, 7, 30], [40, 9, 9, 8], np.array([1, *weights, 1], dtype)

    def combined() -> gp.Graph:
        if stored:
            return gp.Graph.from_edgelist(*edges, directed=directed).simplify(combine=combine)
        return gp.Graph.from_edgelist(*edges, directed=directed, combine=combine)

    if result is None:
        kind = {"f4": "float32", "f8": "float64"}.get(dtype, "int64" if dtype == "i8" else "uint64")
        with pytest.raises(GraphError, match=f"parallel edges from 7 to 9 have a sum that {kind} cannot hold"):
            combined()
        return
    graph = combined()
    assert graph.weights is not None
    row = graph.weights[graph.indptr[graph.vertex(7)] :][:1]
    assert row.tolist() == [result]


def test_graphs_without_weights() -> None:
    edges = [0, 0, 1, 2], [1, 1, 0, 2]
    for combine in ("min", "max", "mean", "first"):
        assert edges_of(gp.Graph.from_edgelist(*edges, combine=combine)) == [[0, 1], [2, 2]]
    assert edges_of(gp.Graph.from_edgelist(*edges, combine="count")) == [[0, 1, 3], [2, 2, 1]]
    directed = gp.Graph.from_edgelist(*edges, directed=True)
    assert edges_of(directed.to_undirected()) == [[0, 1], [0, 1], [0, 1], [2, 2]]
    assert edges_of(directed.simplify()) == [[0, 1], [1, 0]]
    assert edges_of(directed.simplify(combine="count")) == [[0, 1, 2], [1, 0, 1]]
    for call in (
        directed.to_undirected,
        directed.simplify,
        lambda **options: gp.Graph.from_edgelist(*edges, **options),
    ):
        with pytest.raises(ArgumentError, match="combine='sum' adds weights, and these edges have none: pass combine="):
            call(combine="sum")


def test_the_order_of_parallel_edges_is_that_of_the_list() -> None:
    rng = np.random.default_rng(1)
    src, dst, weight = *rng.integers(0, 4, (2, 5_000)), rng.permutation(5_000)
    found = gp.Graph.from_edgelist(src, dst, weight, directed=True, combine="first", threads=3)
    assert edges_of(found) == grouped(list(zip(src, dst, strict=True)), weight, "first", True)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "paid.csv", tmp_path / "paid.parquet"
    frame().to_csv(path, index=False)
    assert main(["convert", str(path), str(out), "--combine", "sum"]) == 0
    assert edges_of(gp.read_graph(out)) == BOTH_WAYS["sum"]
    gp.Graph.from_pandas(frame(), directed=True).save(tmp_path / "paid.pregel")
    assert main(["louvain", "-f", str(tmp_path / "paid.pregel")]) == 1
    assert "pass --undirected, which keeps all edges between two vertices, or --undirected --combine sum" in (
        capsys.readouterr().err.replace("\n", " ")
    )
    assert main(["louvain", "-f", str(tmp_path / "paid.pregel"), "--undirected", "--combine", "sum"]) == 0
