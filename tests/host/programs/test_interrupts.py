"""Ctrl-C while a user's function never returns: the second one gives the prompt back, and the process goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.programs.compiler import compile_program
from gpu_pregel.kernels.library.fingerprint import may_loop
from tests.devices import LONG

_PREPARE = """
    import os, signal, threading, time
    import numpy as np
    import gpu_pregel as gp

    # Shells start background processes with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def search(value, incoming, ctx):
        guess = value
        while guess != 1:
            guess = (guess + 2) & 0xFFFF
        return guess

    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.num_vertices,
        message=lambda value, ctx: 1,
        combine="sum",
        apply=search,
    )

    def search_on_ring(n):
        # Searches for 1 in steps of 2: forever if n is even.
        ring = np.arange(n, dtype=np.uint32)
        graph = gp.Graph.from_edgelist(ring, np.roll(ring, 1), num_vertices=n)
        gp.run(graph, program, device="cpu", threads=THREADS)

    search_on_ring(9)

    def check():
        graph = gp.kronecker(12)
        labels = gp.VertexProgram(
            value=np.int64,
            init=lambda ctx: ctx.vertex,
            message=lambda value, ctx: value,
            combine="min",
            apply=lambda value, incoming, ctx: min(value, incoming),
        )
        found = gp.run(graph, labels, device="cpu", threads=THREADS)
        assert found.status == "completed"
        assert np.array_equal(found.values, gp.connected_components(graph, device="cpu", threads=THREADS).labels)
"""


def start(program: str, threads: int) -> subprocess.Popen[str]:
    """Start a Python process that can be interrupted."""
    text = textwrap.dedent(_PREPARE).replace("THREADS", str(threads)) + textwrap.dedent(program)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", text], text=True, **pipes)


def interrupt_until(process: subprocess.Popen[str], line: str) -> None:
    """Press Ctrl-C twice once the process has written "ready", and wait for a line."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for seconds in (0.5, 0.1):
        with pytest.raises(subprocess.TimeoutExpired):  # the loop goes on
            process.wait(seconds)
        os.kill(process.pid, signal.SIGINT)
    assert process.stdout.readline() == line


@pytest.mark.parametrize(
    ("n", "threads"), [(8, 1), (100_000, 2), *(pytest.param(*case, marks=LONG) for case in ((8, 2), (100_000, 1)))]
)
def test_a_second_ctrl_c_leaves_an_endless_program(n: int, threads: int) -> None:
    program = f"""
        print("ready", flush=True)
        try:
            search_on_ring({n})
        except KeyboardInterrupt as error:
            print("interrupted:", *error.__notes__, flush=True)
        check()
    """
    process = start(program, threads)
    count = "2 threads" if threads == 2 and n > 8 else "1 thread"
    note = "and may write to its arrays; it ends when its loop ends, or with the process"
    interrupt_until(process, f"interrupted: a kernel is still running on {count} {note}\n")
    assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize("threads", [pytest.param(1, marks=LONG), 2])
def test_a_process_that_does_not_catch_the_interrupt_ends(threads: int) -> None:
    process = start('print("ready", flush=True)\nsearch_on_ring(100_000)', threads)
    interrupt_until(process, "")
    _, errors = process.communicate(timeout=120)
    *_, last, note = errors.splitlines()
    assert last == "KeyboardInterrupt"
    assert note.startswith("a kernel is still running on")
    assert process.returncode == -signal.SIGINT


def test_a_second_ctrl_c_leaves_an_endless_operator() -> None:
    program = """
        def search(vertex, values):
            while values[vertex] != 1:
                values[vertex] = (values[vertex] + 2) & 0xFFFF
            return 0

        values = np.ones(9, np.int64)
        gp.process_vertices(search, gp.Frontier(gp.grid(3), device="cpu"), [values])
        values[:] = 0
        print("ready", flush=True)
        try:
            gp.process_vertices(search, gp.Frontier(gp.grid(3), device="cpu"), [values])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        check()
    """
    process = start(program, 2)
    interrupt_until(process, "interrupted\n")
    assert process.communicate(timeout=120) == ("", "")
    assert process.returncode == 0


def test_ctrl_c_ends_the_wait_for_an_endless_program_of_another_thread() -> None:
    program = """
        other = threading.Thread(target=search_on_ring, args=(8,), daemon=True)
        other.start()
        time.sleep(0.5)
        print("ready", flush=True)
        try:
            search_on_ring(100_001)
        except KeyboardInterrupt as error:
            print(*error.__notes__, flush=True)
        check()
        print(other.is_alive(), flush=True)
    """
    process = start(program, 2)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    os.kill(process.pid, signal.SIGINT)
    note = "another thread was running a kernel on these threads; the next kernel gets new ones\n"
    assert process.communicate(timeout=120) == (f"{note}True\n", "")
    assert process.returncode == 0


