"""The trace of a run, with one row per superstep: as data, a text or HTML table, and a plot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from reprlib import Repr
from typing import TYPE_CHECKING, Any, overload

from gpu_pregel.host.arguments import require

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from gpu_pregel.host.devices.device import Device

AGGREGATED = "aggregated."
"""Begins the names of the columns of aggregates, so that these may have the names of other columns."""
_LONGEST = 60
"""Longer texts are shortened, among aggregates."""
_MOST_BITS = 192
"""Larger integers have more than that many characters."""
_SHOWN_ROWS = 40
"""Of longer traces, only the first and last rows are shown."""
_MARKED_ROWS = 60
"""Plots of at most this many supersteps mark each of them."""
_NUMERIC = {
    "superstep": "superstep",
    "direction": "direction",
    "rule": "rule",
    "active_vertices": "active vertices",
    "active_edges": "active edges",
    "messages": "messages",
    "applied": "applied",
    "seconds": "ms",
    "compile_seconds": "compile ms",
    "bytes": "MB",
}
_AGENTS = {
    "superstep": "superstep",
    "computed": "computed",
    "active_vertices": "active vertices",
    "messages": "messages",
    "failed": "failed",
    "retries": "retries",
    "seconds": "ms",
}
_MIXED = {
    **{key: text for key, text in _NUMERIC.items() if key not in ("seconds", "compile_seconds", "bytes")},
    **{key: key for key in ("woken", "computed", "failed", "retries", "lag")},
    **{key: _NUMERIC[key] for key in ("seconds", "compile_seconds", "bytes")},
}
"""The column headings of a table, by key of a row."""
_SUMMED = ("messages", "applied", "woken", "computed", "failed", "retries", "seconds", "compile_seconds", "bytes")
_WORDS = ("direction", "rule")
"""Columns of words, which are aligned to the left."""
_INK, _MUTED, _PALE = "#1f2933", "#66707a", "#e4e7eb"
_VERTICES, _EDGES = "#d9480f", "#486581"
_COMPILING = "#829ab1"
_NULLABLE: dict[type, str] = {int: "Int64", bool: "boolean"}
"""The dtypes of columns with missing values."""
_SHORT = Repr()
_SHORT.maxother = _SHORT.maxstring = _LONGEST
_DIRECTIONS = {"init": "#9fb3c8", "push": "#f0b429", "pull": "#2680c2"}


class Trace(Sequence[dict[str, Any]]):
    """The statistics of each superstep of a run; an immutable sequence of rows.

    For a vertex program, a row is a dict of ``superstep``; ``direction`` ("init", "push" or "pull"); ``rule``, what
    chose it ("1/20", Gemini's rule; "unexplored", for a search: 1/20 of the edges that nobody has sent along yet and
    of the vertices, where these are fewer than the edges; "cost", a model of the GPU; "mode", the caller; "only push"
    where a GPU does not pull; "only" if there is no choice);
    ``active_vertices`` and ``active_edges`` after the superstep; ``messages``, the number sent, taken or not;
    ``applied``, the number of vertices that ran ``apply``; ``seconds``; ``compile_seconds``, the time to compile the
    superstep's kernels or to load them from disk, which ``seconds`` excludes; ``bytes``, the memory traffic of a model
    that streams each array once; and ``aggregated.NAME``, the aggregate of that name: where no vertex has applied,
    as in superstep 0, its identity, or None for "min" and "max".

    For agents, a row is a dict of ``superstep``; ``computed``, the number of vertices computed; ``active_vertices``
    after the superstep; ``messages``, the number sent; ``failed``, the number of failed vertices; ``retries``, the
    number of attempts beyond the first of each vertex; ``seconds``; and ``aggregated.NAME`` as above.

    An aggregate other than a number, bool or None is a text of at most 60 characters: a text itself, or the ``repr`` of
    other data. An aggregate of agents that is stored in more than 4096 bytes is the number of these bytes as a text.

    For a vertex program with agents, a row has the columns of both, in which ``active_vertices``, ``messages`` and
    ``applied`` count numeric vertices; ``woken``, the number of vertices for which ``wake`` was true; and ``lag``, the
    number of supersteps that the agents computed are late.

    Parameters
    ----------
    rows : iterable of dict

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> hops = gp.VertexProgram(
    ...     value=np.int64,
    ...     init=lambda ctx: 0 if ctx.vertex == 0 else -1,
    ...     initially_active=lambda ctx: ctx.vertex == 0,
    ...     message=lambda value, ctx: value + 1,
    ...     combine="min",
    ...     apply=lambda value, incoming, ctx: incoming if value < 0 else value,
    ... )
    >>> trace = gp.run(gp.Graph.from_edgelist([0, 1], [1, 2]), hops).trace
    >>> len(trace), trace[1]["active_vertices"], [row["messages"] for row in trace]
    (4, 1, [0, 1, 2, 1])
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        self._rows = tuple(dict(row) for row in rows)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Trace: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | Trace:
        if isinstance(index, slice):
            return Trace(self._rows[index])
        # A copy, so that editing a row does not change the trace.
        return dict(self._rows[index])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(dict, self._rows)

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, Trace) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(tuple(row.items()) for row in self._rows))

    def __repr__(self) -> str:
        compiling = f", {_milliseconds(self._sum('compile_seconds'))} ms compiling" if self._compiled else ""
        return f"<Trace: {len(self)} supersteps, {_milliseconds(self._sum('seconds'))} ms{compiling}>"

    def __str__(self) -> str:
        return self.to_text()

    @property
    def _headings(self) -> dict[str, str]:
        row = self._rows[-1] if self._rows else {}
        known = _NUMERIC if "computed" not in row else _MIXED if "direction" in row else _AGENTS
        return known | {key: key.removeprefix(AGGREGATED) for key in row if key.startswith(AGGREGATED)}

    @property
    def _compiled(self) -> list[dict[str, Any]]:
        """The rows of supersteps in which kernels were compiled or loaded."""
        return [row for row in self._rows if row.get("compile_seconds")]

    def _sum(self, key: str) -> Any:
        """Return the sum of a column; rows of older checkpoints lack some columns."""
        return sum(row.get(key, 0) for row in self._rows)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per superstep."""
        pandas = require("pandas", "Trace.to_pandas")
        table = pandas.DataFrame(list(self), columns=list(self._headings))
        for name in table.columns[table.isna().any()]:
            kinds = {type(row.get(name)) for row in self._rows} - {type(None)}
            if len(kinds) == 1 and (
                dtype := _NULLABLE.get(*kinds)
            ):  # a float would not have all of an integer's digits
                table[name] = pandas.array([row.get(name) for row in self._rows], dtype)
        return table

    def to_text(self) -> str:
        """Return an aligned table with one line per superstep and a line of totals; long traces omit the middle."""
        head, tail, hidden = self._shown()
        headings = self._headings
        above, below = [[_cells(row, headings) for row in rows] for rows in (head, tail)]
        table = [list(headings.values()), *above, *below, self._totals()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [_line(row, headings, widths) for row in table]
        if hidden:
            lines.insert(1 + len(above), f"{'…':>{widths[0]}}  {hidden}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the table of :meth:`to_text` as HTML for notebooks."""
        head, tail, hidden = self._shown()
        headings = self._headings
        above, below = ("".join(_html_row("td", _cells(row, headings)) for row in rows) for rows in (head, tail))
        gap = f'<tr><td colspan="{len(headings)}" style="text-align:center">… {hidden} …</td></tr>' if hidden else ""
        return (
            f"<table><thead>{_html_row('th', headings.values())}</thead>"
            f"<tbody>{above}{gap}{below}</tbody><tfoot>{_html_row('th', self._totals())}</tfoot></table>"
        )

    def plot(self) -> Figure:
        """Plot active vertices and edges (or messages) above, and the time of each superstep by direction below.

        The bars exclude the time of compilation: triangles mark the supersteps in which kernels were compiled or
        loaded, and the legend has the sum.

        Returns
        -------
        matplotlib.figure.Figure
            Not attached to a window: notebooks display it, ``savefig`` writes it.

        Raises
        ------
        MissingPackageError
            matplotlib is not installed.
        """
        require("matplotlib", "Trace.plot")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 4.8), facecolor="white", layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 2]})
        self._plot_activity(above)
        self._plot_times(below)
        below.set_xlim(-0.6, max(len(self) - 0.4, 0.6))
        below.locator_params(axis="x", integer=True, min_n_ticks=1)
        above.set_title(f"{self!r}"[len("<Trace: ") : -1], loc="left", fontsize=10.5, color=_INK, fontweight="bold")
        below.set_xlabel("superstep", fontsize=9, color=_MUTED)
        return figure

    def _plot_activity(self, axis: Any) -> None:
        steps = [row["superstep"] for row in self._rows]
        mark = {"marker": "o", "markersize": 4} if len(self) <= _MARKED_ROWS else {}
        edges = "active_edges" if "active_edges" in self._headings else "messages"
        for key, label, color in (
            (edges, edges.removeprefix("active_"), _EDGES),
            ("active_vertices", "vertices", _VERTICES),
        ):
            counts = [row[key] for row in self._rows]
            axis.plot(steps, counts, color=color, linewidth=1.6, label=label, clip_on=False, zorder=3, **mark)
        # Logarithmic from 1, with space for 0, where runs end.
        axis.set_yscale("symlog", linthresh=1, linscale=0.5)
        most = max((row[edges] + row["active_vertices"] for row in self._rows), default=0)
        axis.set_ylim(0, max(10, 2 * most))
        axis.yaxis.set_major_formatter(_format_count)
        _style_axis(axis, "active", 2)

    def _plot_times(self, axis: Any) -> None:
        directions = [row.get("direction", "computed") for row in self._rows]
        for direction in dict.fromkeys([*_DIRECTIONS, *directions]):
            rows = [row for row, of_row in zip(self._rows, directions, strict=True) if of_row == direction]
            if rows:
                times = [1000 * row["seconds"] for row in rows]
                style = {"color": _DIRECTIONS.get(direction, _MUTED), "width": 0.8 if len(self) <= 200 else 1.0}
                axis.bar([row["superstep"] for row in rows], times, label=direction, zorder=2, **style)
        if compiled := self._compiled:
            marked = [row["superstep"] for row in compiled]
            times = [1000 * row["seconds"] for row in compiled]
            label = f"compiling, {_milliseconds(self._sum('compile_seconds'))} ms"
            axis.plot(marked, times, "v", color=_COMPILING, label=label, clip_on=False, zorder=3)
        _style_axis(axis, "milliseconds", 1 + len(_DIRECTIONS))

    def _shown(self) -> tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]], str]:
        """Return the first rows, the last rows, and a description of the rows between."""
        if len(self) <= _SHOWN_ROWS:
            return self._rows, (), ""
        half = _SHOWN_ROWS // 2
        return self._rows[:half], self._rows[-half:], f"{len(self) - 2 * half:,} more supersteps"

    def _totals(self) -> list[str]:
        """Return the last line of the table, with sums of the columns that can be added."""
        cells = [_cell(key, self._sum(key)) if key in _SUMMED else "" for key in self._headings]
        return ["total", *cells[1:]]


