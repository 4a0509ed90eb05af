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


def prepare(spec: str, cache: Path, suffixes: Iterable[str] = ()) -> GraphFiles:
    """Write the graph of a spec or path to ``cache`` as ``.sg`` and in the other formats; keep existing files.

    Directed graphs are read as undirected, so that components have one meaning for all contestants.
    """
    cache.mkdir(parents=True, exist_ok=True)
    title, stem, origin = _identify(spec)
    paths = {suffix: cache / f"{stem}{suffix}" for suffix in {".sg", *suffixes}}
    missing = [path for path in paths.values() if not path.exists()]
    if missing:
        progress(f"{spec}: writing {', '.join(path.name for path in missing)}")
        if paths[".sg"].exists():
            graph = gp.read_graph(paths[".sg"])
        else:
            graph = generate(spec) if origin is None else gp.read_graph(origin, directed=False)
        for path in missing:
            # Programs that read .bin files are told the number of vertices, and those that read .sg files use numbers.
            graph.save(path, lossy=True)
    _, m, n = read_header(paths[".sg"])
    return GraphFiles(spec, title, n, m, paths)


def read_header(path: Path) -> tuple[bool, int, int]:
    """Return ``(is_directed, stored edges, vertices)`` of a ``.sg`` file."""
    with path.open("rb") as file:
        directed, m, n = _HEADER.unpack(file.read(_HEADER.size))
    return bool(directed), int(m), int(n)


def read_serialized(path: Path) -> tuple[Array, Array]:
    """Read a ``.sg`` file with NumPy alone, for peers without their own reader: int64[n + 1] and int32[m]."""
    _, m, n = read_header(path)
    with path.open("rb") as file:
        file.seek(_HEADER.size)
        return np.fromfile(file, np.int64, n + 1), np.fromfile(file, np.int32, m)


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
