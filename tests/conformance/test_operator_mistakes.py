"""Mistakes in the functions of operators: each is an error that says what to change, compiled or interpreted."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, ProgramError
from tests.devices import GPUS, on

DEVICES = pytest.mark.parametrize("device", ["cpu", "python"])


def some(v: Any) -> Any:
    if v > 1:
        return True
    return None


class Counter:
    def count(self, v: Any) -> Any:
        return v


async def later(v: Any) -> Any:
    return v


def one_by_one(v: Any) -> Any:
    yield v


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (functools.partial(some), "must be a function .*, not partial"),
        (len, "must be a function .*, not builtin_function_or_method"),
        (Counter().count, "but is a method"),
        (later, "but is asynchronous"),
        (one_by_one, "but is a generator"),
    ],
)
@DEVICES
def test_only_plain_functions_are_taken(device: str, function: Any, kind: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    for call, role in (
        (lambda: gp.process_vertices(function, frontier), "the body"),
        (lambda: gp.process_edges(lambda u, v, weight: True, frontier, receives=function), "receives"),
        (lambda: gp.Buckets(frontier, function), "number"),
    ):
        with pytest.raises(ArgumentTypeError, match=f"{role} {kind}" if kind[:4] == "must" else f"{role} .*{kind}"):
            call()


@DEVICES
def test_the_number_of_arguments_is_checked_before_any_call(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    with pytest.raises(ProgramError, match=r"the body takes 1 argument, but is called with body\(v, \*arrays\): 2"):
        gp.process_vertices(lambda v: v, frontier, [1])
    with pytest.raises(ProgramError, match=r"receives takes 2 arguments, but .* receives\(v, \*arrays\): 1 \(.*line"):
        gp.process_edges(lambda u, v, weight: True, frontier, receives=lambda v, a: True)
    with pytest.raises(ProgramError, match=r"number takes 2 arguments, but is called with number\(v, \*arrays\): 1"):
        gp.Buckets(frontier, lambda v, keys: keys[v])
    with pytest.raises(ArgumentTypeError, match="arrays must be a list or tuple of arrays and numbers, not ndarray"):
        gp.Buckets(frontier, lambda v, keys: keys[v], np.arange(9))  # type: ignore[arg-type]


@DEVICES
def test_arguments_may_have_defaults(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    assert gp.process_vertices(lambda v, step, limit=3, share=0.5: (v < limit) * step * share, frontier, [2]) == 3.0


@pytest.mark.parametrize(("result", "shown"), [(0.5, "(float64|0.5)"), (None, "nothing"), ("x", "(a string|'x')")])
@DEVICES
def test_a_frontier_is_not_made_from_other_results(device: str, result: Any, shown: str) -> None:
    frontier = gp.Frontier(gp.grid(3, holes=0), device=device)
    with pytest.raises(ProgramError, match=rf"the body returns {shown}, but must return True or False .*line"):
        gp.process_edges(lambda u, v, weight: result, frontier)
    with pytest.raises(ProgramError, match=rf"receives returns {shown}, but must return True or False .*line"):
        gp.process_edges(lambda u, v, weight: True, frontier, receives=lambda v: result)


@DEVICES
def test_a_frontier_is_not_made_from_missing_results(device: str) -> None:
    with pytest.raises(ProgramError, match=r"(or nothing on some paths|returns nothing), but must return"):
        gp.process_vertices(some, gp.Frontier(gp.grid(3), device=device), returns="frontier")


@DEVICES
def test_numbers_of_buckets_are_integers(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    with pytest.raises(ProgramError, match=r"number returns float64, but must return an integer .*mistakes\.py, line"):
        gp.Buckets(frontier, lambda v: v / 2).pop()


def test_a_number_that_cannot_be_compiled_is_named() -> None:
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    with pytest.raises(ProgramError, match=r"number returns nothing, but must return an integer .*mistakes\.py, line"):
        gp.Buckets(frontier, lambda v: None).pop()
    with pytest.raises(ProgramError, match=r"number cannot be compiled .*mistakes\.py, line .*keys.nothing"):
        gp.Buckets(frontier, lambda v, keys: keys.nothing, [np.arange(9)]).pop()


def test_calls_that_numba_does_not_know_are_shown_with_their_types() -> None:
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    with pytest.raises(
        ProgramError, match=r"add\(array\(int8, 1d, C\), int64, .* is not supported: .* of 32 or 64 bits"
    ):
        gp.process_vertices(lambda v, a: gp.atomics.add(a, v, 1), frontier, [np.zeros(9, np.int8)])
    with pytest.raises(ProgramError, match=r"len\(int64\) is not supported\n"):
        gp.process_vertices(lambda v: len(v), frontier)


@DEVICES
def test_columns_of_data_frames_and_masked_arrays_are_not_taken(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] must be a NumPy array, .*, not MaskedArray"):
        gp.process_vertices(lambda v, a: a[v], frontier, [np.ma.masked_array(np.arange(9))])
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] must be a NumPy array, .* or a number, not Series"):
        gp.process_vertices(lambda v, a: a[v], frontier, [pandas.Series(np.arange(9))])


def test_interpreted_functions_name_the_vertex_or_the_edge() -> None:
    graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], directed=True)
    frontier = gp.Frontier(graph, device="python")

    def divide(v: Any) -> Any:
        return 6 // (v - 1)

    with pytest.raises(ZeroDivisionError) as caught:
        gp.process_vertices(divide, frontier)
    assert caught.value.__notes__[0].startswith("raised by the body for vertex 'bob' (")
    modes: tuple[Literal["push", "pull"], ...] = ("push", "pull")
    for mode in modes:
        with pytest.raises(IndexError) as failed:
            gp.process_edges(lambda u, v, weight, a: a[v] > 0, frontier, [np.zeros(2)], mode=mode)
        assert failed.value.__notes__[0].startswith("raised by the body for the edge from 'bob' to 'cid' (")
    with pytest.raises(ZeroDivisionError) as refused:
        gp.process_edges(lambda u, v, weight: True, frontier, receives=lambda v: 1 // (v - 2) < 0)
    assert refused.value.__notes__[0].startswith("raised by receives for vertex 'cid' (")


@pytest.mark.parametrize("device", [on(name) for name in ("cpu", "emulated", *GPUS, "python")])
def test_bodies_that_write_to_read_only_arrays_are_rejected(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    values, degrees = frontier.full(7, np.int64), frontier.csr().indptr
    for body in (lambda v, a, b: gp.atomics.add(b, v, a[v]), write_second):
        with pytest.raises(ProgramError, match=r"writes to a read-only array .*line.*: arrays\[1\] is read-only; pass"):
            gp.process_vertices(body, frontier, [values, degrees])
    assert frontier.download(degrees).tolist() == gp.grid(3).indptr.tolist()
    total = gp.process_vertices(lambda v, a, b: gp.atomics.load(b, v + 1), frontier, [values, degrees])
    assert total == sum(gp.grid(3).indptr)


def write_second(v: Any, a: Any, b: Any) -> Any:
    b[v] = a[v]
    return 1
