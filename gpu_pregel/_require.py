"""Imports of optional packages, with an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gpu_pregel.errors import MissingPackageError


def require(package: str, purpose: str) -> Any:
    """Import ``package``, or raise ``MissingPackageError`` that names what needs it."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(f"{purpose} needs the package {package}: pip install {package}") from error
