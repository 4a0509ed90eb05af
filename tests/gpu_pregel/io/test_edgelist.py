"""Tests of text edge lists."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import FormatError, NotEnoughMemoryError
from gpu_pregel.io._lines import LineParser

WriteFile = Callable[[str, str | bytes], Path]

READABLE: list[tuple[str, str, str | bytes, list[tuple[Any, ...]]]] = [
    ("plain", "a.el", "0 1\n1 2\n", [(0, 1), (1, 2)]),
    ("no newline at the end", "a.el", "0 1\n1 2", [(0, 1), (1, 2)]),
    ("tabs", "a.snap", "0\t1\n1\t2\n", [(0, 1), (1, 2)]),
    ("commas", "a.csv", "0,1\n1,2\n", [(0, 1), (1, 2)]),
    ("commas and blanks", "a.txt", "0, 1\n1 , 2\n", [(0, 1), (1, 2)]),
    ("semicolons", "a.csv", "0;1\n1;2\n", [(0, 1), (1, 2)]),
    ("runs of blanks", "a.txt", "0   1\n1 2\n  2  3  \n", [(0, 1), (1, 2), (2, 3)]),
    ("tabs and blanks mixed", "a.txt", "0 1\n1\t2\n2 \t 3\n", [(0, 1), (1, 2), (2, 3)]),
    ("blanks after tabs", "a.txt", "0\t1\n1 2\n", [(0, 1), (1, 2)]),
    ("comments anywhere", "a.txt", "# x 1 2\n% y\n0 1\n#\n  # z\n1 2\n# end", [(0, 1), (1, 2)]),
    ("blank lines", "a.txt", "\n \n0 1\n\n\t\n1 2\n\n", [(0, 1), (1, 2)]),
    ("CRLF", "a.txt", "# c\r\n0 1\r\n\r\n1 2\r\n", [(0, 1), (1, 2)]),
    ("byte order mark", "a.csv", b"\xef\xbb\xbf0,1\n1,2\n", [(0, 1), (1, 2)]),
    ("header", "a.csv", "src,dst\n0,1\n", [(0, 1)]),
    ("header after a comment", "a.tsv", "# c\nfrom\tto\tvalue\n0\t1\t2.5\n", [(0, 1, 2.5)]),
    ("header in quotes", "a.csv", '"a","b"\n"0","1"\n', [(0, 1)]),
    ("header alone", "a.csv", "src,dst\n", []),
    ("header of a text", "a.txt", "src dst\n0 1\n", [(0, 1)]),
    ("row numbers before named columns", "a.csv", ",src,dst\n0,5,6\n", [(5, 6)]),
    ("negative ids", "a.txt", "0 1\n1 2\n-3 2\n", [(-3, 2), (0, 1), (1, 2)]),
    ("weights", "a.wel", "0 1 0.5\n1 2 3\n", [(0, 1, 0.5), (1, 2, 3.0)]),
    ("weights of all kinds", "a.el", "0 1 1e3\n1 2 -.5\n2 3 inf\n", [(0, 1, 1000.0), (1, 2, -0.5), (2, 3, np.inf)]),
    ("duplicates and self-loops", "a.txt", "0 1\n1 0\n0 0\n", [(0, 0), (0, 1), (0, 1)]),
    ("large ids", "a.txt", "9223372036854775807 4294967296\n", [(4294967296, 9223372036854775807)]),
    ("empty", "a.txt", "", []),
    ("comments only", "a.txt", "# nothing\n", []),
]


@pytest.mark.parametrize("blocks", ["one block", "small blocks"])
@pytest.mark.parametrize("name, content, expected", [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_reads(
    name: str,
    content: str | bytes,
    expected: Any,
    blocks: str,
    write_file: WriteFile,
    edges: Any,
    request: pytest.FixtureRequest,
) -> None:
    if blocks == "small blocks":
        request.getfixturevalue("small_blocks")
    graph = gp.read_graph(write_file(name, content))
    assert edges(graph) == expected
    assert not graph.is_directed
    assert (graph.weights is not None) == (bool(expected) and len(expected[0]) == 3)


REJECTED: list[tuple[str, str, str | bytes, int | None, str, dict[str, Any]]] = [
    ("one column", "a.txt", "0 1\n\n# c\n7\n", 4, "1 column ('7'), but a source and a target are required", {}),
    ("one column at first", "a.txt", "7\n", 1, "1 column", {}),
    ("too many columns", "a.txt", "0 1\n1 2 3\n", 2, "3 columns ('1 2 3'), but the first edge (line 1) has 2", {}),
    ("a column missing", "a.txt", "# c\n0 1 5\n1 2\n", 3, "2 columns ('1 2'), but the first edge (line 2) has 3", {}),
    ("empty column", "a.csv", "0,1\n,2\n", 2, "the source is missing", {}),
    ("names in place of numbers", "a.el", "0 1\nx 2\n", 2, "the id 'x' is not an integer", {"num_vertices": 3}),
    ("fraction", "a.txt", "0 1\n1.5 2\n", 2, "the id '1.5' has a fraction", {}),
    ("negative", "a.txt", "0 1\n1 2\n-3 2\n", 3, "the id -3 is negative", {"num_vertices": 3}),
    ("negative in an odd block", "a.txt", "# c\n0  1\n\n1 -2\n", 4, "the id -2 is negative", {"num_vertices": 3}),
    ("thousands of digits", "a.txt", f"0 1\n1 {'9' * 5000}\n", 2, "does not fit in 64 bits", {}),
    ("carriage returns alone", "a.txt", "0 1\r2 3\r", 1, "a carriage return alone does not end a line", {}),
    ("carriage returns after a comment", "a.txt", "# c\r0 1\r", 1, "a carriage return alone does not end a line", {}),
    ("does not fit in 64 bits", "a.txt", "0 1\n1 9223372036854775808\n", 2, "does not fit in 64 bits", {}),
    ("no number", "a.wel", "0 1 1\n1 2 heavy\n", 2, "the weight 'heavy' is not a number", {}),
    ("underscore", "a.wel", "0 1 1\n1 2 1_0\n", 2, "the weight '1_0' is not a number", {}),
    ("NaN", "a.wel", "0 1 1\n1 2 nan\n", 2, "the weight is NaN", {}),
    ("comment behind an edge", "a.txt", "0 1 #first\n", 1, "the weight '#first' is not a number", {}),
    ("no weights in .wel", "a.wel", "# c\n0 1\n", 2, ".wel files have a weight", {}),
    ("beyond num_vertices", "a.el", "0 1\n1 3\n", 2, "the id 3 is too large: num_vertices is 3", {"num_vertices": 3}),
    (
        "fractional weight",
        "a.wel",
        "0 1 2\n1 2 .5\n",
        2,
        "the weight .5 does not fit int32",
        {"weight_dtype": np.int32},
    ),
    ("large weight", "a.wel", "0 1 2147483648\n", 1, "2147483648 does not fit int32", {"weight_dtype": np.int32}),
    ("negative weight", "a.wel", "0 1 -1\n", 1, "the weight -1 does not fit uint64", {"weight_dtype": np.uint64}),
    ("weight beyond float32", "a.wel", "0 1 1e300\n", 1, "1e+300 does not fit float32", {"weight_dtype": np.float32}),
    ("row numbers of R", "a.csv", 'src,dst\n"1",5,6\n', 1, "names 2 columns, but the first edge has 3", {}),
    ("not text", "a.txt", b"\x1f\x8b\x00\xff\xfe", 1, "1 column ('\\x1f", {}),
    ("too many ids", "a.txt", "0 99999999999\n", None, "omit renumber=False", {"renumber": False}),
]


@pytest.mark.parametrize("blocks", ["one block", "small blocks"])
@pytest.mark.parametrize(
    "name, content, line, problem, options", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_rejects(
    name: str,
    content: str | bytes,
    line: int | None,
    problem: str,
    options: dict[str, Any],
    blocks: str,
    write_file: WriteFile,
    assert_rejected: Any,
    request: pytest.FixtureRequest,
) -> None:
    if blocks == "small blocks":
        request.getfixturevalue("small_blocks")
    assert_rejected(write_file(name, content), line, problem, **options)


PIECES = [
    "0",
    "1",
    "23",
    "-1",
    "+1",
    "1.5",
    "1.",
    "1e3",
    "nan",
    "-inf",
    "x",
    "0x1",
    "#",
    '"',
    " ",
    " ",
    "\t",
    "  ",
    "\r",
    "\r\n",
]
LINES = st.one_of(
    st.sampled_from(["0 1", "2\t3", "4,5", " 6  7 ", "0 1 2.5", "# c", ""]),
    st.lists(st.sampled_from(PIECES), max_size=7).map("".join),
)


@settings(max_examples=150)
@given(lines=st.lists(LINES, max_size=6), name=st.sampled_from(["a.txt", "a.csv", "a.wel"]))
def test_arrow_and_python_agree(lines: list[str], name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Arrow and the slower parser, which follows the grammar, return the same values."""
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes("\n".join(lines).encode())

    def outcome() -> Any:
        try:
            return [None if part is None else part.tolist() for part in gp.read_graph(path).to_csr()]
        except FormatError as error:
            return str(error)

    found = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LineParser, "parse", lambda self, *block: [self._parse_by_line(*block)])
        assert outcome() == found


