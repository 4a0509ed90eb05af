"""Tests of text whose ids are names: quotes, headers, choice of columns, errors with lines."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FormatError
from gpu_pregel.io import edgelist
from gpu_pregel.io._head import Head, read_head
from tests.packages import needs

pandas = needs("pandas", "test")

WriteFile = Callable[[str, str | bytes], Path]

ANN_BOB = [("ann", "bob"), ("bob", "cid")]

READABLE: list[tuple[str, str, str, dict[str, Any], list[tuple[Any, ...]]]] = [
    ("header with usual names", "a.csv", "from,to\nann,bob\nbob,cid\n", {}, ANN_BOB),
    ("names in another case", "a.csv", "Target,Source\nbob,ann\ncid,bob\n", {}, ANN_BOB),
    ("no header", "a.csv", "ann,bob\nbob,cid\n", {"header": False}, ANN_BOB),
    ("header with other names", "a.csv", "person,friend\nann,bob\nbob,cid\n", {"header": True}, ANN_BOB),
    ("names above numbers", "a.csv", "person,friend\n1,2\n2,3\n", {}, [(1, 2), (2, 3)]),
    ("names above weights", "a.csv", "ann,bob,3\nbob,cid,4\n", {"weight": None}, ANN_BOB),
    ("weights without header", "a.csv", "ann,bob,3\nbob,cid,4.5\n", {}, [("ann", "bob", 3.0), ("bob", "cid", 4.5)]),
    ("column of weights by name", "a.csv", "weight,x,source,target\n3,0,ann,bob\n", {}, [("ann", "bob", 3.0)]),
    ("third column that is no number", "a.csv", "from,to,kind\nann,bob,friend\nbob,cid,boss\n", {}, ANN_BOB),
    ("weights ignored", "a.csv", "from,to,weight\nann,bob,x\nbob,cid,\n", {"weight": None}, ANN_BOB),
    ("weights chosen", "a.csv", "from,to,weight,cost\na,b,1,7\n", {"weight": "cost"}, [("a", "b", 7.0)]),
    (
        "columns by name",
        "a.csv",
        "n,amount,to,by\n1,3,b,a\n",
        {"source": "by", "target": "to", "weight": "amount"},
        [("a", "b", 3.0)],
    ),
    (
        "columns by position",
        "a.csv",
        "n,x,b,a\n1,y,d,c\n",
        {"source": 3, "target": 2, "header": False},
        [("a", "b"), ("c", "d")],
    ),
    ("numbers by position", "a.txt", "9 8 1 2\n9 8 2 3\n", {"source": 2, "target": 3}, [(1, 2), (2, 3)]),
    ("weight by position", "a.txt", "ann bob 1 5\n", {"source": 0, "target": 1, "weight": 3}, [("ann", "bob", 5.0)]),
    ("quotes", "a.csv", 'from,to\n"ann ""a"", b","bob\nx"\n', {}, [('ann "a", b', "bob\nx")]),
    ("comment marks in quotes", "a.csv", 'from,to,note\n"#a","%b","x\n# y"\nc,d,""\n', {}, [("#a", "%b"), ("c", "d")]),
    ("quoted numbers", "a.csv", 'from,to\n"1","2"\n2,"3"\n', {}, [(1, 2), (2, 3)]),
    ("quotes in another column", "a.csv", '1,2,"x, y"\n2,3,z\n', {"weight": None}, [(1, 2), (2, 3)]),
    ("quotes in a later line", "a.csv", '1,2,x\n2,3,"y, z"\n', {"weight": None}, [(1, 2), (2, 3)]),
    ("semicolons", "a.csv", 'from;to\n"Smith, J";Doe\n', {}, [("Smith, J", "Doe")]),
    ("blanks around ids", "a.csv", "from, to\nann , bob\nbob, cid\n", {}, ANN_BOB),
    (
        "comments and blank lines",
        "a.csv",
        "# c\n\nfrom,to\n# x,y\nann,bob\n \n  % z,z\nbob,cid\n",
        {"comments": True},
        ANN_BOB,
    ),
    ("no comments", "a.csv", "from,to\n#a,b\n%c,d\n", {"comments": False}, [("#a", "b"), ("%c", "d")]),
    ("no comments, quotes", "a.csv", 'from,to\n#a,"b"\n%c,d\n', {"comments": False}, [("#a", "b"), ("%c", "d")]),
    ("no comments in text", "a.txt", "#a b\n%c d\n", {"comments": False}, [("#a", "b"), ("%c", "d")]),
    ("CRLF", "a.csv", "from,to\r\nann,bob\r\nbob,cid\r\n", {}, ANN_BOB),
    (
        "tabs",
        "a.tsv",
        "New York\tBoston\n",
        {"header": False},
        [("New York", "Boston")],
    ),
    ("text", "a.txt", "# c\nann bob\nbob\t cid \n", {}, ANN_BOB),
    ("text with weights", "a.wel", "ann bob 3\nbob cid 1e2\n", {}, [("ann", "bob", 3.0), ("bob", "cid", 100.0)]),
    ("one name makes all ids strings", "a.txt", "1 2\n007 7\nx 1\n", {}, [("007", "7"), ("1", "2"), ("x", "1")]),
    ("leading zeros of integers", "a.csv", 'from,to\n"007",8\n', {"id_type": "int"}, [(7, 8)]),
    ("leading zeros of strings", "a.csv", 'from,to\n"007",8\n7,8\n', {"id_type": "str"}, [("007", "8"), ("7", "8")]),
    ("leading zeros of weights", "a.txt", "1 2 007\n", {}, [(1, 2, 7.0)]),
    ("zeros and other columns", "a.txt", "0 10 00:05\n0 20 05:00\n", {"weight": None}, [(0, 10), (0, 20)]),
    ("signs of integers", "a.csv", "from,to\n+7,-0\n", {"id_type": "int"}, [(7, 0)]),
    ("signs of strings", "a.csv", "from,to\n+7,7\n", {"id_type": "str"}, [("+7", "7")]),
    ("signs of weights", "a.txt", "1 2 +1\n2 3 -0\n", {}, [(1, 2, 1.0), (2, 3, -0.0)]),
    ("byte order mark", "a.csv", "\ufeffann,bob\nbob,cid\n", {"header": False}, ANN_BOB),
    ("byte order mark of numbers", "a.csv", "\ufeff1,2\n2,3\n", {"id_type": "str"}, [("1", "2"), ("2", "3")]),
    ("blanks beyond ASCII", "a.csv", 'from,to\n"\xa0ann",ann\n', {}, [("\xa0ann", "ann")]),
    ("integers as strings", "a.txt", "1 2\n3 4\n", {"id_type": "str"}, [("1", "2"), ("3", "4")]),
    ("decimal commas", "a.csv", "1;2;x, y\n", {"separator": ";", "weight": None}, [(1, 2)]),
    ("blanks chosen", "a.txt", "a,b c\n", {"separator": " "}, [("a,b", "c")]),
    ("hexadecimal is a name", "a.txt", "0 1\n0x10 1\n", {}, [("0", "1"), ("0x10", "1")]),
    ("missing values are names", "a.csv", "from,to\nNA,null\nnan,None\n", {}, [("NA", "null"), ("nan", "None")]),
    ("letters beyond ASCII", "a.csv", "from,to\nJürgen,小林\n", {}, [("Jürgen", "小林")]),
    ("header alone", "a.csv", "from,to,weight\n", {}, []),
]


@pytest.mark.parametrize("blocks", ["one block", "small blocks"])
@pytest.mark.parametrize("name, content, options, expected", [r[1:] for r in READABLE], ids=[r[0] for r in READABLE])
def test_reads(
    name: str, content: str, options: Any, expected: Any, blocks: str, write_file: WriteFile, request: Any, edges: Any
) -> None:
    if blocks == "small blocks":
        request.getfixturevalue("small_blocks")
    graph = gp.read_graph(write_file(name, content), directed=True, **options)
    assert edges(graph) == sorted(expected)
    assert graph.num_vertices == len({one for edge in expected for one in edge[:2]})


def test_numbering_is_by_first_appearance(write_file: WriteFile) -> None:
    graph = gp.read_graph(write_file("a.csv", "from,to\nd,b\nc,d\na,b\n"), directed=True)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["d", "b", "c", "a"]
    numbers = gp.read_graph(write_file("a.csv", 'from,to\n"9",2\n5,"9"\n'), directed=True)
    assert numbers.ids is not None
    assert numbers.ids.tolist() == [2, 5, 9]


REJECTED: list[tuple[str, str, str | bytes, dict[str, Any], int | None, str]] = [
    (
        "leading zeros",
        "a.txt",
        "1 2\n007 2\n",
        {},
        2,
        "the id '007' has leading zeros, which integers do not keep: pass id_type=",
    ),
    (
        "plus sign",
        "a.csv",
        "from,to\n1,2\n+7,7\n",
        {},
        3,
        "the id '+7' has a sign, which integers do not keep",
    ),
    ("plus sign in text", "a.txt", "1 2\n3 +3\n", {}, 2, "the id '+3' has a sign"),
    ("minus zero", "a.csv", "from,to\n0,-0\n", {}, 2, "the id '-0' has a sign"),
    ("quoted zeros", "a.csv", 'from,to\n1,"-02"\n', {}, 2, "the id '-02' has leading zeros"),
    ("a name, not an integer", "a.txt", "1 2\nx 2\n", {"id_type": "int"}, 2, "the id 'x' is not an integer"),
    ("two separators", "a.csv", "1;2;0,5\n", {}, 1, "pass separator=',' or separator=';'"),
    (
        "comment or row",
        "a.csv",
        "from,to\na,b\n#c,d\n",
        {},
        3,
        "starts with '#': pass comments=True to skip such lines, or",
    ),
    ("after the header", "a.csv", "from,to\n#c,d\na,b\n", {}, 2, "starts with '#': pass comments=True"),
    ("of numbers", "a.tsv", "# c\n1\t2\n% 3\t4\n", {"header": False}, 3, "starts with '%': pass comments=True"),
    ("after quotes", "a.csv", 'from,to\n"a\n#",b\n#c,d\n', {}, 4, "starts with '#': pass comments=True"),
    (
        "header or edge",
        "a.csv",
        "ann,bob\nbob,cid\n",
        {},
        1,
        "'ann', 'bob' may be names of columns or ids: use",
    ),
    ("ragged", "a.csv", "from,to,x\na,b,c\n\nd,e\n", {}, 4, "2 columns ('d,e'), but the first edge (line 2) has 3"),
    ("ragged text", "a.txt", "a b\nc d e\n", {}, 2, "3 columns ('c d e'), but the first edge (line 1) has 2"),
    ("missing source", "a.csv", "by,to\na,1\n,b\n", {"header": True}, 3, "column 'by': the source is missing"),
    (
        "missing target",
        "a.csv",
        'from,to\na,b\n# c\nc," "\n',
        {"comments": True},
        4,
        "column 'to': the target is missing",
    ),
    (
        "bad weight",
        "a.csv",
        "a,b,cost\nx,y,1\nc,d,dear\n",
        {"source": "a", "target": "b", "weight": "cost"},
        3,
        "column 'cost': the weight 'dear' is not a number: pass",
    ),
    (
        "missing weight",
        "a.csv",
        "from,to,weight\na,b,1\nc,d,\n",
        {},
        3,
        "column 'weight': the weight '' is not",
    ),
    ("NaN", "a.csv", "a,b,1\nc,d,nan\n", {}, 2, "the weight is NaN"),
    ("weight that does not fit", "a.csv", "a,b,1\nc,d,2.5\n", {"weight_dtype": "int32"}, 2, "2.5 does not fit int32"),
    ("inexact weight", "a.csv", f"a,b,{2**53 + 1}\n", {}, 1, "does not fit float64 exactly: pass weight_dtype='int64'"),
    ("inexact weight of numbers", "a.wel", f"1 2 {2**53 + 1}\n", {}, 1, "does not fit float64 exactly"),
    (
        "rounded",
        "a.csv",
        "a,b,1\nc,d,16777217\n",
        {"weight_dtype": "float32"},
        2,
        "'16777217' does not fit float32 exac",
    ),
    ("rounded number", "a.wel", "1 2 16777217\n", {"weight_dtype": "float32"}, 1, "does not fit float32 exactly"),
    ("overflow", "a.csv", "a,b,1\nc,d,1e400\n", {}, 2, "the weight '1e400' does not fit float64"),
    ("overflow of numbers", "a.wel", "1 2 -1e400\n", {}, 1, "the weight '-1e400' does not fit float64"),
    ("long", "a.wel", f"1 2 {10**50 + 1}\n", {}, 1, "does not fit float64 exactly"),
    ("fraction", "a.csv", 'from,to\n"1",2\n2,1.5\n', {}, 3, "the id '1.5' has a fraction: pass id_type='str'"),
    ("large", "a.csv", f'from,to\n"1",{2**64}\n', {}, 2, "does not fit in 64 bits (signed): pass id_type='str'"),
    ("not UTF-8", "a.csv", b"from,to\na,b\n\xff,b\n", {}, 3, "is not UTF-8"),
    ("UTF-16", "a.csv", "from,to\na,b\n".encode("utf-16"), {}, 1, "is not text in UTF-8: convert the file, or pass f"),
    ("no text", "a.csv", b"\x00\x9f,\xff\n\x80,\x01\n", {}, 1, "is not text in UTF-8"),
    ("open quote", "a.csv", 'from,to\na,b\n"c,d\n', {}, 3, "is not CSV (unexpected end of data): check the quotes"),
    ("odd quotes", "a.csv", 'from,to\na",b\n', {}, None, "a quote is not closed, or the number of quotes is odd"),
    ("carriage returns", "a.csv", "from,to\na,b\rc,d\n", {}, 2, "a carriage return alone does not end a line"),
    ("names and num_vertices", "a.csv", "from,to\n1,2\nb,3\n", {"num_vertices": 5}, 3, "the id 'b' is not an integer"),
]


@pytest.mark.parametrize("blocks", ["one block", "small blocks"])
@pytest.mark.parametrize(
    "name, content, options, line, problem", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_rejects(
    name: str,
    content: str | bytes,
    options: Any,
    line: int | None,
    problem: str,
    blocks: str,
    write_file: WriteFile,
    assert_rejected: Any,
    request: Any,
) -> None:
    if blocks == "small blocks":
        request.getfixturevalue("small_blocks")
    assert_rejected(write_file(name, content), line, problem, **options)


@pytest.mark.parametrize(
    "options, problem",
    [
        ({"source": "from", "target": "whom"}, r"line 1: no column 'whom'; available columns: 'from', 'to', 'cost'"),
        ({"source": 0, "target": 3}, r"line 1: no column 3; available columns: 'from', 'to', 'cost'"),
        ({"weight": "price"}, r"line 1: no column 'price'; available columns: 'from', 'to', 'cost'"),
        ({"source": 0, "target": 1, "weight": 1}, "must be different columns, not source=0, target=1, weight=1"),
        ({"source": "from", "target": "to", "header": False}, r"header=False leaves the columns without names"),
    ],
)
def test_rejects_columns(options: Any, problem: str, write_file: WriteFile) -> None:
    with pytest.raises(ArgumentError, match=problem):
        gp.read_graph(write_file("a.csv", "from,to,cost\na,b,1\n"), **options)
    with pytest.raises(ArgumentError, match=r"line 1: no column 7; available positions: 0 to 1"):
        gp.read_graph(write_file("a.txt", "1 2\n"), source=0, target=7)


@pytest.mark.parametrize("options", [{"weight": 1.5}, {"directed": 1}, {"header": "yes"}])
def test_options_of_the_wrong_type(options: Any, write_file: WriteFile) -> None:
    with pytest.raises(ArgumentTypeError, match=f"{next(iter(options))} must be"):
        gp.read_graph(write_file("a.csv", "1,2\n"), **options)


def test_a_path_must_be_a_path() -> None:
    for path in (5, None, b"a.csv"):
        with pytest.raises(ArgumentTypeError, match="path must be a str or a path such as"):
            gp.read_graph(path)  # type: ignore[arg-type]
        with pytest.raises(ArgumentTypeError, match="path must be a str or a path such as"):
            gp.Graph.from_edgelist([0], [1]).save(path)  # type: ignore[arg-type]


def test_compressed_names(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.csv.gz", gzip.compress(b"from,to\nann,bob\n") + gzip.compress(b"bob,cid\n"))
    assert edges(gp.read_graph(path, directed=True)) == ANN_BOB


def test_names_in_a_pipe(edges: Any) -> None:
    for text, problem in ((b"ann bob\nbob cid\n", None), (b"1 2\nann bob\n", "'ann' is not an integer")):
        reading, writing = os.pipe()
        os.write(writing, text)
        os.close(writing)
        try:
            if problem is None:
                assert edges(gp.read_graph(f"/dev/fd/{reading}", "edgelist", directed=True)) == ANN_BOB
            else:
                with pytest.raises(FormatError, match=problem):
                    gp.read_graph(f"/dev/fd/{reading}", "edgelist")
        finally:
            os.close(reading)


FIELDS = ["0", "1", "23", "-1", "+4", "007", "1.5", "1e3", "0x1", "nan", "inf", "x", "", " 2", "9" * 30, "a b"]
ROWS = st.lists(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=4), max_size=5)


@settings(max_examples=200)
@given(rows=ROWS, name=st.sampled_from(["a.csv", "a.tsv", "a.txt"]), header=st.booleans(), weighted=st.booleans())
def test_the_outcome_does_not_depend_on_the_parser(
    rows: list[list[str]], name: str, header: bool, weighted: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Files that begin with numbers go to the fast parser; the parser of names must read the same or find a fault."""
    assume(any(field.strip() for row in rows for field in row))
    separator = {"a.csv": ",", "a.tsv": "\t", "a.txt": " "}[name]
    path = tmp_path_factory.getbasetemp() / name
    path.write_text("".join(separator.join(row) + "\n" for row in [["source", "target"]] * header + rows))
    options: dict[str, Any] = {} if weighted else {"weight": None}

    def outcome() -> Any:
        try:
            graph = gp.read_graph(path, directed=True, header=header, **options)
        except (ArgumentError, FormatError) as error:
            return str(error)
        src, dst, weights = graph.to_edgelist()
        return graph.to_ids(src).tolist(), graph.to_ids(dst).tolist(), None if weights is None else weights.tolist()

    def read_as_table(*arguments: Any) -> Head:
        return read_head(*arguments)._replace(is_numeric=False)

    found = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edgelist, "read_head", read_as_table)
        assert outcome() == found


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=3)


