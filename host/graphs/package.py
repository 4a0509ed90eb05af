"""Functions of the package at the top that methods of graphs and results call, declared there by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def function(name: str) -> Callable[..., Any]:
    """Import and return the function that the package declares by this name."""
    # Python loads the package before this module. A call to register them would make importing it load this room.
    package = sys.modules[__name__.partition(".")[0]]
    found: Callable[..., Any] = getattr(import_module(package._FUNCTIONS[name]), name)
    return found
