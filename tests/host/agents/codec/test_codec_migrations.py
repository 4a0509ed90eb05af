"""Decoding of registered types that have changed since their data were encoded."""

from __future__ import annotations

import collections
import enum
import sys
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode, register

pydantic: Any = pytest.importorskip("pydantic", reason="pydantic is not installed")


def _defined(kind: str, fields: dict[str, Any], migrate: Any = None) -> type:
    """Register another version of a type; the values of ``fields`` are defaults, or ``...``."""
    if kind == "enum":
        return register(cast("type", enum.Enum("Evolving", fields, module=__name__)), "Evolving", migrate=migrate)
    given = {name: default for name, default in fields.items() if default is not ...}
    body = {"__annotations__": dict.fromkeys(fields, Any), "__module__": __name__, **given}
    if kind == "dataclass":
        body |= {name: field(default_factory=list) for name, default in given.items() if default == []}
        return register(dataclass(type("Evolving", (), body)), migrate=migrate)
    bases = (pydantic.BaseModel,) if kind == "model" else ()
    made = type("Evolving", bases, body) if bases else collections.namedtuple(
        "Evolving", fields, defaults=list(given.values()), module=__name__
    )  # fmt: skip
    return register(made, "Evolving", migrate=migrate)


@pytest.mark.parametrize("kind", ["dataclass", "namedtuple", "model"])
@pytest.mark.parametrize(
    ("fields", "migrate", "expected"),
    [
        ({"a": ..., "b": ..., "c": 3}, None, {"a": 1, "b": 2, "c": 3}),
        ({"b": ..., "a": ..., "c": []}, None, {"b": 2, "a": 1, "c": []}),
        (
            {"a": ..., "b": ..., "c": ...},
            None,
            r"has no field 'c', which .*Evolving has: give it a default, or pass mig",
        ),
        ({"a": ...}, None, r"has a field 'b' that .*Evolving does not have: pass migrate="),
        ({"a": ..., "c": ...}, lambda old: {"a": old["a"], "c": -old["b"]}, {"a": 1, "c": -2}),
        ({"sum": ..., "c": 7}, lambda old: {"sum": old["a"] + old["b"]}, {"sum": 3, "c": 7}),
        ({"a": ...}, lambda old: old, "has a field 'b' that"),
        ({"a": ..., "c": ...}, lambda old: {"a": old["a"]}, "has no field 'c'"),
        ({"a": ...}, lambda old: {"a": old["no"]}, r"migrate of .*Evolving raised KeyError: 'no'"),
        ({"a": ...}, lambda old: None, r"migrate of .*Evolving returned NoneType, not a dict"),
        ({"a": ...}, lambda old: sys.exit(3), r"migrate of .*Evolving raised SystemExit: 3"),
        (
            {"a": ...},
            lambda old: {"a": [print]},
            r"migrate of .*Evolving returned fields\.a\[0\], which is of type builtin_function",
        ),
    ],
)
def test_data_of_a_former_version(kind: str, fields: dict[str, Any], migrate: Any, expected: Any) -> None:
    former = _defined(kind, {"a": ..., "b": ...})
    data = encode([former(a=1, b=2), 5])
    current = _defined(kind, fields, migrate)
    if isinstance(expected, str):
        with pytest.raises(CodecError, match=r"value\[0\] .*" + expected):
            decode(data)
        return
    first, second = decode(data), decode(data)
    assert first == [current(**expected), 5]
    assert decode(encode(first)) == first
    if kind == "dataclass" and "c" in fields and fields["c"] == []:
        assert first[0].c is not second[0].c
    if kind == "model":
        assert first[0].model_fields_set == set(expected) - ({"c"} if fields.get("c", ...) is not ... else set())


def test_renamed_members_of_an_enum_are_migrated() -> None:
    data = encode(_defined("enum", {"OLD": 1, "SAME": 2})["OLD"])  # type: ignore[index]
    current: Any = _defined("enum", {"NEW": 1, "SAME": 2})
    with pytest.raises(CodecError, match="'OLD', and not a member"):
        decode(data)
    current = _defined("enum", {"NEW": 1, "SAME": 2}, lambda old: {"name": {"OLD": "NEW"}[old["name"]]})
    assert decode(data) is current.NEW
    assert decode(encode([current.SAME, current.NEW])) == [current.SAME, current.NEW]


def test_a_namedtuple_may_become_a_dataclass_by_migration() -> None:
    data = encode(_defined("namedtuple", {"a": ..., "b": ...})(1, 2))
    _defined("dataclass", {"a": ..., "b": ...})
    with pytest.raises(CodecError, match="of a different kind"):
        decode(data)
    current = _defined("dataclass", {"a": ..., "b": ...}, dict)
    assert decode(data) == current(1, 2)


@pytest.mark.parametrize("kind", ["dataclass", "namedtuple", "model"])
def test_each_object_gets_a_default_of_its_own(kind: str) -> None:
    element = _element()
    former = _defined(kind, {"a": ...})
    data = encode([former(a=number) for number in range(2)])
    _defined(kind, {"a": ..., "b": element([])})
    first, second = decode(data)
    first.b.items.append(5)
    assert (second.b.items, decode(data)[0].b.items) == ([], [])


def _element() -> Any:
    """Register and return a mutable type that dataclasses accept as a default."""

    @register
    @dataclass(eq=False)
    class Element:
        items: list[int]

    return Element


def _exit() -> Any:
    sys.exit(3)


def test_a_default_that_fails_is_named() -> None:
    data = encode(_defined("dataclass", {"a": ...})(a=1))
    _defined("dataclass", {"a": ..., "b": field(default_factory=_exit)})
    with pytest.raises(CodecError, match=r"the default of .*Evolving\.b raised SystemExit: 3"):
        decode(data)