def test_a_kernel_that_ends_honours_the_first_ctrl_c() -> None:
    program = """
        def slow(value, incoming, ctx):
            total = incoming
            for k in range(20_000_000):
                total ^= total * 3 + k
            return value + (total & 1)

        program = gp.VertexProgram(
            value=np.int64, init=lambda ctx: 0, message=lambda value, ctx: 1, combine="sum", apply=slow, active="always"
        )
        graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0])
        gp.run(graph, program, device="cpu", threads=1, max_supersteps=2)
        print("ready", flush=True)
        try:
            gp.run(graph, program, device="cpu", threads=1)
        except KeyboardInterrupt as error:
            print("interrupted", getattr(error, "__notes__", []), flush=True)
    """
    process = start(program, 1)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    os.kill(process.pid, signal.SIGINT)
    assert process.communicate(timeout=120) == ("interrupted []\n", "")
    assert process.returncode == 0


def _callee(value: int) -> int:
    total = 0
    for k in range(value):
        total += k
    return total


def _looping(value: int) -> int:
    return _callee(value) + 1


def _plain(value: int) -> int:
    return max(value, 1) if value > 3 else -value


def test_loops_are_found_in_functions_and_their_callees() -> None:
    hidden = _looping
    assert [may_loop(one) for one in (_callee, _looping, lambda x: hidden(x), _plain, lambda x: _plain(x))] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert may_loop(lambda x: sum([k + 1 for k in (x, x)]))


@pytest.mark.parametrize("role", ["init", "message", "combine", "apply", "active", "aggregator", "none"])
def test_only_kernels_that_may_never_return_run_on_other_threads(role: str) -> None:
    def looping(*_: Any) -> Any:
        total = 0
        while total < 3:
            total += 1
        return total

    combine = gp.Combiner(lambda a, b: a + b + looping() if role == "combine" else a + b, 0)
    chosen: dict[str, Any] = {
        "init": lambda ctx: 0,
        "message": lambda value, ctx: 1,
        "combine": combine if role == "combine" else "sum",
        "apply": lambda value, incoming, ctx: incoming,
        "active": lambda old, new, ctx: False,
    }
    if role == "init":
        chosen["init"] = lambda ctx: looping()
    elif role == "message":
        chosen["message"] = lambda value, ctx: looping()
    elif role == "apply":
        chosen["apply"] = lambda value, incoming, ctx: looping()
    elif role == "active":
        chosen["active"] = lambda old, new, ctx: looping() > 1
    elif role == "aggregator":
        chosen["aggregators"] = {"sum": gp.Aggregator("sum", lambda old, new, ctx: looping())}
    compiled = compile_program(gp.VertexProgram(value=np.int64, **chosen), weight=None)
    kernels = {name: getattr(compiled, name) for name in ("init", "signal", "pull", "slot", "push", "apply")}
    expected = {
        "init": {"init"},
        "message": {"signal", "push"},
        "combine": {"signal", "pull", "slot", "push"},
        "none": set(),
    }
    found = {name for name, kernel in kernels.items() if kernel is not None and kernel.may_loop}
    assert expected.get(role, {"apply"}) <= found
    assert role not in expected or expected[role] == found - ({"apply"} if role == "combine" else set())


def test_bodies_of_operators_are_inspected(monkeypatch: pytest.MonkeyPatch) -> None:
    launched = []
    for name in ("launch", "launch_ranges"):
        monkeypatch.setattr(CpuDevice, name, lambda self, kernel, *_, **__: launched.append(kernel.may_loop))
    frontier = gp.Frontier(gp.grid(2), device="cpu")
    gp.process_vertices(lambda v: _looping(v), frontier)
    gp.process_vertices(lambda v: _plain(v), frontier)
    gp.process_edges(lambda u, v, weight: _plain(v) > 0, frontier, receives=lambda v: _looping(v) > 0)
    assert launched == [True, False, True]


@pytest.mark.parametrize("function", [_plain, _looping])
def test_loops_over_rows_are_not_those_of_users(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small call is then made on the calling thread."""
    launched = []
    monkeypatch.setattr(CpuDevice, "launch_ranges", lambda self, kernel, *_, **__: launched.append(kernel.may_loop))
    frontier = gp.Frontier(gp.grid(2), device="cpu")
    gp.reduce_rows(lambda v, u, weight: function(u), "sum", frontier, finish=lambda v, found: found, returns=None)
    gp.count_labels(
        lambda v, u, weight: function(u),
        frontier,
        choose=lambda v, label, total: total,
        finish=lambda v, label, total: label,
        returns=None,
    )
    gp.intersect_rows(lambda i, u, v, w, one, other: function(w), frontier)
    assert launched == 3 * [function is _looping]
