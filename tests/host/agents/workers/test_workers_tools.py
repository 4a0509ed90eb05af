"""Programs that attempts start end with their worker, in whatever session they run."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Vertex
from tests.agents import ONCE
from tests.host.agents.workers.worker_programs import is_alive, wait_for

# Each sleeps for its own number of seconds, by which it is found.
TOOLS = {
    "own session": "exec setsid sleep 61",
    "daemon": "setsid sleep 62 & sleep 0.05",
    "no environment": "exec env -i sleep 63",
}


@pytest.mark.parametrize(
    ("how", "end"),
    [
        ("own session", "timeout"),
        ("daemon", "timeout"),
        ("no environment", "timeout"),
        ("daemon", "death"),  # without its environment, nothing would be left by which it could be found
    ],
)
def test_tools_end_with_the_attempt_that_started_them(how: str, end: str, tmp_path: Path) -> None:
    tool, go = TOOLS[how], str(tmp_path / "go")

    def compute(ctx: Any) -> None:
        import os
        import subprocess
        import time

        subprocess.Popen(["sh", "-c", tool], start_new_session=True)
        while not os.path.exists(go):
            time.sleep(0.01)
        if end == "death":
            os._exit(3)
        time.sleep(60)

    before = sleepers(tool)
    with agents.start([Vertex(0)], compute, workers=1, timeout=1.0, retry=ONCE, on_failure="continue") as run:
        thread = threading.Thread(target=run.step)
        thread.start()
        wait_for(lambda: sleepers(tool) > before, seconds=20)
        started = sleepers(tool) - before
        Path(go).touch()
        thread.join()
        assert run.result().failed[0].kind == end
        wait_for(lambda: not any(map(is_alive, started)))


def sleepers(tool: str) -> set[int]:
    """Return the processes that sleep for as many seconds as a tool."""
    command = f"sleep\0{tool.split('sleep ')[1].split()[0]}\0".encode()
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{name}/cmdline").read_bytes() == command:
                found.add(int(name))
    return found
