"""Examples of agents: compared with NetworkX and known outputs, in process, in workers and as scripts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import networkx
import pytest

import gpu_pregel as gp

ROOT = Path(gp.__file__).parents[1]
EXAMPLES = Path(gp.__file__).parent / "examples"
SCRIPTS = {
    "agents_pagerank.py": """\
0.3381  home
0.2146  shop
0.1506  news
0.1506  about
0.1460  checkout
<AgentResult: 5 vertices, 47 supersteps, halted>
""",
    "agents_streaming.py": """\
writer: the graf has
writer: the graf has a million vertices
editor: The graph has a million vertices.
""",
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reload an example from a folder that workers search too."""
    monkeypatch.syspath_prepend(EXAMPLES)

    def load(name: str) -> Any:
        monkeypatch.delitem(sys.modules, name, raising=False)
        module = import_module(name)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return load


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_print_expected_output(name: str) -> None:
    path = EXAMPLES / name
    assert f"python examples/{name}" in path.read_text().split('"""')[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout, done.stderr) == (SCRIPTS[name], "")


def test_pagerank_agrees_with_networkx(example: Any) -> None:
    oracle = networkx.gnm_random_graph(40, 150, seed=3, directed=True)
    oracle.remove_edges_from(list(oracle.out_edges([5, 6])))
    links = {v: list(oracle.successors(v)) for v in oracle}
    results = [example("agents_pagerank").pagerank(links, workers) for workers in (0, 2)]
    assert [result.status for result in results] == ["halted", "halted"]
    assert results[0].values == results[1].values
    expected = networkx.pagerank(oracle, tol=1e-13, max_iter=1000)
    assert results[0].values == pytest.approx(expected, abs=1e-8)
    assert sum(results[0].values.values()) == pytest.approx(1)


@pytest.mark.parametrize("workers", [0, 2])
def test_tokens_are_streamed_in_order(example: Any, workers: int) -> None:
    streaming = example("agents_streaming")

    async def collect() -> dict[tuple[str, int], list[str]]:
        tokens: dict[tuple[str, int], list[str]] = {}
        vertices = [gp.agents.Vertex("writer", edges=["editor"]), gp.agents.Vertex("editor")]
        retry = gp.agents.RetryPolicy(attempts=2, wait=0)
        async for event in streaming.stream(vertices, workers=workers, retry=retry):
            tokens.setdefault((event.vertex, event.attempt), []).append(event.facts["payload"])
        return tokens

    script = {name: text.split() for name, text in streaming.SCRIPTS.items()}
    assert asyncio.run(collect()) == {
        ("writer", 1): script["writer"][:3],
        ("writer", 2): script["writer"],
        ("editor", 1): script["editor"],
    }
