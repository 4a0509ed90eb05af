"""Compilation of the bodies of operators: what is compiled once, and what is kept on disk."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.host.traverse import bodies
from gpu_pregel.host.traverse.bounded_cache import BoundedCache


class Scale:
    """An object of unknown content, which a body refers to without using it."""


def test_bodies_are_checked_once_per_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: dict[str, str] = {}
    monkeypatch.setattr(bodies, "load_value", notes.get)
    monkeypatch.setattr(bodies, "save_value", notes.__setitem__)
    checked: list[Any] = []
    check = bodies._check

    def count(*arguments: Any) -> Any:
        checked.append(arguments)
        return check(*arguments)

    monkeypatch.setattr(bodies, "_check", count)
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    for _ in range(2):
        monkeypatch.setattr(bodies, "_kernels", BoundedCache(9))
        assert gp.process_vertices(lambda v: v + 0.25, frontier) == 38.25
    assert len(checked) == len(notes) == 1
    assert list(notes.values()) == ["<f8"]
    unknown = Scale()

    def body(v: Any) -> Any:
        return v if unknown is not None else 0

    with pytest.raises(gp.errors.ProgramError):
        gp.process_vertices(body, frontier)
    assert len(notes) == 1


def test_numbers_do_not_compile_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    make = bodies.compile_bodies

    def count(*arguments: Any) -> Any:
        made.append(arguments)
        return make(*arguments)

    monkeypatch.setattr("gpu_pregel.host.traverse.operators_cpu.compile_bodies", count)
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    totals = [gp.process_vertices(lambda v, step: v * step + 3, frontier, [step]) for step in range(4)]
    assert totals == [27, 63, 99, 135]
    assert len(made) == 1


def test_functions_are_evicted_while_they_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_fingerprints", BoundedCache(1))
    monkeypatch.setattr(bodies, "_kernels", BoundedCache(1))
    frontier = gp.Frontier(gp.grid(3, holes=0), device="cpu")
    for _ in range(2):
        total = gp.process_edges(lambda u, v, w: 1.25, frontier, receives=lambda v: v < 1, returns="sum", mode="pull")
        assert total == 2.5