@settings(max_examples=60)
@given(pairs=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=12), quoted=st.booleans())
def test_agrees_with_pandas_and_networkx(
    pairs: list[tuple[str, str]], quoted: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "oracle.csv"
    pairs = [*pairs, ("x", "y")]  # no file of numbers alone
    frame = pandas.DataFrame(pairs, columns=["source", "target"])
    frame.to_csv(path, index=False, quoting=1 if quoted else 0)
    hash_marks = any(u[0] in "#%" for u, _ in pairs) and not quoted
    graph = gp.read_graph(path, directed=True)
    expected = networkx.from_pandas_edgelist(frame, create_using=networkx.MultiDiGraph)
    if not hash_marks:
        src, dst, _ = graph.to_edgelist()
        assert graph.num_vertices == len(expected)
        assert Counter(zip(graph.to_ids(src), graph.to_ids(dst), strict=True)) == Counter(expected.edges())


def test_many_lines(tmp_path: Path) -> None:
    """Several blocks of Arrow, quoted fields that span lines, and comments, against pandas."""
    random = np.random.default_rng(1)
    names = [f"user {number}" for number in range(5000)]
    ends = random.integers(0, 5000, (2, 120_000))
    frame = pandas.DataFrame({"from": np.take(names, ends[0]), "to": np.take(names, ends[1])})
    frame["note"] = ["line\n# break" if row % 1000 == 0 else "plain" for row in range(len(frame))]
    frame["amount"] = random.random(len(frame))
    frame.to_csv(tmp_path / "a.csv", index=False)
    graph = gp.read_graph(tmp_path / "a.csv", source="from", target="to", weight="amount", directed=True)
    expected = frame.assign(vertex=pandas.factorize(np.stack([frame["from"], frame["to"]], 1).ravel())[0][0::2])
    assert graph.weights is not None
    assert graph.num_vertices == len(set(frame["from"]) | set(frame["to"]))
    assert graph.out_degrees.tolist() == np.bincount(expected["vertex"], minlength=graph.num_vertices).tolist()
    assert sorted(graph.weights.tolist()) == sorted(frame["amount"].tolist())


@pytest.mark.parametrize("ends", ["0 1", "a b"])
def test_floats_are_rounded_on_request(ends: str, write_file: WriteFile) -> None:
    text = "".join(f"{ends} {weight}\n" for weight in ("16777217.5", "1e30", "inf", "16777216", "0.1"))
    weights = gp.read_graph(write_file("a.wel", text), directed=True, weight_dtype="float32").weights
    assert weights is not None
    assert sorted(weights.tolist()) == sorted(np.array([16777217.5, 1e30, np.inf, 16777216, 0.1], np.float32).tolist())
