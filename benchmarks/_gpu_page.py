"""The page of the report about a GPU: tables and, if matplotlib is installed, charts, in one HTML file."""

from __future__ import annotations

import html
import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks._measure import format_seconds

_STYLE = "body{font:15px system-ui;max-width:60rem;margin:2rem auto}td,th{padding:.2rem .8rem;text-align:right}"
_ALGORITHMS = ("components", "bfs", "pagerank", "sssp", "triangles")


def write_page(report: dict[str, Any], path: Path) -> None:
    """Write the page of a report, which may be incomplete."""
    parts = report["parts"]
    gpu = parts.get("device", {}).get("gpu", {}).get("name", "GPU")
    graphs = [part for name, part in parts.items() if name.startswith("algorithms") and part.get("algorithms")]
    sections = [_algorithms_table(graphs), *_charts(graphs), _bytes_table(parts), _cugraph_table(parts)]
    rows = [[name, _outcome(part), format_seconds(part.get("seconds"))] for name, part in parts.items()]
    text = [
        f"<!doctype html><meta charset=utf-8><title>gpu_pregel on {html.escape(gpu)}</title><style>{_STYLE}</style>",
        f"<h1>gpu_pregel on {html.escape(gpu)}</h1>",
        _table(["part", "outcome", "time"], rows),
        *filter(None, sections),
    ]
    path.write_text("\n".join(text) + "\n")


def _outcome(part: dict[str, Any]) -> str:
    for key in ("error", "skipped", "summary"):
        if key in part:
            return str(part[key])
    wrong = [name for name, one in part.get("algorithms", {}).items() if one.get("correct") is False]
    return f"wrong: {', '.join(wrong)}" if wrong else "time was up" if part.get("timed_out") else "done"


def _table(heading: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)

    return "\n".join(["<table>", line(heading, "th"), *(line(row, "td") for row in rows), "</table>"]) if rows else ""


def _algorithms_table(graphs: list[dict[str, Any]]) -> str:
    rows = []
    for part in graphs:
        for name, one in part["algorithms"].items():
            if "median" in one:
                verdict = {True: "as on the CPU", False: "WRONG", None: "not compared"}[one.get("correct")]
                share = f"{100 * one['copy_share']:.0f}%" if "copy_share" in one else "-"
                speed = f"{one['edges_per_second'] / 1e9:.2f}"
                rows.append([part["graph"], name, format_seconds(one["median"]), speed, share, verdict])
            else:
                rows.append([part["graph"], name, "-", "-", "-", one.get("error") or one.get("skipped") or "-"])
    heading = ["graph", "algorithm", "median", "billion edges/s", "share of the copy bandwidth", "result"]
    return _table(heading, rows)


def _bytes_table(parts: dict[str, Any]) -> str:
    kernels = parts.get("bytes", {}).get("kernels", [])
    keys = ("counted", "warps", "l2", "memory")
    rows = [[one["kernel"], str(one["launches"]), *(f"{one[key]:,}" for key in keys)] for one in kernels]
    return _table(["kernel", "launches", "bytes counted", "of warps (ncu)", "in L2 (ncu)", "in memory (ncu)"], rows)


def _cugraph_table(parts: dict[str, Any]) -> str:
    found = parts.get("cugraph", {})
    pairs = [(name, one) for name, one in found.items() if isinstance(one, dict) and "ours" in one]
    rows = [[name, *(format_seconds(one[who]["median"]) for who in ("ours", "cugraph"))] for name, one in pairs]
    return _table([f"in turn on {found.get('graph')}", "gpu_pregel", "cuGraph"], rows)


def _charts(graphs: list[dict[str, Any]]) -> list[str]:
    """Return a chart of speed and one of shares of the copy bandwidth, as SVG."""
    if not graphs or find_spec("matplotlib") is None:
        return []
    titles = {"edges_per_second": ("edges per second", 1.0), "copy_share": ("% of the copy bandwidth", 100.0)}
    return [_chart(graphs, key, *titles[key]) for key in titles]


def _chart(graphs: list[dict[str, Any]], key: str, title: str, factor: float) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3), facecolor="white", layout="constrained")
    axis = figure.subplots()
    width = 0.8 / len(_ALGORITHMS)
    for number, name in enumerate(_ALGORITHMS):
        heights = [factor * part["algorithms"].get(name, {}).get(key, 0) for part in graphs]
        axis.bar([place + number * width for place in range(len(graphs))], heights, width, label=name)
    axis.set_xticks([place + 2 * width for place in range(len(graphs))], [part["graph"] for part in graphs])
    axis.set_ylabel(title)
    axis.legend(ncols=len(_ALGORITHMS), fontsize="small", frameon=False)
    text = io.StringIO()
    FigureCanvasSVG(figure).print_svg(text)
    return text.getvalue()[text.getvalue().index("<svg") :]
