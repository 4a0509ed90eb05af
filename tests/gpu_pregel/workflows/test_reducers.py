"""The ready-made reducers: tables of old values, updates and results."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.workflows import add_messages, append, increment, last, merge


def message(content: str, name: str | None = None, role: str = "user") -> dict[str, Any]:
    found = {"role": role, "content": content}
    return found if name is None else {**found, "id": name}


def removal(name: str) -> dict[str, Any]:
    return {"role": "remove", "id": name}


HI, HO, NEW = message("hi", "1"), message("ho", "2"), message("new", "1")
TABLE: list[tuple[Any, Any, Any, Any]] = [
    (append, [], [], []),
    (append, [1], [2, 3], [1, 2, 3]),
    (append, [1], 2, [1, 2]),
    (append, [1], (2, 3), [1, (2, 3)]),
    (append, [1], None, [1, None]),
    (append, None, [1], [1]),
    (append, [[1]], [[2]], [[1], [2]]),
    (append, (1, 2), [3], [1, 2, 3]),
    (merge, {}, {}, {}),
    (merge, {"a": 1, "b": 1}, {"b": 2, "c": 2}, {"a": 1, "b": 2, "c": 2}),
    (merge, {"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"y": 2}}),
    (merge, None, {"a": 1}, {"a": 1}),
    (last, 1, 2, 2),
    (last, 1, None, None),
    (increment, 2, 3, 5),
    (increment, 2, -3, -1),
    (increment, None, 3, 3),
    (increment, 0.5, 1, 1.5),
    (add_messages, [], [], []),
    (add_messages, None, [HI], [HI]),
    (add_messages, [HI], HO, [HI, HO]),
    (add_messages, [HI], [HO, message("third")], [HI, HO, message("third")]),
    (add_messages, [HI, HO], NEW, [NEW, HO]),
    (add_messages, [HI], [NEW, message("newer", "1")], [message("newer", "1")]),
    (add_messages, [], [HI, NEW], [NEW]),
    (add_messages, [message("a")], message("a"), [message("a"), message("a")]),
    (add_messages, [HI], "hello", [HI, message("hello")]),
    (add_messages, "hello", ["you", "there"], [message("hello"), message("you"), message("there")]),
    (add_messages, [HI, HO], removal("1"), [HO]),
    (add_messages, [HI, HO], [removal("1"), removal("2")], []),
    (add_messages, [HI, HO], [removal("1"), NEW], [NEW, HO]),
    (add_messages, [HI], [HO, removal("2")], [HI]),
    (add_messages, [HI, message("a")], [removal("__remove_all__")], []),
    (add_messages, [HI], [removal("__remove_all__"), HO], [HO]),
    (add_messages, [HI], [HO, removal("__remove_all__"), NEW], [NEW]),
    (add_messages, [], [removal("__remove_all__")], []),
]


@pytest.mark.parametrize("reducer, old, new, expected", TABLE)
def test_reducers(reducer: Any, old: Any, new: Any, expected: Any) -> None:
    before = copy.deepcopy((old, new))
    assert reducer(old, new) == expected
    assert (old, new) == before  # neither is modified


def test_messages_that_are_objects() -> None:
    first, second = SimpleNamespace(content="hi", id="1"), SimpleNamespace(content="ho", id="1")
    assert add_messages([first], second) == [second]
    assert add_messages([first], SimpleNamespace(content="", type="remove", id="1")) == []
    without = SimpleNamespace(content="no id")
    assert add_messages([first], [without]) == [first, without]


@pytest.mark.parametrize(
    "reducer, old, new, message",
    [
        (add_messages, [HI], removal("2"), "there is no message '2' to remove"),
        (add_messages, [HI], [removal("1"), removal("1"), removal("3")], "there is no message '3' to remove"),
        (add_messages, [HI], 3, "a message must be a dict with role and content, or a string, not 3"),
        (add_messages, [HI], [HO, None], "a message must be a dict .* not None"),
        (add_messages, 3, [HO], "a message must be a dict .* not 3"),
        (merge, {"a": 1}, 3, "merge takes dicts, not 3"),
        (merge, {"a": 1}, [("a", 2)], r"merge takes dicts, not \[\('a', 2\)\]"),
    ],
)
def test_refused_updates(reducer: Any, old: Any, new: Any, message: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message):
        reducer(old, new)
