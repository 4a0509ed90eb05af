"""The functions that write graphs and results to files; the package at the top declares them by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module


def writer(kind: str) -> Callable[..., None]:
    """Import and return the function declared for this kind of object."""
    # Python loads the package before this module. A call to register them would make importing it load this room.
    package = sys.modules[__name__.partition(".")[0]]
    module, function = package._WRITERS[kind]
    write: Callable[..., None] = getattr(import_module(module), function)
    return write
