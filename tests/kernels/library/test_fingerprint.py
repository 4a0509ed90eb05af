"""Tests of fingerprints: equal for equal code wherever it stands, different for whatever changes a result."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gpu_pregel.kernels.library.fingerprint import Fingerprint


def digest(*things: Any) -> str:
    fingerprint = Fingerprint()
    fingerprint.add(*things)
    return fingerprint.hexdigest()


def defined(source: str, **names: Any) -> Any:
    """A function ``f`` from its text, with globals of its own."""
    namespace: dict[str, Any] = {"__name__": "somewhere", **names}
    exec(source, namespace)
    return namespace["f"]


def test_the_same_text_elsewhere_has_the_same_digest() -> None:
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
def test_what_changes_the_result_changes_the_digest(one: Any, two: Any) -> None:
    assert digest(one) != digest(two)
    assert digest(one) == digest(one)


def test_closures_and_attributes_of_modules_count() -> None:
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


def test_recursion_ends_and_names_are_collected() -> None:
    fingerprint = Fingerprint()
    fingerprint.add(defined("def f(ctx):\n    return 1 if ctx.in_degree == 0 else f(ctx)"))
    assert {"in_degree", "f"} <= fingerprint.names
    assert fingerprint.is_complete


def test_what_cannot_be_told_makes_it_incomplete() -> None:
    fingerprint = Fingerprint()
    fingerprint.add(defined("f = lambda x: thing(x)", thing=object()))
    assert not fingerprint.is_complete
