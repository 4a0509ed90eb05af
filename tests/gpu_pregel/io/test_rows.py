"""Tests of the kernels that parse text with names: the same graph or error as through Arrow's reader, and pandas's."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.io import _rows, _table
from tests.packages import needs

pandas = needs("pandas", "test")


def outcome(path: Path, *, by_kernels: bool, **options: Any) -> Any:
    """Read a file with or without the kernels: ids, edges and weights, or the text of the error."""
    with patch.object(_table, "can_parse", _rows.can_parse if by_kernels else lambda layout: False):
        try:
            graph = gp.read_graph(path, directed=True, **options)
        except FormatError as error:
            return str(error)
    weights = None if graph.weights is None else (graph.weights.dtype, graph.weights.tolist())
    ids = None if graph.ids is None else graph.ids.tolist()
    return ids, graph.indptr.tolist(), graph.indices.tolist(), weights


def parsed_by_kernels(path: Path, **options: Any) -> bool:
    """Return whether the kernels can handle all rows of a file."""
    results = []

    def parse(parser: _rows.RowParser, text: Any) -> bool:
        results.append(original(parser, text))
        return results[-1]

    original = _rows.RowParser.parse
    with patch.object(_rows.RowParser, "parse", parse):
        gp.read_graph(path, **options)
    return bool(results) and all(results)


SIMPLE = {
    "plain": "ann,bob,1\nbob,cid,2.5\n",
    "header": "from,to,weight\nann,bob,1\n",
    "quotes": '"ann","bob, jr",1\n"bob","c id",-2e-3\n',
    "quotes in some rows": 'ann,bob,1\n"ann",cid,2\n',
    "CRLF": "ann,bob,1\r\nbob,cid,2\r\n",
    "no line feed at the end": "ann,bob,1\nbob,cid,2",
    "blanks": " ann ,bob\t, 1\nbob,cid,2\n",
    "blank lines and comments": '\nann,bob,1\n\n  \n# x, "y\n  % z\r\nbob,cid,2\n\n',
    "other letters": "é,日本語,1\nБоб,é,2\n",
    "other blanks": "\u00a0ann,bob,1\nann,bob\u2003,2\n",
    "semicolons": "ann;bob;1\nbob;cid;2\n",
    "many columns": 'x,ann,"q,",bob,7\ny,bob,,cid,8\n',
    "numbers and names": "1,bob,1\n01,cid,2\n",
    "only numbers in quotes": '"1","7",1\n"7","9",2\n',
    "digits": "ann,bob,0.30721234567890123\nbob,cid,123456789012345.6\ncid,dora,.5\ndora,ann,+5.\n",
}
IRREGULAR = {
    "line feed in quotes": '"ann","bo\nb",1\nbob,cid,2\n',
    "escaped quote": '"an""n",bob,1\nbob,cid,2\n',
    "blank before a quote": 'ann, "bob",1\nbob,cid,2\n',
    "infinity": "ann,bob,inf\nbob,cid,2\n",
    "large weight": "ann,bob,9007199254740992.5\nbob,cid,1e300\n",
}
FAULTY: dict[str, str | bytes] = {
    "missing id": "ann,bob,1\n,cid,2\n",
    "missing quoted id": 'ann,bob,1\n"",cid,2\n',
    "too few columns": "ann,bob,1\nbob,cid\n",
    "too many columns": "ann,bob,1\nbob,cid,2,3\n",
    "no number": "ann,bob,1\nbob,cid,0x10\n",
    "no weight": "ann,bob,1\nbob,cid,\n",
    "NaN": "ann,bob,1\nbob,cid,nan\n",
    "open quote": 'ann,bob,1\n"bob,cid,2\n',
    "quote in a field": 'ann,bob,1\nb"ob,cid,2\n',
    "carriage return": "ann,bob,1\nbo\rb,cid,2\n",
    "not UTF-8": b"ann,bob,1\nb\xffb,cid,2\n",
}


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "a.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("case", [*SIMPLE, *IRREGULAR])
def test_the_same_graph_as_by_arrow(case: str, tmp_path: Path) -> None:
    path = write(tmp_path, {**SIMPLE, **IRREGULAR}[case])
    options: Any = {"source": 1, "target": 3, "weight": 4} if case == "many columns" else {}
    options["comments"] = True
    if case != "header":
        options["header"] = False
    assert parsed_by_kernels(path, **options) == (case in SIMPLE)
    expected = outcome(path, by_kernels=False, **options)
    assert not isinstance(expected, str)
    assert outcome(path, by_kernels=True, **options) == expected


@pytest.mark.parametrize("case", FAULTY)
def test_the_same_error_as_by_arrow(case: str, tmp_path: Path) -> None:
    path = write(tmp_path, FAULTY[case])
    expected = outcome(path, by_kernels=False, header=False)
    assert isinstance(expected, str)
    assert outcome(path, by_kernels=True, header=False) == expected


@given(
    st.lists(st.text(st.sampled_from('ab1é ,"\r\n\t#%.'), max_size=12), max_size=12),
    st.sampled_from([",", "\t", ";"]),
    st.sampled_from([1, 3, 8, 1 << 16]),
)
@settings(deadline=None, max_examples=300)
def test_random_text(tmp_path_factory: pytest.TempPathFactory, lines: list[str], mark: str, chunk: int) -> None:
    path = write(tmp_path_factory.mktemp("rows"), f"x{mark}y\n" + "\n".join(lines).replace(",", mark))
    with patch.object(_rows, "_CHUNK", chunk):
        for comments in (True, False, "auto"):
            options = {"header": False, "comments": comments}
            assert outcome(path, by_kernels=True, **options) == outcome(path, by_kernels=False, **options)


@given(st.lists(st.tuples(*[st.text("ab é,日", min_size=1, max_size=9)] * 2, st.floats(-1e15, 1e15)), min_size=1))
@settings(deadline=None)
def test_random_tables_as_pandas(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, float]]) -> None:
    """Weights with up to 17 digits keep their bits; blocks and chunks end anywhere."""
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    frame = pandas.DataFrame([("s", "t", 0.0), *rows], columns=["source", "target", "weight"])
    frame.to_csv(path, index=False, quoting=csv.QUOTE_NONNUMERIC)
    frame["source"], frame["target"] = frame["source"].str.strip(" "), frame["target"].str.strip(" ")
    if not (frame["source"].str.len() * frame["target"].str.len()).all():
        with pytest.raises(FormatError, match="is missing"):
            gp.read_graph(path)
        return
    with patch.object(_rows, "_CHUNK", 32), patch.object(_rows, "_PART_BYTES", 64):
        graph = gp.read_graph(path, directed=True)
    _, names = pandas.factorize(frame[["source", "target"]].to_numpy(object).ravel())
    assert graph.ids is not None
    assert graph.ids.tolist() == names.tolist()
    read = sorted(map(tuple, graph.to_pandas().to_numpy(object).tolist()))
    assert read == sorted(frame.itertuples(index=False, name=None))


def test_many_names(tmp_path: Path) -> None:
    """Large enough for several blocks and a table that grows."""
    draw = np.random.default_rng(1).integers(0, 300_000, (500_000, 2))
    frame = pandas.DataFrame(draw, columns=["source", "target"]).map(lambda v: f"vertex number {v:09}")
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    assert parsed_by_kernels(path)
    graph = gp.read_graph(path, directed=True)
    codes, names = pandas.factorize(frame.to_numpy(object).ravel())
    assert graph.ids is not None
    assert graph.ids.tolist() == names.tolist()
    expected = gp.Graph.from_edgelist(codes[::2], codes[1::2], directed=True)
    assert np.array_equal(graph.indptr, expected.indptr)
    assert np.array_equal(graph.indices, expected.indices)


def test_names_with_renumber_false(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"a\.csv: the id 'ann' is a name: omit renumber=False"):
        gp.read_graph(write(tmp_path, "ann,bob\n"), header=False, renumber=False)
