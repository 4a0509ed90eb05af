"""The map-reduce over reviews: its output as a script, and its findings compared with a count in plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp

ROOT = Path(gp.__file__).parents[1]
OUTPUT = """\
kettle: 105 complaints in 260 reviews; 39 say that it smells of plastic
lamp: 107 complaints in 257 reviews; 35 say that it broke after a week
radio: 103 complaints in 245 reviews; 28 say that it smells of plastic
toaster: 97 complaints in 238 reviews; 28 say that it is too loud
requests: 1009
"""


def script() -> Any:
    return import_module("gpu_pregel.examples.agent_map_reduce")


def test_the_script_prints_its_output() -> None:
    path = Path(gp.__file__).parent / "examples" / "agent_map_reduce.py"
    assert f"python examples/{path.name}" in path.read_text().split('"""')[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout, done.stderr) == (OUTPUT, "")


@pytest.mark.parametrize("workers", [0, 2])
def test_findings_are_those_of_a_plain_count(workers: int) -> None:
    example = script()
    reviews = example.make_reviews(300, seed=workers)
    state = example.build(workers=workers).invoke({"reviews": reviews})
    products = [next(one for one in example.PRODUCTS if one in text) for text in reviews]
    faults = [next((one for one in example.FAULTS if one in text), None) for text in reviews]
    assert [(one["product"], one["fault"]) for one in state["findings"]] == list(zip(products, faults, strict=True))
    expected: list[tuple[str, int]] = []
    for product in sorted(set(products)):
        found = Counter(fault for one, fault in zip(products, faults, strict=True) if one == product)
        complaints = sum(count for fault, count in found.items() if fault is not None)
        most = max(count for fault, count in found.items() if fault is not None)
        expected.append((f"{product}: {complaints} complaints in {found.total()} reviews; {most} say", len(expected)))
    assert len(state["summaries"]) == len(expected)
    assert all(state["summaries"][place].startswith(text) for text, place in expected)
    assert state["report"] == "\n".join(state["summaries"])
    retried = sum(number % 200 == 13 for number in range(300))
    assert state["requests"] == 300 + retried + len(expected)


def test_a_review_that_fails_for_good_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    example = script()
    reviews = [*example.make_reviews(20), "I bought a spoon."]
    with pytest.raises(gp.errors.AgentsFailedError, match="node 'read:__start__:20': StopIteration"):
        example.build().invoke({"reviews": reviews})