def stats_of(
    device: Device, reason: str, rows: Sequence[dict[str, Any]], compile_seconds: float | None = None, **more: Any
) -> dict[str, Any]:
    """Return the statistics of what has these rows, on a device that was chosen for a reason.

    Compiling took ``compile_seconds``; None: the sum of those of the rows.
    """
    if compile_seconds is None:
        compile_seconds = sum(row["compile_seconds"] for row in rows)
    return {
        "device": device.name,
        "device_reason": reason,
        "threads": device.threads,
        **more,
        "seconds": sum(row["seconds"] for row in rows),
        "compile_seconds": compile_seconds,
    }


def aggregate_columns(names: Iterable[str], totals: Iterable[Any]) -> dict[str, Any]:
    """Return the columns of a row for the aggregates of a superstep."""
    return {f"{AGGREGATED}{name}": traced_value(total) for name, total in zip(names, totals, strict=True)}


def without_extremes(combines: Iterable[Any], totals: Iterable[Any], identities: Iterable[Any]) -> list[Any]:
    """Return the aggregates of a superstep in which no vertex has applied: None for "min" and "max" of nothing."""
    return [
        None if combine in ("min", "max") and total == identity else total
        for combine, total, identity in zip(combines, totals, identities, strict=True)
    ]


def traced_value(value: Any) -> Any:
    """Return an aggregate as a row has it: a Python number, bool, None or a short text, which can be hashed."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:  # without importing NumPy
        value = value.item()
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str:
        text = value
    else:
        try:
            text = _SHORT.repr(value)
        except Exception:  # of a class with the name of a standard one, for example
            text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _cells(row: dict[str, Any], headings: Iterable[str]) -> list[str]:
    """Format a row, with times in milliseconds and sizes in megabytes."""
    return [_cell(key, row.get(key, "")) for key in headings]


def _cell(key: str, value: Any) -> str:
    if key in ("seconds", "compile_seconds") and value != "":
        return _milliseconds(value)
    if value is None:
        return ""
    if key == "bytes":
        return f"{value / 1e6:,.1f}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    return f"{value:,}" if value.bit_length() <= _MOST_BITS else f"an integer of {value.bit_length():,} bits"


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.2f}"


def _line(cells: Sequence[str], headings: Iterable[str], widths: Sequence[int]) -> str:
    """Align cells to the right, except the direction and its rule."""
    pairs = zip(headings, cells, widths, strict=True)
    return "  ".join(f"{cell:<{width}}" if key in _WORDS else f"{cell:>{width}}" for key, cell, width in pairs)


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def _format_count(value: float, _: int) -> str:
    """Format a count on an axis: 0, 1, 10, 100, 1 k, 10 k, 1 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _style_axis(axis: Any, label: str, columns: int) -> None:
    """Set the colours, grid and legend shared by both panels."""
    axis.set_ylabel(label, fontsize=9, color=_MUTED)
    axis.tick_params(which="both", labelsize=8, colors=_MUTED, length=2)
    axis.grid(axis="y", color=_PALE, linewidth=0.8, zorder=0)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.spines["bottom"].set_color("#cbd2d9")
    place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
    handles, labels = axis.get_legend_handles_labels()
    if handles:
        look = {"frameon": False, "fontsize": 9, "labelcolor": _INK, "handlelength": 1.2, "columnspacing": 1.4}
        axis.legend(handles, labels, ncols=columns, **place, **look)
