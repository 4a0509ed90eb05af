"""Optional packages of tests: where one is missing, tests are skipped with the remedy; in CI, they fail."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest


def skip_or_fail(reason: str) -> None:
    """Skip the current test or module; in CI, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def needs(package: str, extra: str) -> Any:
    """Import a package that an extra of this project installs, or skip; in CI, fail."""
    try:
        return import_module(package)
    except ImportError:
        skip_or_fail(f"{package} is not installed: pip install gpu-pregel[{extra}]")
