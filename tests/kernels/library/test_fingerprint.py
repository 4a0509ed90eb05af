"""Tests of fingerprints: equal for equal code in any place, different for every change of a result."""

from __future__ import annotations

from collections import namedtuple
from enum import Enum
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from gpu_pregel.kernels.library import atomics, fingerprint
from gpu_pregel.kernels.library.fingerprint import Fingerprint


def digest(*things: Any, with_package: bool = False) -> str:
    found = Fingerprint(with_package=with_package)
    found.add(*things)
    return found.hexdigest()


def defined(source: str, **names: Any) -> Any:
    """Return a function ``f`` compiled from a source text, with its own globals."""
    namespace: dict[str, Any] = {"__name__": "somewhere", **names}
    exec(source, namespace)
    return namespace["f"]


def test_equal_code_in_another_place_has_the_same_digest() -> None:
    text = "f = lambda x: x + 1"
    assert digest(defined(text)) == digest(defined("\n\n\n" + text))
    assert digest(defined(text)) == digest(defined("from __future__ import annotations\n" + text))


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (defined("f = lambda x: x + 1"), defined("f = lambda x: x + 2")),
        (defined("f = lambda x: x + 1"), defined("f = lambda x: x - 1")),
        (defined("f = lambda x: x + 1"), defined("f = lambda x: x + 1.0")),
        (defined("f = lambda x: x + True"), defined("f = lambda x: x + 1")),
        (defined("f = lambda x, y=1: x"), defined("f = lambda x, y=2: x")),
        (defined("f = lambda x: min(x, 1)"), defined("f = lambda x: max(x, 1)")),
        (defined("f = lambda x: x * k", k=1), defined("f = lambda x: x * k", k=2)),
        (defined("f = lambda x: x * k", k=np.float32(1)), defined("f = lambda x: x * k", k=np.float64(1))),
        (defined("f = lambda x: t[x]", t=np.array([1, 2])), defined("f = lambda x: t[x]", t=np.array([1, 3]))),
        (defined("f = lambda x: t[x]", t=(1, 2)), defined("f = lambda x: t[x]", t=(2, 1))),
        (
            defined("f = lambda x: g(x)", g=defined("f = lambda x: x + 1")),
            defined("f = lambda x: g(x)", g=defined("f = lambda x: x + 2")),
        ),
        (
            defined("f = lambda x: g(x)", g=defined("f = lambda x: h(x)", h=defined("f = lambda x: x + k", k=1))),
            defined("f = lambda x: g(x)", g=defined("f = lambda x: h(x)", h=defined("f = lambda x: x + k", k=2))),
        ),
        (
            defined("def f(x):\n    def g(y):\n        return y * k\n    return g(x)", k=1),
            defined("def f(x):\n    def g(y):\n        return y * k\n    return g(x)", k=2),
        ),
        ((1, 2), (1, (2,))),
        ("ab", b"ab"),
        ({"a": 1}, {"a": 2}),
    ],
)
def test_a_change_of_the_result_changes_the_digest(one: Any, two: Any) -> None:
    assert digest(one) != digest(two)
    assert digest(one) == digest(one)


def test_closures_and_module_attributes_are_included() -> None:
    def make(k: int) -> Any:
        return lambda x: x + k

    assert digest(make(1)) == digest(make(1))
    assert digest(make(1)) != digest(make(2))
    digests = []
    for value in (1, 2, 1):
        module = ModuleType("settings")
        module.k = value  # type: ignore[attr-defined]
        module.unused = object()  # type: ignore[attr-defined]
        digests.append(digest(defined("f = lambda x: x + settings.k", settings=module)))
    assert digests[0] == digests[2] != digests[1]


def test_recursive_functions_and_names() -> None:
    found = Fingerprint()
    found.add(defined("def f(ctx):\n    return 1 if ctx.in_degree == 0 else f(ctx)"))
    assert {"in_degree", "f"} <= found.names
    assert found.is_complete


