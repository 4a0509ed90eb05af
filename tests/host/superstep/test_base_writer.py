"""When bases are due, and bases written in the background."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from gpu_pregel.errors import FencedError, StoreError
from gpu_pregel.host.superstep.base_writer import LARGE_BASE, BaseSchedule, BaseWriter, Packing


def packing(*waits: Callable[[], object], data: bytes = b"base") -> Packing:
    for wait in waits:
        wait()
        yield
    return data


@pytest.mark.parametrize(
    ("every", "size", "added", "is_due"),
    [
        (1, 0, [], True),
        (3, 0, [9], False),
        (3, 0, [9, 9], True),
        (1, None, [], True),
        (2, 1 << 17, [9], False),
        (2, 1 << 17, [1 << 16, 1 << 16], True),
    ],
)
def test_a_base_is_due_after_some_commits_of_its_size(
    every: int, size: int | None, added: list[int], is_due: bool
) -> None:
    schedule = BaseSchedule(every, 0, size, 0)
    for one in added:
        schedule.add(one, commits=1)
    assert schedule.is_due() is is_due


def test_a_base_is_written_while_the_caller_continues() -> None:
    may_go_on = threading.Event()
    written: list[bytes] = []
    schedule = BaseSchedule(2, 1, LARGE_BASE + 1, LARGE_BASE + 1)
    assert schedule.is_due()
    was_large = schedule.is_large
    schedule.begin(packing(may_go_on.wait, data=b"data"), written.append)
    for _ in range(3):
        schedule.add(LARGE_BASE, commits=1)
        schedule.end(wait=False)
        assert not schedule.is_due()
    assert not written
    may_go_on.set()
    schedule.end(wait=True)
    assert written == [b"data"]
    assert (was_large, schedule.is_large) == (True, False)
    assert schedule.is_due()  # three commits have been added since


@pytest.mark.parametrize("error", [StoreError("store", "is full"), FencedError("run", "was claimed")])
def test_a_base_that_the_store_rejects_is_due_again(error: Exception) -> None:
    def reject(_: bytes) -> None:
        raise error

    schedule = BaseSchedule(2, 1, LARGE_BASE + 1, LARGE_BASE + 1)
    schedule.begin(packing(), reject)
    schedule.end(wait=True)
    assert schedule.is_due()
    assert schedule.is_large


def test_a_base_that_cannot_be_encoded_is_an_error_once() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    written: list[bytes] = []
    schedule = BaseSchedule(1, 0, LARGE_BASE + 1, LARGE_BASE + 1)
    schedule.begin(packing(fail), written.append)
    with pytest.raises(ZeroDivisionError):
        schedule.end(wait=True)
    schedule.end(wait=True)
    assert not written


def test_a_base_given_up_is_not_written() -> None:
    may_go_on, has_begun = threading.Event(), threading.Event()
    written: list[bytes] = []
    writer = BaseWriter(packing(has_begun.set, may_go_on.wait), written.append)
    has_begun.wait()
    writer.cancel()
    may_go_on.set()
    writer.finish()
    assert not written
    assert writer.size is None
