"""The chart of a ``cc`` report: a panel per graph, a row per contestant, quartiles as whiskers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks._measure import format_seconds
from benchmarks.peers import OURS

_INK, _MUTED, _OURS, _OTHERS = "#1f2933", "#66707a", "#d9480f", "#9fb3c8"
_TIMES = "\N{MULTIPLICATION SIGN}"
_LOG_RATIO = 12.0
"""The axis is logarithmic if the slowest time divided by the fastest exceeds this."""


def draw(report: dict[str, Any], path: Path) -> None:
    """Draw the report to ``path``, whose suffix selects the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = [(graph, _ranked(graph)) for graph in report["graphs"]]
    panels = [(graph, entries) for graph, entries in panels if entries]
    if not panels:
        raise ValueError("nothing to draw: no contestant finished")
    rows = [len(entries) for _, entries in panels]
    height = 1.2 + sum(0.34 * count + 0.95 for count in rows)
    figure = Figure(figsize=(9, height), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(panels), 1, gridspec_kw={"height_ratios": rows}, squeeze=False)[:, 0]
    for axis, (graph, entries) in zip(axes, panels, strict=True):
        _draw_panel(axis, graph, entries)
    _draw_texts(figure, report, height)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)


def _ranked(graph: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the contestants with a correct result, fastest first."""
    finished = [entry for entry in graph["contestants"] if entry["median"] is not None and entry["error"] is None]
    return sorted(finished, key=lambda entry: float(entry["median"]))


def _draw_panel(axis: Any, graph: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    medians = [1e3 * entry["median"] for entry in entries]
    lower = [1e3 * (entry["median"] - entry["quartiles"][0]) for entry in entries]
    upper = [1e3 * (entry["quartiles"][1] - entry["median"]) for entry in entries]
    places = range(len(entries))
    colors = [_OURS if entry["name"] == OURS.name else _OTHERS for entry in entries]
    whiskers = {"fmt": "none", "ecolor": _INK, "elinewidth": 1, "capsize": 2.5, "zorder": 4}
    axis.errorbar(medians, places, xerr=[lower, upper], **whiskers)
    farthest = max(median + above for median, above in zip(medians, upper, strict=True))
    logarithmic = max(medians) > _LOG_RATIO * min(medians)
    if logarithmic:
        # Bars need a zero, which a logarithmic axis lacks; draw points instead.
        axis.set_xscale("log")
        axis.set_xlim(min(medians) / 2, farthest * 8)
        axis.hlines(places, min(medians) / 2, medians, color=colors, linewidth=1.6, zorder=2)
        axis.scatter(medians, places, s=58, color=colors, zorder=3)
        axis.set_ylim(-0.6, len(entries) - 0.4)
    else:
        axis.set_xlim(0, farthest * 1.25)
        axis.barh(places, medians, height=0.68, color=colors, zorder=2)
    for place, entry in zip(places, entries, strict=True):
        right = 1e3 * max(entry["median"], entry["quartiles"][1])
        weight = "bold" if entry["name"] == OURS.name else "normal"
        text = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "fontsize": 9, "color": _INK}
        axis.annotate(_label(entry), (right, place), fontweight=weight, **text)
    axis.set_yticks(list(places), [entry["name"] for entry in entries], fontsize=9.5, color=_INK)
    axis.invert_yaxis()
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", which="both", labelsize=8, colors=_MUTED, length=2)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.xaxis.set_minor_formatter("")
    axis.grid(axis="x", color="#e4e7eb", linewidth=0.8, zorder=0)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.spines["bottom"].set_color("#cbd2d9")
    axis.set_xlabel("milliseconds, logarithmic" if logarithmic else "milliseconds", fontsize=8, color=_MUTED)
    size = f"{_millions(graph['vertices'])} vertices, {_millions(graph['stored_edges'] / 2)} edges"
    heading = {"loc": "left", "fontsize": 10.5, "color": _INK, "fontweight": "bold", "pad": 8}
    axis.set_title(f"{graph['title']}: {size}", **heading)


def _label(entry: dict[str, Any]) -> str:
    """Format the time and, for a peer, its multiple of ours."""
    figure = format_seconds(entry["median"])
    if entry["name"] == OURS.name or not entry["ratio"]:
        return figure
    times = 1 / entry["ratio"]
    return f"{figure}  ({times:.2f}{_TIMES})" if times < 10 else f"{figure}  ({times:.0f}{_TIMES})"


def _millions(count: float) -> str:
    if count >= 1e6:
        return f"{count / 1e6:.1f} M"
    return f"{count / 1e3:.1f} k" if count >= 1e3 else f"{count:.0f}"


def _draw_texts(figure: Any, report: dict[str, Any], height: float) -> None:
    """Draw the title above and the conditions below, at fixed distances in inches."""
    parameters, machine = report["parameters"], report["machine"]
    threads = parameters["threads"]
    left = 0.02
    figure.text(left, 1 - 0.12 / height, "Connected components", fontsize=15, color=_INK, va="top")
    subtitle = (
        f"Time for the algorithm alone: median of {parameters['trials']} trials in turn; whiskers are quartiles; "
        f"in parentheses, multiples of {OURS.name}'s time"
    )
    figure.text(left, 1 - 0.45 / height, subtitle, fontsize=9, color=_MUTED, va="top")
    caption = (
        f"{machine['cpu']}, {threads} thread{'s' * (threads != 1)} of {machine['cores']} cores; "
        f"Python {machine['python']}, NumPy {machine['numpy']}, Numba {machine['numba']}; {machine['date'][:10]}"
    )
    figure.text(left, 0.1 / height, caption, fontsize=8, color=_MUTED)
    figure.tight_layout(rect=(0, 0.3 / height, 1, 1 - 0.7 / height), h_pad=1.2)
