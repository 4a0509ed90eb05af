"""Imports of optional packages, with an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpu_pregel.errors import MissingPackageError


def require(package: str, purpose: str, install: str | None = None) -> Any:
    """Import ``package``, or raise ``MissingPackageError`` that names what needs it, and what to install."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(f"{purpose} needs the package {package}: pip install {install or package}") from error
