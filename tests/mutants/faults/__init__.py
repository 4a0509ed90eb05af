"""The faults, by the part of the code in which they are."""

from __future__ import annotations

from tests.mutants.faults import (
    agents_beside,
    arrays,
    chains,
    components,
    csr,
    devices,
    edges,
    failures,
    frontier,
    graphs,
    library,
    operators,
    pairs,
    partitioned_operators,
    reductions,
    rows,
    supersteps,
    triangles,
    warp_chains,
)

FAULTS = (
    *supersteps.FAULTS,
    *rows.FAULTS,
    *reductions.FAULTS,
    *pairs.FAULTS,
    *arrays.FAULTS,
    *chains.FAULTS,
    *warp_chains.FAULTS,
    *frontier.FAULTS,
    *edges.FAULTS,
    *operators.FAULTS,
    *partitioned_operators.FAULTS,
    *components.FAULTS,
    *triangles.FAULTS,
    *library.FAULTS,
    *graphs.FAULTS,
    *csr.FAULTS,
    *devices.FAULTS,
    *failures.FAULTS,
    *agents_beside.FAULTS,
)
QUICK = frozenset(
    {
        "no fence before the counter of blocks",
        "a ballot of medium rows is a signed number",
        "a row as long as a piece is a hub",
        "memory of dropped results is reused at once",
    }
)
"""The names of those that CI plants."""
