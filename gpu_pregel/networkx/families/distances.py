"""Measures of a graph that follow from distances."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function, Reads

_NOTE = "with weights by name only, without"


def _exact_bounds(values: Mapping[str, Any]) -> str | None:
    """Require that bounds are not asked for with weights, for which they are those of NetworkX's search."""
    return "usebounds with weights" if values["usebounds"] and values["weight"] is not None else None


_farthest = partial(
    Function,
    module="distances",
    conditions=(attribute_names("weight"), unset("e"), _exact_bounds),
    note=f"{_NOTE} e",
    reads=Reads(from_first=True),
)

FUNCTIONS = (
    Function(
        "barycenter",
        "distances",
        conditions=(attribute_names("weight"), unset("attr", "sp")),
        note=f"{_NOTE} attr and sp",
        reads=Reads(from_first=True),
    ),
    Function(
        "eccentricity",
        "distances",
        conditions=(attribute_names("weight"), unset("sp")),
        note=f"{_NOTE} sp",
        reads=Reads(sources="v"),
    ),
    Function("harmonic_diameter", "distances", conditions=(attribute_names("weight"), unset("sp")), note=f"{_NOTE} sp"),
    *map(_farthest, ("center", "diameter", "periphery", "radius")),
)
