"""Examples of ready agents: their outputs as scripts, what humans can answer, and what a crash repeats."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp

ROOT = Path(gp.__file__).parents[1]
EXAMPLES = Path(gp.__file__).parent / "examples"
FACTS = (
    "In 1736, Euler asked for a walk over the seven bridges of Königsberg. "
    "In 2010, Pregel let vertices compute in supersteps; it is named after the river of these bridges."
)
PARAGRAPH = f'{{"title": "Bridges", "text": "{FACTS}"}}'
SCRIPTS = {
    "agent_tool_loop.py": """\
r1: iteration 1 calls forecast, stock
r1: iteration 2 calls order
a human is asked: order {'item': 'umbrella'}
r1: iteration 3 calls nothing
user: Do I need an umbrella?
assistant: Let me see.
tool: rain in Bergen
tool: 3 umbrellas in stock
assistant: I order one.
tool: order 1 of the umbrella is placed for Ada
assistant: rain in Bergen, 3 umbrellas in stock: order 1 of the umbrella is placed for Ada.
""",
    "agent_approval.py": """\
paid 20 to the baker
open questions: printer, landlord, stranger
paid 700 to the printer
open questions: landlord, stranger
paid 1400 to the landlord
open questions: stranger
20 paid; 700 paid; 1400 paid; A human has answered instead of the tool: We never pay strangers. Report the bill.
""",
    "agent_supervisor.py": f"""\
user: Write a paragraph on Euler and Pregel.
assistant: calls researcher
tool: {FACTS}
assistant: calls writer
tool: {PARAGRAPH}
assistant: Here you are: {PARAGRAPH}
""",
    "agent_crash_and_resume.py": """\
killed by SIGKILL; left to do: execute_tools
Done.
before: answer 1, run_tests, answer 2, publish
after:  publish, answer 3, announce, answer 4
the same key: True
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_print_expected_output(name: str) -> None:
    path = EXAMPLES / name
    assert f"python examples/{name}" in path.read_text().split('"""')[1]
    done = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        encoding="utf-8",
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    )
    assert (done.stdout, done.stderr) == (SCRIPTS[name], "")


@pytest.mark.parametrize(
    "answer, told",
    [
        (True, "order 1 of the umbrella is placed for Ada"),
        (False, "A human has refused this call."),
        ({"arguments": {"item": "coat"}}, "order 1 of the coat is placed for Ada"),
    ],
)
def test_tool_loop_orders_what_the_human_wants(monkeypatch: pytest.MonkeyPatch, answer: Any, told: str) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    loop = import_module("agent_tool_loop")
    monkeypatch.setattr(loop, "SHOP", {})
    result = loop.ask("An umbrella?", lambda question: answer)
    assert result["status"] == "completed"
    assert result["messages"][-1]["content"] == f"rain in Bergen, 3 umbrellas in stock: {told}."
    assert len(loop.SHOP) == (answer is not False)  # although the order is placed at the second attempt
