"""What a store keeps about a run of agents as a whole."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.run_metadata import RunMetadata, function_name


def compute(ctx: Any) -> None:
    ctx.vote_to_halt()


class Computing:
    def __call__(self, ctx: Any) -> None:
        ctx.vote_to_halt()

    def method(self, ctx: Any) -> None:
        ctx.vote_to_halt()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (compute, "compute"),
        (partial(partial(compute)), "compute"),
        (Computing(), "Computing"),
        (Computing().method, "Computing.method"),
        (lambda ctx: ctx.vote_to_halt(), "<lambda>"),
    ],
)
def test_names_of_functions(function: Any, name: str) -> None:
    assert function_name(function) == f"{__name__}:{name}"


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"__file__": "/shop/orders.py"}, "orders"),
        ({"__file__": "/shop/\udcff.py"}, r"\udcff"),
        ({"__spec__": SimpleNamespace(name="shop.orders"), "__file__": "/elsewhere/x.py"}, "shop.orders"),
        ({"__spec__": SimpleNamespace(name="shop.__main__")}, "shop"),
        ({"__spec__": None}, "__main__"),
    ],
)
def test_functions_of_a_script_have_the_name_of_its_module(
    facts: dict[str, Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = ModuleType("__main__")
    vars(main).update(facts)
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(compute, "__module__", "__main__")
    assert function_name(compute) == f"{name}:compute"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ("orders:compute", "orders:compute", None),
        ("orders:compute", "shop.orders:compute", None),
        ("shop.orders:compute", "orders:compute", None),
        ("orders:compute", "borders:compute", "was started with orders:compute, not borders:compute"),
        ("orders:compute", "orders:other", "was started with orders:compute, not orders:other"),
    ],
)
def test_differences_of_names(before: str, now: str, expected: str | None) -> None:
    assert RunMetadata({"compute": before}, {}).difference(RunMetadata({"compute": now}, {})) == expected


def test_missing_functions_and_metadata() -> None:
    run, other = RunMetadata({"compute": "a:b", "late": "a:late"}, {}), RunMetadata({"compute": "a:b"}, {})
    assert run.difference(other) == "needs the function 'late' (a:late), which was not passed"
    assert other.difference(run) is None
    assert RunMetadata.unpack(b"").difference(other) is None
    assert RunMetadata.unpack(None) == RunMetadata({}, {})
    with pytest.raises(CodecError):
        RunMetadata.unpack(b"nonsense")


def test_a_run_stores_its_metadata() -> None:
    store = gp.MemoryStore()
    options: dict[str, Any] = {"functions": {"late": Computing()}, "max_supersteps": None}
    gp.agents.start([], compute, store=store, run_id="run", **options).stop()
    names = {"compute": f"{__name__}:compute", "late": f"{__name__}:Computing"}
    assert RunMetadata.unpack(store.run("run").meta) == RunMetadata(names, {"max_supersteps": None})
