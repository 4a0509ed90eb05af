"""Benchmark graphs: converts a spec such as ``kron:20`` or a path to files that every contestant can load."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._measure import progress
from gpu_pregel.host.graphs.generators import DEFAULT_SEED

Array = np.ndarray[Any, Any]

SEED = DEFAULT_SEED
"""Seed of all generated graphs, so that all contestants measure the same ones."""

DEFAULT_CACHE = Path(__file__).parent / "work"

_HEADER = struct.Struct("<?qq")
_NAMES = {"kron": "Kronecker", "uniform": "Uniform random", "grid": "Grid"}


@dataclass(frozen=True)
class GraphFiles:
    """One graph on disk: the same edges in each requested format."""

    spec: str
    title: str
    vertices: int
    stored_edges: int
    paths: dict[str, Path]


def generate(spec: str) -> gp.Graph:
    """Generate the graph of a spec ``kron:SCALE``, ``uniform:SCALE`` or ``grid:SCALE`` with 2^SCALE vertices."""
    kind, scale = _parse(spec)
    if kind == "kron":
        return gp.kronecker(scale, seed=SEED)
    if kind == "uniform":
        return gp.uniform(scale, seed=SEED)
    return gp.grid(1 << (scale - scale // 2), 1 << (scale // 2), seed=SEED)


def prepare(
    spec: str, cache: Path, suffixes: Iterable[str] = (), *, directed: bool = False, weighted: bool = False
) -> GraphFiles:
    """Write the graph of a spec or path to ``cache`` as ``.sg`` and in the other formats; keep existing files.

    Unless ``directed``, the files of directed graphs are read as undirected; if ``directed``, each edge of a generated
    graph has one direction, chosen by a hash. If ``weighted``, the edges have weights from 1 to 255, chosen by a hash,
    and ``.wsg`` takes the place of ``.sg``.
    """
    cache.mkdir(parents=True, exist_ok=True)
    title, stem, origin = _identify(spec)
    title += " with directions" * directed + " with weights" * weighted
    stem += "-directed" * directed + "-weighted" * weighted
    main = ".wsg" if weighted else ".sg"
    paths = {suffix: cache / f"{stem}{suffix}" for suffix in {main, *suffixes}}
    missing = [path for path in paths.values() if not path.exists()]
    if missing:
        progress(f"{spec}: writing {', '.join(path.name for path in missing)}")
        if paths[main].exists():
            graph = gp.read_graph(paths[main])
        else:
            graph = generate(spec) if origin is None else gp.read_graph(origin, directed=directed, weight=None)
            graph = transform(graph, orient=directed and origin is None, weighted=weighted)
        for path in missing:
            if path.suffix in (".adj", ".wadj"):
                write_adjacency(graph, path)
            else:
                # Programs that read .bin files are told the number of vertices; those that read .sg files use numbers.
                graph.save(path, lossy=True)
    _, m, n = read_header(paths[main])
    return GraphFiles(spec, title, n, m, paths)


def transform(graph: gp.Graph, *, orient: bool, weighted: bool) -> gp.Graph:
    """Give each undirected edge a direction, or each edge a weight."""
    if not (orient or weighted):
        return graph
    src = np.repeat(np.arange(graph.num_vertices, dtype=np.uint64), np.diff(graph.indptr))
    dst = graph.indices.astype(np.uint64)
    hashed = np.minimum(src, dst) << np.uint64(32) | np.maximum(src, dst)
    for multiplier in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9):
        hashed *= np.uint64(multiplier)
        hashed ^= hashed >> np.uint64(29)
    kept = np.ones(len(src), bool) if graph.is_directed else src <= dst
    if orient:
        kept = (hashed & np.uint64(1)).astype(bool) == (src < dst)
    weight = (hashed[kept] % np.uint64(255) + np.uint64(1)).astype(np.int32) if weighted else None
    n, directed = graph.num_vertices, orient or graph.is_directed
    return gp.Graph.from_edgelist(src[kept], dst[kept], weight, num_vertices=n, directed=directed)


def write_adjacency(graph: gp.Graph, path: Path) -> None:
    """Write the text format of Ligra and GBBS: sizes, offsets, destinations and, in a ``.wadj`` file, weights."""
    import pyarrow
    from pyarrow import csv

    weighted = path.suffix == ".wadj"
    assert graph.weights is not None or not weighted
    columns = [graph.indptr[:-1], graph.indices, *([graph.weights] if weighted else [])]
    options = csv.WriteOptions(include_header=False)
    with path.open("wb") as file:
        file.write(b"WeightedAdjacencyGraph\n" if weighted else b"AdjacencyGraph\n")
        file.write(f"{graph.num_vertices}\n{graph.num_stored_edges}\n".encode())
        for column in columns:
            csv.write_csv(pyarrow.table({"": column}), file, options)


def read_header(path: Path) -> tuple[bool, int, int]:
    """Return ``(is_directed, stored edges, vertices)`` of a ``.sg`` file."""
    with path.open("rb") as file:
        directed, m, n = _HEADER.unpack(file.read(_HEADER.size))
    return bool(directed), int(m), int(n)


def read_serialized(path: Path) -> tuple[Array, Array, Array | None]:
    """Read a ``.sg`` or ``.wsg`` file with NumPy alone, for peers without a reader: int64[n + 1], int32[m], weights."""
    _, m, n = read_header(path)
    with path.open("rb") as file:
        file.seek(_HEADER.size)
        indptr = np.fromfile(file, np.int64, n + 1)
        if path.suffix == ".sg":
            return indptr, np.fromfile(file, np.int32, m), None
        pairs = np.fromfile(file, np.int32, 2 * m).reshape(-1, 2)
        return indptr, pairs[:, 0].copy(), pairs[:, 1].copy()


def choose_sources(path: Path, count: int) -> list[int]:
    """Choose vertices with out-edges of a ``.sg`` or ``.wsg`` file, the same ones for every contestant."""
    _, _, n = read_header(path)
    with path.open("rb") as file:
        file.seek(_HEADER.size)
        return choose_from(np.fromfile(file, np.int64, n + 1), count)


def choose_from(indptr: Array, count: int) -> list[int]:
    """Choose vertices with out-edges."""
    chosen: list[int] = np.random.default_rng(27).choice(np.flatnonzero(np.diff(indptr)), count).tolist()
    return chosen


def is_spec(text: str) -> bool:
    """Return whether ``text`` has the form of a generated graph's spec."""
    return text.partition(":")[0] in _NAMES and ":" in text


def _parse(spec: str) -> tuple[str, int]:
    kind, _, scale = spec.partition(":")
    if kind not in _NAMES or not scale.isdecimal():
        raise ValueError(f"{spec!r} is not a graph: give kron:SCALE, uniform:SCALE, grid:SCALE or the path of a file")
    return kind, int(scale)


def _identify(spec: str) -> tuple[str, str, Path | None]:
    """Return the title, the stem of the cached files, and the source file if the spec is a path."""
    if is_spec(spec):
        kind, scale = _parse(spec)
        return f"{_NAMES[kind]}, scale {scale}", f"{kind}-{scale}-seed{SEED}", None
    path = Path(spec)
    if not path.is_file():
        raise ValueError(f"{spec!r} is neither a file nor kron:SCALE, uniform:SCALE or grid:SCALE")
    # The stem changes with the file, so that the cache never serves an outdated copy.
    state = os.stat(path)
    return path.name, f"{path.stem}-{state.st_size:x}-{state.st_mtime_ns:x}", path
