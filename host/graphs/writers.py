"""The functions that write graphs and results to files; the package above registers them by name."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""As in ``gpu_pregel/__init__.py``, which imports this module."""

if TYPE_CHECKING:
    from collections.abc import Callable

_WRITERS: dict[str, tuple[str, str]] = {}


def register_writer(kind: str, module: str, function: str) -> None:
    """Register the function that writes objects of this kind; its module is imported on first use."""
    _WRITERS[kind] = module, function


def writer(kind: str) -> Callable[..., None]:
    """Import and return the function registered for this kind of object."""
    module, function = _WRITERS[kind]
    write: Callable[..., None] = getattr(import_module(module), function)
    return write
