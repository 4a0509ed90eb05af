"""Mistakes in vertex programs with named fields, and what their errors say on every device."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import CompileError
from tests.devices import EMULATED, LONG

WAYS = [
    pytest.param({"device": "cpu"}, id="cpu"),
    pytest.param({"device": "cpu", "check": True}, id="check"),
    pytest.param({"device": "python"}, id="python"),
    pytest.param({"device": "agents"}, id="agents"),
    pytest.param({"device": "emulated"}, id="emulated", marks=EMULATED),
]
TABLE = np.arange(3)
FIELDS = {"hub": np.float64, "authority": np.float64}


def program(**given: Any) -> gp.VertexProgram:
    functions: dict[str, Any] = {
        "init": lambda ctx: (0.0, 1.0),
        "message": lambda value, ctx: value,
        "apply": lambda value, incoming, ctx: value,
        **given,
    }
    return gp.VertexProgram(value=FIELDS, combine="sum", **functions)


def run(one: gp.VertexProgram, way: dict[str, Any]) -> Any:
    graph = gp.Graph.from_edgelist(list("abcde"), list("bcdea"), directed=True)
    return gp.run(graph, one, max_supersteps=3, on_limit="return", **way)


def assigned(value: Any, incoming: Any, ctx: Any) -> Any:
    new = value
    if ctx.vertex > 1:
        new = (1, 2.0)
    return new


def returned(value: Any, incoming: Any, ctx: Any) -> Any:
    if ctx.vertex > 1:
        return 1, 2.0
    return value


UNIFYING: dict[str, Callable[..., Any]] = {
    "record or tuple": lambda value, incoming, ctx: value if ctx.vertex < 2 else (1, 2.0),
    "tuple or record": lambda value, incoming, ctx: (1, 2.0) if ctx.vertex > 1 else value,
    "assigned": assigned,
    "returned": returned,
    "fields of the result": lambda value, incoming, ctx: (
        ((1.0, 2.0) if ctx.vertex > 1 else value).hub,  # type: ignore[union-attr]
        ((1.0, 2.0) if ctx.vertex > 1 else value)[1],
    ),
    "replaced": lambda value, incoming, ctx: value._replace(hub=1, authority=2.0) if ctx.vertex > 1 else value,
}


_COMPILED = {"cpu": "returned", "check": "fields of the result", "emulated": "assigned"}
"""What is compiled by default: results, expressions and variables of both types."""


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(
            *(name, *way.values), id=f"{name}-{way.id}", marks=[*way.marks, *([] if chosen == name else [LONG])]
        )
        for name in UNIFYING
        for way in WAYS
        if (chosen := _COMPILED.get(str(way.id)))
    ],
)
def test_a_value_and_a_tuple_of_its_fields_are_of_one_type(name: str, way: dict[str, Any]) -> None:
    result = run(program(apply=UNIFYING[name]), way)
    assert list(result.to_dict().values()) == [(0.0, 1.0)] * 2 + [(1.0, 2.0)] * 3


@pytest.mark.parametrize("way", WAYS)
def test_replace_changes_the_named_fields_only(way: dict[str, Any]) -> None:
    result = run(program(apply=lambda value, incoming, ctx: value._replace(hub=3.0)), way)
    assert list(result.to_dict().values()) == [(3.0, 1.0)] * 5


def set_field(value: Any, incoming: Any, ctx: Any) -> Any:
    value.hub = 1.0
    return value


def set_field_later(value: Any, incoming: Any, ctx: Any) -> Any:
    hub = value.hub
    if ctx.vertex > 1:
        hub += 1.0
        value.hub = hub
    return value


def set_field_of_helper(value: Any, incoming: Any, ctx: Any) -> Any:
    return set_field_later(value, incoming, ctx)


def set_unknown_field(value: Any, incoming: Any, ctx: Any) -> Any:
    value.hubb = 1.0
    return value


def set_item(value: Any, incoming: Any, ctx: Any) -> Any:
    value[0] = 1.0
    return value


CANNOT = r"fields cannot be assigned, .*return a new value: \(hub, authority\).*value\._replace\(hub=…\)"
NO_HUBB = r"there is no field 'hubb'; fields: hub, authority; did you mean 'hub'\?"
ASSIGNED, LATER = (r"py, line \d+: value\.hub = " + right for right in (r"1\.0", "hub"))
UNKNOWN, ITEM = (r"py, line \d+: " + left + r" = 1\.0" for left in (r"value\.hubb", r"value\[0\]"))
MISTAKES: dict[str, tuple[Callable[..., Any], str]] = {
    "field assigned": (set_field, rf"(?s){ASSIGNED}.*{CANNOT}|{CANNOT}.*{ASSIGNED}"),
    "field assigned later": (set_field_later, rf"(?s){LATER}.*{CANNOT}|{CANNOT}.*{LATER}"),
    "field assigned by a helper": (set_field_of_helper, rf"(?s){LATER}.*{CANNOT}|{CANNOT}.*{LATER}"),
    "unknown field assigned": (set_unknown_field, rf"(?s){UNKNOWN}.*{NO_HUBB}|{NO_HUBB}.*{UNKNOWN}"),
    "item assigned": (set_item, rf"(?s){ITEM}.*{CANNOT}|{CANNOT}.*{ITEM}"),
    "field of the value": (lambda value, incoming, ctx: (value.hubb, 1.0), NO_HUBB),
    "field of the message": (lambda value, incoming, ctx: (incoming.hubb, 1.0), NO_HUBB),
    "field replaced": (lambda value, incoming, ctx: value._replace(hubb=1.0), NO_HUBB),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MISTAKES)
def test_errors_name_the_fields_and_the_remedy(name: str, way: dict[str, Any]) -> None:
    function, expected = MISTAKES[name]
    text = text_of(lambda: run(program(apply=function), way))
    assert re.search(expected, text)
    assert "apply" in text
    assert re.search(r"test_program_mistakes\.py, line \d+", text)


def text_of(call: Callable[[], Any]) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 (the class differs from device to device)
        call()
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


@pytest.mark.parametrize("way", [way for way in WAYS if way.id != "cpu"])
def test_an_index_beyond_a_captured_array_names_array_index_vertex_and_line(way: dict[str, Any]) -> None:
    text = text_of(lambda: run(program(apply=lambda value, incoming, ctx: (TABLE[ctx.vertex], 1.0)), way))
    vertex = "3" if way["device"] == "agents" else "'d'"
    assert f"apply fails for vertex {vertex} in superstep 1" in text or "apply fails for vertex 'd'" in text
    assert "TABLE[ctx.vertex]: index 3 is out of bounds for axis 0 with size 3" in text
    assert re.search(r"test_program_mistakes\.py, line \d+", text)


def in_turns(roles: Iterable[str]) -> pytest.MarkDecorator:
    """Run a test of two roles checked and on the emulated device; by default, one of them each."""
    return pytest.mark.parametrize(
        ("role", "way"),
        [
            pytest.param(role, *way.values, id=f"{role}-{way.id}", marks=[*way.marks, *([LONG] if number == k else [])])
            for number, role in enumerate(roles)
            for k, way in enumerate(way for way in WAYS if way.id in ("check", "emulated"))
        ],
    )


COMPARING: dict[str, Callable[..., Any]] = {
    "initially_active": lambda ctx: TABLE[ctx.vertex] != 1,
    "active": lambda old, new, ctx: TABLE[ctx.vertex] > 0,
}


@in_turns(COMPARING)
def test_an_index_beyond_a_short_array_whose_element_is_only_compared(role: str, way: dict[str, Any]) -> None:
    text = text_of(lambda: run(program(**{role: COMPARING[role]}), way))
    assert f"{role} fails for vertex 'd' in superstep" in text
    assert "TABLE[ctx.vertex]: index 3 is out of bounds for axis 0 with size 3" in text


@pytest.mark.parametrize("way", [way for way in WAYS if way.id in ("check", "emulated")])
def test_an_index_for_a_vertex_that_gets_no_message(way: dict[str, Any]) -> None:
    """A pull of compiled code asks every vertex whether it receives."""
    one = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: incoming,
        receives=lambda value, ctx: TABLE[ctx.vertex] > -1,
    )
    graph = gp.Graph.from_edgelist(list("aba"), list("bcc"), vertices=list("abcde"), directed=True)
    text = text_of(lambda: gp.run(graph, one, mode="pull", **way))
    assert "receives fails for vertex 'd' in superstep 1" in text
    assert "TABLE[ctx.vertex]: index 3 is out of bounds for axis 0 with size 3" in text
    assert re.search(r"test_program_mistakes\.py, line \d+: receives=", text)


CONSTANT: dict[str, tuple[Callable[..., Any], str]] = {
    "init": (lambda ctx: (TABLE[7] * 1.0, 1.0), "TABLE[7]: index 7 is"),
    "apply": (
        lambda value, incoming, ctx: (value.hub + (TABLE[-9] if ctx.vertex == 3 else 0), 1.0),
        "TABLE[-9]: index -9 is",
    ),
}


@in_turns(CONSTANT)
def test_a_constant_index_beyond_an_array(role: str, way: dict[str, Any]) -> None:
    function, problem = CONSTANT[role]
    text = text_of(lambda: run(program(**{role: function}), way))
    assert f"{role} fails for vertex {'a' if role == 'init' else 'd'!r} in superstep" in text
    assert f"{problem} out of bounds for axis 0 with size 3" in text
    assert re.search(r"test_program_mistakes\.py, line \d+", text)


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (lambda value, incoming, ctx: (np.copysign(value.hub, incoming.hub), 1.0), r"np\.copysign .*math\.copysign"),
        (lambda value, incoming, ctx: (np.random.random(), 1.0), r"CPUs only.*ctx\.random\(draw\)"),  # noqa: NPY002
        (lambda value, incoming, ctx: (random.random(), 1.0), r"CPUs only.*ctx\.random\(draw\)"),
        (lambda value, incoming, ctx: (np.logaddexp(value.hub, 2.0), 1.0), r"np\.logaddexp .*write it with"),
    ],
)
@EMULATED
def test_a_function_that_gpus_lack_is_named(function: Callable[..., Any], remedy: str) -> None:
    with pytest.raises(CompileError, match=remedy):
        run(program(apply=function), {"device": "emulated"})


MIX = np.uint64(0x9E3779B97F4A7C15)


def rotated(x: Any, k: int) -> Any:
    return (x << np.uint64(k)) | (x >> np.uint64(64 - k))


@pytest.mark.parametrize("way", WAYS)
def test_hashes_of_unsigned_integers_are_the_same_everywhere(way: dict[str, Any]) -> None:
    def mixed(ctx: Any) -> Any:
        x = np.uint64(ctx.vertex + 1) * MIX
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x *= MIX
        y = np.uint32(np.uint32(ctx.vertex) * np.uint32(0x9E3779B9))
        x = np.uint64(x * MIX * MIX + MIX) * np.uint64(ctx.vertex + 3) + rotated(x * MIX, 7) * rotated(x, 11)
        x += -np.uint64(ctx.vertex) * (MIX if ctx.vertex > 2 else x)
        return (x - MIX) ^ np.uint64(y)

    hashing = gp.VertexProgram(
        value=np.uint64,
        init=mixed,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: value,
    )
    expected = []
    for vertex in range(5):
        x, mix = (vertex + 1) * int(MIX) % 2**64, int(MIX)
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 * mix % 2**64
        y = x * mix % 2**64
        y, z = y << 7 | y >> 57, x << 11 | x >> 53
        x = ((x * mix * mix + mix) * (vertex + 3) + y % 2**64 * (z % 2**64)) % 2**64
        x = x - vertex * (mix if vertex > 2 else x) - mix
        expected.append(x % 2**64 ^ vertex * 0x9E3779B9 % 2**32)
    assert run(hashing, way).to_numpy().tolist() == expected


def test_unsigned_arithmetic_of_a_function_without_source_wraps_and_calls_nothing_twice() -> None:
    names: dict[str, Any] = {"np": np, "MIX": MIX, "calls": []}
    exec(
        "def drawn(x):\n    calls.append(x)\n    return np.uint64(x)\n"
        "def init(ctx):\n    return drawn(ctx.vertex + 2) * MIX * drawn(2**63 + 1) + drawn(7) * drawn(2**64 - 1)\n",
        names,
    )
    hashing = gp.VertexProgram(
        value=np.uint64,
        init=names["init"],
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: value,
    )
    found = run(hashing, {"device": "python"}).to_numpy().tolist()
    expected = [(v + 2) * int(MIX) * (2**63 + 1) + 7 * (2**64 - 1) for v in range(5)]
    assert found == [number % 2**64 for number in expected]
    assert names["calls"] == [x for v in range(5) for x in (v + 2, 2**63 + 1, 7, 2**64 - 1)]


@pytest.mark.parametrize("way", [way for way in WAYS if way.id in ("check", "python")])
def test_signed_overflow_and_narrow_results_that_differ_stay_errors(way: dict[str, Any]) -> None:
    def of(init: Callable[[Any], Any]) -> str:
        one = gp.VertexProgram(
            value=np.int64,
            init=init,
            message=lambda value, ctx: value,
            combine="max",
            apply=lambda value, incoming, ctx: value,
        )
        return text_of(lambda: run(one, way))

    assert "overflow" in of(lambda ctx: np.int64(2**62) * np.int64(ctx.vertex))
    assert "overflow" in of(lambda ctx: (np.int64(2**62) + np.int64(ctx.vertex)) * 2 + 1)
    if way["device"] == "python":
        narrow = of(lambda ctx: np.uint32(ctx.vertex + 1) * np.uint32(2**32 - 1) >> np.uint32(3))
        assert "a result exceeds uint32" in narrow
        unknown = of(lambda ctx: getattr(np, "uint64")(2**63) * getattr(np, "uint64")(ctx.vertex + 2))  # noqa: B009
        assert "assign it to a variable first" in unknown


def stop(value: Any, incoming: Any, ctx: Any) -> Any:
    if ctx.vertex == 3 and ctx.superstep == 2:
        raise ValueError("enough")
    return incoming


@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("way", WAYS)
def test_an_exception_of_a_function_has_vertex_superstep_and_line(way: dict[str, Any], mode: str) -> None:
    one = gp.VertexProgram(
        value=np.int64, init=lambda ctx: 5, message=lambda value, ctx: value - 1, combine="min", apply=stop
    )
    text = text_of(lambda: run(one, {**way, "mode": mode}))
    assert re.search(r"vertex ('d'|3) .*in superstep 2|vertex 3: ", text)
    assert "enough" in text
    assert re.search(r"test_program_mistakes\.py, line \d+: raise ValueError", text)


def combined(a: Any, b: Any) -> Any:
    if a + b == 5:
        raise ValueError("enough")
    return a + b


@pytest.mark.parametrize("way", [way for way in WAYS if way.id != "agents"])
def test_an_exception_of_a_combiner_has_vertex_superstep_line_and_message(way: dict[str, Any]) -> None:
    one = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex + 1,
        message=lambda value, ctx: value,
        combine=gp.Combiner(combined, 0),
        apply=lambda value, incoming, ctx: incoming,
    )
    text = text_of(lambda: run(one, way))
    assert re.search(r"vertex ('a'|0) .*in superstep 1", text)
    assert "enough" in text
    assert re.search(r"test_program_mistakes\.py, line \d+: raise ValueError", text)


@pytest.mark.parametrize("device", ["cpu", "python", pytest.param("emulated", marks=EMULATED)])
def test_an_exception_of_a_body_has_vertex_and_line(device: str) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist(list("abcd"), list("bcde")), device=device)
    array = frontier.full(0, np.int64)

    def body(v: Any, array: Any) -> Any:
        if v == 3:
            raise ValueError("enough")
        return 1

    def along(u: Any, v: Any, weight: Any, array: Any) -> Any:
        if v == 3:
            raise ValueError("enough")
        return True

    for call, where in [
        (lambda: gp.process_vertices(body, frontier, [array]), "vertex 'd'"),
        (lambda: gp.process_edges(along, frontier, [array], mode="push"), "the edge from 'c' to 'd'"),
    ]:
        text = text_of(call)
        assert where in text
        assert re.search(r"test_program_mistakes\.py, line \d+: raise ValueError", text)
    if device != "cpu":
        text = text_of(lambda: gp.process_vertices(lambda v, array: array[v + 2], frontier, [array]))
        assert "vertex 'd'" in text