def test_an_unknown_object_makes_the_fingerprint_incomplete() -> None:
    found = Fingerprint()
    found.add(defined("f = lambda x: thing(x)", thing=object()))
    assert not found.is_complete


def test_functions_of_the_package_are_included_on_request() -> None:
    """By default an update of the package keeps a program's digest; compiled code depends on the package too."""

    def using(helper: Any, **names: Any) -> Any:
        helper.__module__ = "gpu_pregel.somewhere"
        helper.__qualname__ = "helper"
        return defined("f = lambda x: helper(x)", helper=helper, **names)

    one, two = (using(defined(f"def f(x):\n    return x + {k}")) for k in (1, 2))
    assert digest(one) == digest(two)
    assert digest(one, with_package=True) != digest(two, with_package=True)


def test_compiler_options_and_fields_of_named_tuples_are_part_of_compiled_code() -> None:
    function = defined("f = lambda x: x + 1")
    plain, fast = (defined("f = lambda x: g(x)", g=numba.njit(fastmath=fast)(function)) for fast in (False, True))
    assert digest(plain, with_package=True) != digest(fast, with_package=True)
    one, two = (defined("f = lambda x: T(x, x)", T=namedtuple("T", names)) for names in ("a b", "b a"))
    assert digest(one, with_package=True) != digest(two, with_package=True)


def test_types_of_numba_are_told_apart() -> None:
    one, two = (defined("f = lambda x: T(x)", T=kind) for kind in (numba.float32, numba.float64))
    assert digest(one) != digest(two)


def module(name: str, **content: Any) -> ModuleType:
    result = ModuleType(name)
    vars(result).update(content)
    return result


POINT = "f = make('Point', '{}')(1, 2)"
STRUCTURE, SWAPPED = np.dtype([("a", "i8"), ("b", "i8")]), np.dtype([("b", "i8"), ("a", "i8")])


@pytest.mark.parametrize(
    ("code", "one", "two"),
    [
        ("c.A.value", Enum("Color", {"A": 1}), Enum("Color", {"A": 2})),
        ("c.a", defined(POINT.format("a b"), make=namedtuple), defined(POINT.format("b a"), make=namedtuple)),
        ("c[0].a", np.array([(1, 2)], STRUCTURE), np.array([(1, 2)], SWAPPED)),
        ("c", STRUCTURE, SWAPPED),
        ("c.sub.K", module("pack", sub=module("pack.sub", K=1)), module("pack", sub=module("pack.sub", K=2))),
    ],
    ids=["enumeration", "named tuple", "structured array", "structured dtype", "submodule"],
)
def test_a_change_of_a_compiled_constant_changes_the_key_of_compiled_code(code: str, one: Any, two: Any) -> None:
    digests = [digest(defined(f"f = lambda: {code}", c=constant), with_package=True) for constant in (one, two, one)]
    assert digests[0] == digests[2] != digests[1]


def test_modules_that_contain_each_other() -> None:
    outer, inner = module("outer", K=1), module("outer.inner", K=2)
    outer.inner, inner.outer = inner, outer  # type: ignore[attr-defined]
    function = defined("f = lambda: c.inner.outer.inner.K", c=outer)
    before = digest(function, with_package=True)
    inner.K = 3  # type: ignore[attr-defined]
    assert digest(function, with_package=True) != before


def test_a_module_that_replaces_itself_when_imported_is_the_same_module() -> None:
    """After ``import numba.types``, numba.types is another module than before."""
    one, two, other = (
        defined("f = lambda x: types.int64(x)", types=ModuleType(name))
        for name in ("numba.core.types", "numba.types", "numba.cuda")
    )
    assert digest(one) == digest(two) != digest(other)


def test_overloads_are_part_of_the_functions_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    function = defined("f = lambda a: atomics.add(a, 0, 1)", atomics=atomics)
    before = digest(function, with_package=True)
    assert digest(function, with_package=True) == before
    monkeypatch.setattr(fingerprint, "_overloads", lambda: b"another source")
    assert digest(function, with_package=True) != before
