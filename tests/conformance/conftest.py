"""The stores and paths of the conformance suites."""

from __future__ import annotations

from tests.store_fixtures import log as log
from tests.store_fixtures import opened as opened
from tests.store_fixtures import path as path
from tests.store_fixtures import store as store
