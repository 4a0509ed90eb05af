"""Annotations as types, also where their names are local to the functions that call this package."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

_PACKAGE = str(Path(__file__).parent)


def resolved_hints(owner: Any) -> dict[str, Any]:
    """Return the annotations of a class or function; names are looked up in its module, then in the callers.

    Raises
    ------
    NameError
        A name is defined in none of them.
    """
    try:
        return get_type_hints(owner, include_extras=True)
    except NameError:
        return get_type_hints(owner, localns=ChainMap(*_namespaces()), include_extras=True)  # type: ignore[arg-type]


def _namespaces() -> Iterator[Mapping[str, Any]]:
    """Yield the local and global names of the callers outside this package, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            yield frame.f_locals
            yield frame.f_globals
        frame = frame.f_back  # type: ignore[assignment]
