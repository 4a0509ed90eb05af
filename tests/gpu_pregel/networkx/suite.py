"""Runs NetworkX's own tests through the backend; arguments are pytest's options.

    python -m tests.gpu_pregel.networkx.suite

It is also the plugin that pytest loads there. Functions that the backend does not implement, and calls that it refuses
before any work, run in NetworkX; a function that has taken a call must not give it back. The log counts the calls that
the backend computed, by test and by function. Tests that fail for a known reason are in ``KNOWN_FAILURES``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.networkx import FUNCTIONS
from gpu_pregel.networkx.backend import backend

_LOG = "GPU_PREGEL_NETWORKX_LOG"

KNOWN_FAILURES = {
    "test_topological_sort6": "It changes the graph while it iterates; the backend iterates over the graph as it was.",
}
"""Why a test of NetworkX fails, by its name; one that passes is reported as a failure."""


class _Recorder:
    """Counts the calls of the functions of the backend, and writes those of each test to the log."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._calls: Counter[str] = Counter()

    def recorded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that counts its calls, and fails where it gives one back."""

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                result = function(*args, **kwargs)
            except NotImplementedError as error:
                if str(error).startswith(("the edges'", "an edge's")):
                    raise  # weights that are read by the function, before any work
                pytest.fail(f"{name} gave back a call that it had taken: {error}")
            except Exception:
                self._calls[name] += 1
                raise
            self._calls[name] += 1
            return result

        return call

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if reason := KNOWN_FAILURES.get(item.name):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._calls.clear()
        result = yield
        if self._calls:
            with Path(self._path).open("a") as log:
                log.write(json.dumps([item.nodeid, self._calls]) + "\n")
        return result


def pytest_configure(config: pytest.Config) -> None:
    """Record the calls if this process was started by :func:`main`."""
    if path := os.environ.get(_LOG):
        recorder = _Recorder(path)
        for name in FUNCTIONS:
            setattr(backend, name, recorder.recorded(name, getattr(backend, name)))
        config.pluginmanager.register(recorder)


def main(options: list[str]) -> int:
    """Run the tests; print what reached the backend, and return pytest's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        log, root = Path(folder) / "calls.jsonl", Path(__file__).parents[3]
        log.touch()
        settings = {
            _LOG: str(log),
            "NETWORKX_TEST_BACKEND": "gpu_pregel",
            "NETWORKX_FALLBACK_TO_NX": "True",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH")))),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", folder]
        command += [
            "-p",
            "tests.gpu_pregel.networkx.suite",
            "-p",
            "no:cacheprovider",
            "--pyargs",
            *(options or ["networkx"]),
        ]
        status = subprocess.run(command, env={**os.environ, **settings}, cwd=folder, check=False).returncode
        tests = [json.loads(line) for line in log.read_text().splitlines()]
    calls: Counter[str] = Counter()
    for _, counts in tests:
        calls.update(counts)
    print(f"{len(tests):,} tests reached the backend, with {calls.total():,} calls of {len(calls)} functions")
    print("functions that no test reached:", ", ".join(sorted(FUNCTIONS.keys() - calls.keys())) or "none")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
