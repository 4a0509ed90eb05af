"""The plot of a degree distribution: the number of vertices by degree, on logarithmic axes."""

from __future__ import annotations

import os
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.io._files import atomic_file

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph

_INK, _MUTED, _GRID = "#1f2933", "#66707a", "#e4e7eb"
_COLORS = ("#d9480f", "#486581")


def draw(graph: Graph, title: str, path: str) -> None:
    """Draw the distribution to a .png or .svg file, which is written completely or not at all."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    series = {"degree": graph.out_degrees}
    if graph.is_directed:
        series = {"out-degree": graph.out_degrees, "in-degree": graph.in_degrees}
    for color, (name, degrees) in zip(_COLORS, series.items(), strict=False):
        counts = np.bincount(degrees)
        present = np.flatnonzero(counts)
        present = present[present > 0]
        zeros = int(counts[0]) if len(counts) else 0
        label = f"{name} ({zeros:,} vertices with degree 0)" if zeros else name
        axis.plot(present, counts[present], "o", markersize=3, alpha=0.7, color=color, markeredgewidth=0, label=label)
    highest = max(10, *(int(degrees.max(initial=0)) for degrees in series.values()))
    axis.set_xlim(0.8, 1.5 * highest)
    axis.set_ylim(0.8, 1.5 * max(10, graph.num_vertices))
    _style(axis, f"{os.path.basename(title)}: {graph.num_vertices:,} vertices, {graph.num_stored_edges:,} stored edges")
    image = BytesIO()
    figure.savefig(image, format=path.rpartition(".")[2], dpi=160)
    with atomic_file(path) as file:
        file.write(image.getvalue())


def _style(axis: Any, title: str) -> None:
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("degree", color=_MUTED, fontsize=9)
    axis.set_ylabel("number of vertices", color=_MUTED, fontsize=9)
    axis.set_title(title, loc="left", fontsize=10, color=_INK)
    axis.grid(color=_GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(which="both", labelsize=8, colors=_MUTED)
    axis.legend(frameon=False, fontsize=8.5)
