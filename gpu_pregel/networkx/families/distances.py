"""Measures of a graph that follow from distances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function

_NOTE = "with weights by name only, without"


def _exact_bounds(values: Mapping[str, Any]) -> str | None:
    """Require that bounds are not asked for with weights, for which they are those of NetworkX's search."""
    return "usebounds with weights" if values["usebounds"] and values["weight"] is not None else None


FUNCTIONS = (
    Function(
        "barycenter",
        "distances",
        conditions=(attribute_names("weight"), unset("attr", "sp")),
        note=f"{_NOTE} attr and sp",
    ),
    Function("eccentricity", "distances", conditions=(attribute_names("weight"), unset("sp")), note=f"{_NOTE} sp"),
    Function("harmonic_diameter", "distances", conditions=(attribute_names("weight"), unset("sp")), note=f"{_NOTE} sp"),
    *(
        Function(
            name, "distances", conditions=(attribute_names("weight"), unset("e"), _exact_bounds), note=f"{_NOTE} e"
        )
        for name in ("center", "diameter", "periphery", "radius")
    ),
)
