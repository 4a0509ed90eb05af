"""Ctrl-C while Numba compiles: it is handled when the compilation has ended."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gpu_pregel.kernels.library.cache import KernelCache
from gpu_pregel.kernels.library.interrupts import deferred_interrupts
from gpu_pregel.kernels.library.jit_cpu import jit


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Shells start background processes with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def press_ctrl_c(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_signals_wait_for_the_end_of_the_outermost_block() -> None:
    reached = []

    def press_twice() -> None:
        with deferred_interrupts():
            with deferred_interrupts():
                press_ctrl_c()
                press_ctrl_c()
                reached.append("inner")
            reached.append("outer")

    with pytest.raises(KeyboardInterrupt):
        press_twice()
    assert reached == ["inner", "outer"]


def test_an_interrupt_replaces_an_error() -> None:
    def fail() -> None:
        with deferred_interrupts():
            press_ctrl_c()
            raise ValueError

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ValueError)


def test_other_handlers_are_called_and_ignored_signals_stay_ignored() -> None:
    calls: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    with deferred_interrupts():
        press_ctrl_c()
        assert calls == []
    assert calls == [signal.SIGINT]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with deferred_interrupts():
        press_ctrl_c()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_leave_the_handler_alone() -> None:
    found: list[Any] = []

    def look() -> None:
        with deferred_interrupts():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_function_is_compiled_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KernelCache, "load_overload", press_ctrl_c)
    monkeypatch.setattr(KernelCache, "save_overload", press_ctrl_c)
    increment: Any = jit(lambda x: x + 1)
    with pytest.raises(KeyboardInterrupt):
        increment(1)
    assert len(increment.signatures) == 1
    assert increment(1) == 2
