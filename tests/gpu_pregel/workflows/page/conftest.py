"""A browser for tests of pages."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.chromium import Browser, why_missing


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium; without it, tests fail in CI and are skipped elsewhere."""
    if why := why_missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    with Browser() as started:
        yield started