def test_options(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.txt", "0 1 5\n1 0 3\n1 1 2\n1 2 4\n")
    assert edges(gp.read_graph(path, directed=True)) == [(0, 1, 5.0), (1, 0, 3.0), (1, 1, 2.0), (1, 2, 4.0)]
    assert edges(gp.read_graph(path, weight=None, combine="min", self_loops="drop")) == [(0, 1), (1, 2)]
    assert edges(gp.read_graph(path, combine="min")) == [(0, 1, 3.0), (1, 1, 2.0), (1, 2, 4.0)]
    assert gp.read_graph(path, num_vertices=9, threads=1).num_vertices == 9


def test_empty_file_with_vertices(write_file: WriteFile) -> None:
    graph = gp.read_graph(write_file("a.txt", "# none\n"), num_vertices=4)
    assert (graph.num_vertices, graph.num_stored_edges) == (4, 0)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_weight_dtype(dtype: str, write_file: WriteFile) -> None:
    graph = gp.read_graph(write_file("a.wel", "0 1 7\n1 2 3.0\n"), weight_dtype=dtype, directed=True)
    assert graph.weights is not None
    assert (graph.weights.dtype, graph.weights.tolist()) == (np.dtype(dtype), [7, 3])


@pytest.mark.parametrize("name", ["a.wel", "a.csv"])
@pytest.mark.parametrize("text", [f"{2**53 + 1}{rest}" for rest in (".0", ".", "e0", "0e-1", "")])
def test_integers_are_exact_in_every_form(name: str, text: str, write_file: WriteFile) -> None:
    line = f"1 2 {text}\n" if name == "a.wel" else f"source,target,weight\n1,2,{text}\n"
    graph = gp.read_graph(write_file(name, line), directed=True, weight_dtype="int64")
    assert graph.weights is not None
    assert graph.weights.tolist() == [2**53 + 1]
    with pytest.raises(FormatError, match=r"5 does not fit int64"):
        gp.read_graph(write_file(name, line.replace(text, f"{2**53 + 1}.5")), weight_dtype="int64")
    with pytest.raises(FormatError, match=rf"{2**64 - 1} does not fit int64: pass weight_dtype='uint64'"):
        gp.read_graph(write_file(name, line.replace(text, f"{2**64 - 1}")), weight_dtype="int64")


def test_integer_weights_keep_64_bits(write_file: WriteFile) -> None:
    largest = {"int64": 2**63 - 1, "uint64": 2**64 - 1}
    for dtype, value in largest.items():
        graph = gp.read_graph(write_file("a.wel", f"0 1 {value}\n"), weight_dtype=dtype, directed=True)
        assert graph.weights is not None
        assert graph.weights.tolist() == [value]


def test_ids_become_wider_midway(write_file: WriteFile, small_blocks: None, edges: Any) -> None:
    graph = gp.read_graph(write_file("a.txt", "0 1\n1 2\n5000000000 2\n3 1\n"))
    assert edges(graph) == [(0, 1), (1, 2), (1, 3), (2, 5000000000)]


def test_line_number_across_blocks(
    write_file: WriteFile, assert_rejected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_pregel.io._lines._BLOCK_BYTES", 1000)
    lines = ["# comment", ""] + [f"{u} {u + 1}" for u in range(5000)]
    lines[4321] = "17 -4"
    assert_rejected(write_file("a.txt", "\n".join(lines)), 4322, "the id -4 is negative", num_vertices=9999)


@pytest.mark.parametrize("suffix", ["txt.gz", "TXT.ZST", "csv.zstd"])
def test_compressed(suffix: str, write_file: WriteFile, edges: Any) -> None:
    text = b"src,dst\n0,1\n1,2\n" if "csv" in suffix else b"# c\n0 1\n1 2\n"
    packed = gzip.compress(text) if suffix.endswith("gz") else pa.Codec("zstd").compress(text, asbytes=True)
    assert edges(gp.read_graph(write_file(f"a.{suffix}", packed))) == [(0, 1), (1, 2)]


def test_gzip_of_several_members(write_file: WriteFile, edges: Any) -> None:
    assert edges(gp.read_graph(write_file("a.txt.gz", gzip.compress(b"0 1\n1 ") + gzip.compress(b"2\n")))) == [
        (0, 1),
        (1, 2),
    ]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("damage", ["truncated", "plain text"])
def test_damaged_compression(suffix: str, damage: str, write_file: WriteFile, assert_rejected: Any) -> None:
    text = b"".join(b"%d %d\n" % (u, u * 7 % 1000) for u in range(1000))
    packed = gzip.compress(text) if suffix == "gz" else pa.Codec("zstd").compress(text, asbytes=True)
    content = packed[: len(packed) // 2] if damage == "truncated" else text
    assert_rejected(write_file(f"a.txt.{suffix}", content), None, "is not a complete")


def test_too_little_memory(write_file: WriteFile, small_blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_pregel.host.devices.memory.available_memory", lambda: 1000)
    monkeypatch.setattr("gpu_pregel.host.devices.memory._LITTLE", 0)
    path = write_file("a.txt", "".join(f"{u} {u + 1}\n" for u in range(1000)))
    with pytest.raises(NotEnoughMemoryError, match=re.escape(str(path))):
        gp.read_graph(path)


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.mtx", "a.txt.gz"])
def test_a_long_line(name: str, write_file: WriteFile, assert_rejected: Any, small_blocks: None) -> None:
    head = (
        b"%%MatrixMarket matrix coordinate pattern general\n"
        if name == "a.mtx"
        else b"0,1\n"
        if "csv" in name
        else b"0 1\n"
    )
    text = head + b"#" * (1 << 20) + b"#\n"
    assert_rejected(write_file(name, gzip.compress(text) if name.endswith("gz") else text), 2, "1,048,576 bytes")


@pytest.mark.parametrize("lengths", [(10,), (11, 3), (3, 12, 3), (9, 10, 30), (2, 10, 10, 10, 9)])
@pytest.mark.parametrize("mapped", [False, True])
def test_lines_are_limited_wherever_they_begin(
    lengths: tuple[int, ...], mapped: bool, write_file: WriteFile, assert_rejected: Any, small_blocks: None
) -> None:
    """In blocks that are read, and in a file with names, which is mapped into memory."""
    lines = [(f"a b {'x' * length}" if mapped else f"1 2{' ' * (length - 3)}")[:length] for length in lengths]
    lines = [line if len(line.split()) == 2 else "#" * length for line, length in zip(lines, lengths, strict=True)]
    path = write_file("a.txt", ("a b\n" if mapped else "") + "\n".join(lines))
    if max(lengths) <= 10:
        gp.read_graph(path, max_line_bytes=10)
    else:
        place = next(k for k, length in enumerate(lengths) if length > 10) + 1 + mapped
        with pytest.raises(
            FormatError, match=rf"line {place}: the line is longer than 10 bytes: .* pass max_line_bytes="
        ):
            gp.read_graph(path, max_line_bytes=10)


def test_a_line_of_a_metis_file_is_a_row(write_file: WriteFile) -> None:
    assert gp.read_graph(write_file("a.graph", "3 2\n2 3\n1\n1\n"), max_line_bytes=1).num_edges == 2


def test_progress(write_file: WriteFile, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(
        "gpu_pregel.host.superstep.progress.ProgressBar.update", lambda self, done, size: seen.append((done, size))
    )
    path = write_file("a.txt", "0 1\n1 2\n")
    gp.read_graph(path, progress=True)
    assert (8, 8) in seen
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["a.el.gz", "a.csv.zst", "a.bin.zstd", "a.mtx.gz"])
def test_an_empty_compressed_file_is_truncated(name: str, write_file: WriteFile, assert_rejected: Any) -> None:
    assert_rejected(write_file(name, b""), None, "file (it is empty): download or compress it again")


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_empty_data_is_an_empty_graph(suffix: str, write_file: WriteFile) -> None:
    packed = gzip.compress(b"") if suffix == "gz" else pa.Codec("zstd").compress(b"", asbytes=True)
    assert gp.read_graph(write_file(f"a.el.{suffix}", packed)).num_vertices == 0


@pytest.mark.parametrize("suffix", ["txt", "el", "edges.gz", "snap.zst"])
@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=40))
def test_round_trip(
    suffix: str, directed: bool, pairs: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory, equal: Any
) -> None:
    graph = gp.Graph.from_edgelist([u for u, _ in pairs], [v for _, v in pairs], num_vertices=21, directed=directed)
    path = tmp_path_factory.getbasetemp() / f"round.{suffix}"
    graph.save(path)
    assert equal(gp.read_graph(path, directed=directed), graph)


@settings(max_examples=25)
@given(weights=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_weights_are_preserved_exactly(weights: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    src = list(range(len(weights)))
    graph = gp.Graph.from_edgelist(src, [u + 1 for u in src], weights, directed=True)
    path = tmp_path_factory.getbasetemp() / "weights.wel"
    graph.save(path)
    assert gp.read_graph(path, directed=True).weights.tobytes() == graph.weights.tobytes()  # type: ignore[union-attr]


def test_written_text(tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist([1000, 7, 7], [7, 1000, 7], [1, 2, 3])
    for suffix, separator in (("wel", " "), ("csv", ","), ("tsv", "\t")):
        path = tmp_path / f"a.{suffix}"
        graph.save(path)
        lines = [f"7{separator}7{separator}3", f"7{separator}1000{separator}1", f"7{separator}1000{separator}2"]
        header = [] if suffix == "wel" else [separator.join(["source", "target", "weight"])]
        assert path.read_text() == "\n".join(header + lines) + "\n"
    graph.save(tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text().startswith("# Undirected graph: 2 vertices, 5 stored edges\n7 7 3\n")


def test_written_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equal: Any) -> None:
    monkeypatch.setattr("gpu_pregel.io.edgelist._EDGES_PER_WRITE", 10)
    graph = gp.uniform(6, edge_factor=4, seed=1)
    graph.save(tmp_path / "a.el")
    assert equal(gp.read_graph(tmp_path / "a.el", num_vertices=graph.num_vertices), graph)


def test_graphs_that_cannot_be_written(tmp_path: Path) -> None:
    plain = gp.Graph.from_edgelist([0], [1])
    heavy = gp.Graph.from_edgelist([0], [1], [2.0])
    huge = gp.Graph.from_edgelist([1], np.array([2**63], np.uint64))
    for graph, name, problem in (
        (plain, "a.wel", "use the suffix .el"),
        (heavy, "a.el", r"\.el files cannot hold weights: save as \.wel or \.pregel, or pass lossy=True to drop them"),
        (huge, "a.el", "the id 9223372036854775808 is larger than 64 bits .*: save as .pregel"),
    ):
        with pytest.raises(FormatError, match=problem):
            graph.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_snap_graphs(data: Path) -> None:
    votes = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    assert (votes.num_vertices, votes.num_stored_edges) == (7115, 103689)
    systems = gp.read_graph(data / "snap" / "as20graph.txt", directed=True)
    assert (systems.num_vertices, systems.num_stored_edges) == (6474, 26467)


def test_errors_can_be_pickled(write_file: WriteFile) -> None:
    import pickle

    with pytest.raises(FormatError) as caught:
        gp.read_graph(write_file("a.txt", "x\n"))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.line) == (str(caught.value), 1)


@pytest.mark.parametrize("name", ["a.txt", "a.snap", "a.txt.gz"])
@pytest.mark.parametrize("ids", [[0, 1], ["x", "y"]])
def test_text_files_of_this_package_state_the_direction(name: str, ids: list[Any], tmp_path: Path) -> None:
    for directed in (True, False):
        gp.Graph.from_edgelist(ids, ids[::-1], directed=directed).save(tmp_path / name)
        assert gp.read_graph(tmp_path / name).is_directed == directed
        assert gp.read_graph(tmp_path / name, directed=not directed).is_directed != directed
    gp.Graph.from_edgelist([], [], directed=True).save(tmp_path / name)
    assert gp.read_graph(tmp_path / name).is_directed


@pytest.mark.parametrize(
    "line",
    [
        "# Directed graph (each unordered pair of nodes is saved once): a.txt",
        "# Directed Node Graph",
        "# Directed graph: a.txt",
        "# c\n# Directed graph: 2 vertices, 1 stored edges",
    ],
)
def test_other_comments_state_no_direction(line: str, write_file: WriteFile) -> None:
    assert not gp.read_graph(write_file("a.txt", f"{line}\n0 1\n")).is_directed
