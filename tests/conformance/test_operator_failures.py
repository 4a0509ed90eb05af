"""Bodies of operators that raise on CUDA devices: the error names the vertex or the edge, and the line."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ProgramError
from tests import failing_programs as bodies
from tests.devices import CUDA_DEVICES, EMULATED

IDS = np.arange(300) + 1000
# Each vertex has an edge to the next one.
GRAPH = gp.Graph.from_edgelist(IDS, np.roll(IDS, -1), np.arange(300, dtype=np.float32), directed=True)
RESULTS: list[Literal["frontier", "sum"]] = ["frontier", "sum"]


@CUDA_DEVICES
@pytest.mark.parametrize("returns", RESULTS)
def test_a_body_that_raises_for_a_vertex_is_an_error(device: str, returns: Literal["frontier", "sum"]) -> None:
    """Of the vertices 7, 107 and 207 the smallest is named, and the next call succeeds."""
    for vertices in (None, range(250)):
        frontier = gp.Frontier(GRAPH, vertices, device=device)
        marks = frontier.upload(np.ones(300))
        with pytest.raises(
            ProgramError, match=r"the body fails for vertex 1007 .*negative.*: ValueError: negative$"
        ) as error:
            gp.process_vertices(bodies.checked_vertex, frontier, [marks, 100], returns=returns)
        assert isinstance(error.value.__cause__, ValueError)
        result: Any = gp.process_vertices(bodies.checked_vertex, frontier, [marks, 1000], returns=returns)
        assert (result if returns == "sum" else len(result)) == len(frontier)


@CUDA_DEVICES
@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_body_that_raises_for_an_edge_is_an_error(device: str, mode: Literal["push", "pull"]) -> None:
    frontier = gp.Frontier(GRAPH, device=device)
    for weight in (9.0, 99.0):
        text = rf"the body fails for the edge from {1000 + weight:.0f} to {1001 + weight:.0f} .*: IndexError: tuple"
        with pytest.raises(ProgramError, match=text):
            gp.process_edges(bodies.checked_edge, frontier, [weight], receives=bodies.checked_receiver, mode=mode)
    with pytest.raises(ProgramError, match=r"receives fails for vertex 1050 .*assert.*: AssertionError: fifty"):
        gp.process_edges(bodies.checked_edge, frontier, [-1.0], receives=bodies.checked_receiver, mode=mode)
    moved = gp.process_edges(bodies.checked_edge, frontier, [-2.0], receives=bodies.checked_receiver, mode=mode)
    assert len(moved) == 300


@EMULATED
def test_a_body_that_fails_only_while_it_runs_is_an_error_too() -> None:
    """The second call, in Python, sees what the body has written before it raised."""
    frontier = gp.Frontier(GRAPH, device="emulated")
    marks = frontier.upload(np.ones(300))
    text = r"the body fails for vertex 1000 .*def once.*: ValueError in compiled code; a second call"
    with pytest.raises(ProgramError, match=text):
        gp.process_vertices(bodies.once, frontier, [marks])
