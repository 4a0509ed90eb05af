"""Tests of traces: sequences of rows, text and HTML tables, plots."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import MissingPackageError
from gpu_pregel.host.superstep.trace import Trace
from tests.programs import LABELS


def row(superstep: int, **changes: Any) -> dict[str, Any]:
    """A row with recognizable figures."""
    plain = {
        "superstep": superstep,
        "direction": "pull" if superstep else "init",
        "rule": "1/20" if superstep else "only",
        "active_vertices": 1_000_000 >> superstep,
        "active_edges": 16_000_000 >> superstep,
        "messages": 100 * superstep,
        "applied": 10 * superstep,
        "seconds": 0.25,
        "compile_seconds": 0.0,
        "bytes": 2_000_000,
    }
    return {**plain, **changes}


@pytest.fixture
def short() -> Trace:
    return Trace([row(0), row(1), row(2, direction="push", active_vertices=0, active_edges=0)])


def long(count: int) -> Trace:
    return Trace(row(k) for k in range(count))


def test_a_trace_is_an_immutable_sequence_of_rows(short: Trace) -> None:
    assert isinstance(short, Sequence)
    assert (len(short), len(Trace())) == (3, 0)
    assert short[0] == row(0)
    assert short[-1]["direction"] == "push"
    assert [one["superstep"] for one in short] == [0, 1, 2]
    assert [one["superstep"] for one in reversed(short)] == [2, 1, 0]
    assert short[1:] == Trace([short[1], short[2]])
    assert short != Trace()
    assert hash(short) == hash(Trace(list(short)))
    with pytest.raises(IndexError):
        short[3]
    for given in (short[0], next(iter(short))):
        given["seconds"] = 9.0
    assert short[0]["seconds"] == 0.25
    with pytest.raises(TypeError):
        short[0] = {}  # type: ignore[index]
    assert repr(short) == "<Trace: 3 supersteps, 750.00 ms>"


def test_given_rows_are_copied() -> None:
    given = [row(0)]
    trace = Trace(given)
    given[0]["seconds"] = 9.0
    assert trace[0]["seconds"] == 0.25


def test_a_run_has_a_trace() -> None:
    program = gp.VertexProgram(
        value=np.int32,
        init=lambda ctx: 0 if ctx.vertex == 0 else -1,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value + 1,
        combine="min",
        apply=lambda value, incoming, ctx: incoming if value < 0 else value,
    )
    path = gp.Graph.from_edgelist(range(4), range(1, 5))
    result = gp.run(path, program, mode="push")
    trace = result.trace
    assert isinstance(trace, Trace)
    assert result.supersteps == len(trace) == 6
    assert [one["superstep"] for one in trace] == list(range(6))
    assert [one["active_vertices"] for one in trace] == [1, 1, 1, 1, 1, 0]
    assert [one["active_edges"] for one in trace] == [1, 2, 2, 2, 1, 0]
    assert [one["messages"] for one in trace] == [0, 1, 2, 2, 2, 1]
    assert [one["direction"] for one in trace] == ["init"] + 5 * ["push"]


def test_the_table_is_aligned_and_ends_with_totals(short: Trace) -> None:
    assert str(short) == short.to_text()
    assert short.to_text().splitlines() == [
        "superstep  direction  rule  active vertices  active edges  messages  applied      ms  compile ms   MB",
        "        0  init       only        1,000,000    16,000,000         0        0  250.00        0.00  2.0",
        "        1  pull       1/20          500,000     8,000,000       100       10  250.00        0.00  2.0",
        "        2  push       1/20                0             0       200       20  250.00        0.00  2.0",
        "    total                                                       300       30  750.00        0.00  6.0",
    ]


def test_integers_with_more_digits_than_python_converts_are_described() -> None:
    row = {"superstep": 0, "computed": 1, "messages": 2, "seconds": 0.25, "bytes": 0, "aggregated.large": 10**5000}
    assert Trace([row]).to_text().splitlines()[1].endswith("  an integer of 16,610 bits")


def test_the_table_of_an_empty_trace_has_a_heading_and_totals() -> None:
    lines = Trace().to_text().splitlines()
    assert len(lines) == 2
    assert lines[1].split() == ["total", "0", "0", "0.00", "0.00", "0.0"]


@pytest.mark.parametrize(("count", "hidden"), [(40, 0), (41, 1), (3000, 2960)])
def test_long_traces_are_shortened_in_the_middle(count: int, hidden: int) -> None:
    trace = long(count)
    lines = trace.to_text().splitlines()
    html = trace._repr_html_()
    rows = re.findall(r"<tr><td>([\d,]+)</td>", html)
    steps = [int(line.split()[0].replace(",", "")) for line in lines[1:-1] if "more" not in line]
    half = (count - hidden) // 2
    assert steps == [*range(half), *range(count - half, count)]
    assert [int(step.replace(",", "")) for step in rows] == steps
    assert (f"{hidden:,} more supersteps" in lines[21]) == (f"{hidden:,} more supersteps" in html) == bool(hidden)
    assert f"{100 * sum(range(count)):,}" in lines[-1]


def test_html_is_well_formed_and_escaped() -> None:
    from xml.etree import ElementTree

    trace = Trace([row(0, direction="<b>&"), *long(50)])
    table = ElementTree.fromstring(trace._repr_html_())
    assert "<b>" not in trace._repr_html_()
    heads = [cell.text for cell in table.findall("thead/tr/th")]
    assert heads[:4] == ["superstep", "direction", "rule", "active vertices"]
    cells = [cell.text for cell in table.findall("tbody/tr")[0]]
    assert cells[:5] == ["0", "<b>&", "only", "1,000,000", "16,000,000"]
    assert len(cells) == len(heads) == len(table.findall("tfoot/tr/th"))


def test_to_pandas_has_one_row_per_superstep(short: Trace) -> None:
    frame = short.to_pandas()
    assert list(frame.columns) == list(row(0))
    assert frame.to_dict("records") == list(short)
    empty = Trace().to_pandas()
    assert (len(empty), list(empty.columns)) == (0, list(row(0)))


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_pandas"), ("matplotlib", "plot")])
def test_missing_optional_packages_are_reported(
    package: str, method: str, short: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingPackageError, match=f"Trace.{method} needs the package {package}: pip install {package}$"
    ):
        getattr(short, method)()


def test_the_plot_shows_activity_and_the_time_by_direction(short: Trace, tmp_path: Path) -> None:
    figure: Any = short.plot()
    above, below = figure.axes
    lines = {line.get_label(): list(line.get_ydata()) for line in above.lines}
    assert lines == {"vertices": [1_000_000, 500_000, 0], "edges": [16_000_000, 8_000_000, 0]}
    assert above.get_yscale() == "symlog"
    bars = {bar.get_label(): [(p.get_x() + p.get_width() / 2, p.get_height()) for p in bar] for bar in below.containers}
    assert bars == {"init": [(0, 250)], "pull": [(1, 250)], "push": [(2, 250)]}
    colors = {bar.get_label(): bar.patches[0].get_facecolor() for bar in below.containers}
    assert len(set(colors.values())) == 3
    assert [text.get_text() for text in below.get_legend().get_texts()] == ["init", "push", "pull"]
    figure.savefig(tmp_path / "trace.png")
    assert (tmp_path / "trace.png").stat().st_size > 10_000


def test_compiling_is_shown_apart_from_the_run_time() -> None:
    trace = Trace([row(0, compile_seconds=1.5), row(1, compile_seconds=0.75), row(2)])
    assert repr(trace) == "<Trace: 3 supersteps, 750.00 ms, 2,250.00 ms compiling>"
    lines = trace.to_text().splitlines()
    assert [line.split()[-3:-1] for line in lines[1:]] == [
        ["250.00", "1,500.00"],
        ["250.00", "750.00"],
        ["250.00", "0.00"],
        ["750.00", "2,250.00"],
    ]
    figure: Any = trace.plot()
    below = figure.axes[1]
    (marks,) = below.lines
    assert (list(marks.get_xdata()), list(marks.get_ydata())) == ([0, 1], [250, 250])
    assert {patch.get_height() for bar in below.containers for patch in bar} == {250}
    texts = [text.get_text() for text in below.get_legend().get_texts()]
    assert sorted(texts) == ["compiling, 2,250.00 ms", "init", "pull"]


def test_rows_of_a_checkpoint_without_compile_times_are_shown(tmp_path: Path) -> None:
    old = row(0)
    del old["compile_seconds"]
    trace = Trace([old, row(1, compile_seconds=0.5)])
    assert [line.split()[-3:-1] for line in trace.to_text().splitlines()[1:]] == [
        ["0", "250.00"],
        ["250.00", "500.00"],
        ["500.00", "500.00"],
    ]
    trace.plot().savefig(tmp_path / "trace.png")


@pytest.mark.parametrize("count", [0, 1, 300])
def test_every_trace_can_be_plotted(count: int, tmp_path: Path) -> None:
    long(count).plot().savefig(tmp_path / "trace.svg")


def test_plotting_uses_no_global_state_and_importing_is_light() -> None:
    program = (
        "import sys; from gpu_pregel.host.superstep.trace import Trace;"
        "print('numpy' in sys.modules, 'pandas' in sys.modules);"
        "Trace().plot(); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["False"] * 3


def test_a_run_of_both_kinds_of_vertices_shows_the_columns_of_both() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True)
    agents = gp.Agents(lambda ctx: None)
    trace = gp.run(graph, LABELS, device="python", agents=agents, wake=lambda old, new, ctx: new < old).trace
    frame = trace.to_pandas()
    assert set(trace[0]) == set(frame.columns)
    assert frame[["direction", "applied", "woken", "computed", "lag"]].iloc[2].tolist() == ["pull", 1, 1, 2, 0]
    heading, *_, totals = trace.to_text().splitlines()
    assert heading.split()[-9:-4] == ["woken", "computed", "failed", "retries", "lag"]
    assert totals.split()[:5] == ["total", "3", "3", "3", "3"]
    assert [axis.get_ylabel() for axis in trace.plot().axes] == ["active", "milliseconds"]
