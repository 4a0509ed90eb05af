"""Random graphs, programs and options where one launch runs many supersteps, compared with the interpreted device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.programs import cuda_state
from tests.devices import EMULATED, LONG, emulated
from tests.programs import DISTANCES, HOPS
from tests.random_programs import graph_of, limits_of, options_of, program_of, source_of

pytestmark = EMULATED
FIGURES = ("active_vertices", "active_edges", "messages", "applied")


def outcome(graph: gp.Graph, program: gp.VertexProgram, **options: Any) -> tuple[Any, ...]:
    """Run a program; return the bytes of the values, how the run ended and its figures."""
    found = gp.run(graph, program, **options)
    rows = [tuple(row[name] for name in FIGURES) for row in found.trace]
    return np.asarray(found).tobytes(), found.status, found.supersteps, rows


def check(
    graph: gp.Graph, program: gp.VertexProgram, device: str, options: dict[str, Any], folder: Path | None
) -> None:
    """Compare a run, and with a folder also a run that is stopped and resumed before each superstep."""
    expected = outcome(graph, program, device="python", **options)
    assert outcome(graph, program, device=device, **options) == expected
    for limit in range(1, expected[2]) if folder is not None else ():
        saving: dict[str, Any] = {
            "device": device,
            "checkpoint": gp.Checkpoint(f"{folder}/{limit}.db", every=1 + limit % 3, durability="process"),
        }
        outcome(graph, program, **saving, **{**options, "max_supersteps": limit})
        assert outcome(graph, program, **saving, resume=True, **options) == expected


@pytest.mark.parametrize("program", [HOPS, DISTANCES], ids=["per source", "per edge"])
def test_random_graphs(program: gp.VertexProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        graph = graph_of(random, ("f8",))
        for name, value in limits_of(random).items():
            monkeypatch.setattr(cuda_state, name, value)
        fixed = {"mode": "push", "partitions": 1, "parameters": None, "frontier": None}
        options = {**options_of(random, graph), **fixed}
        check(graph, program, "emulated", options, tmp_path if seed == 3 else None)


@LONG
@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(seed)
    program = program_of(source_of(random))
    for k in range(8):
        graph = graph_of(random)
        for name, value in limits_of(random).items():
            monkeypatch.setattr(cuda_state, name, value)
        check(graph, program, emulated(k % 3), options_of(random, graph), tmp_path if k == 0 else None)
