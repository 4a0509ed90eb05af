"""Differences between encoded values, and the trees that find them without encoding what did not change."""

from __future__ import annotations

import copy
import gc
import random
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode, piece_tree, pieces, register
from gpu_pregel.host.agents.codec.differences import (
    PiecedValue,
    changed_size,
    changed_value,
    find_edits,
    pack_difference,
)
from gpu_pregel.host.agents.codec.encoder import Output, write_items
from gpu_pregel.host.agents.codec.piece_tree import OtherStructureError, PieceTree


@register
@dataclass
class Turn:
    role: str
    text: str
    notes: list[Any] = field(default_factory=list)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small values have branches and several groups."""
    _shrink(monkeypatch)


def _shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"_BRANCH_SIZE": 24, "_WIDE": 2, "_MANY_PARTS": 4, "GROUP_SIZE": 60, "GROUP_ITEMS": 3}.items():
        for module in (pieces, piece_tree) if name in vars(pieces) else (piece_tree,):
            monkeypatch.setattr(module, name, size)


def tree_of(x: Any) -> PieceTree:
    """Return the tree of a value that the caller keeps using."""
    tree = PieceTree([x])
    assert tree.encoded() == encode(x)
    return tree


def follow(tree: PieceTree, before: bytes, x: Any) -> bytes:
    """Update a tree; return the new encoding, made from the old one and the difference."""
    tree.update([x])
    difference = pack_difference(len(before), tree.edits)
    after = changed_value(before, difference)
    assert bytes(after) == encode(x) == tree.encoded()
    assert changed_size(difference) == len(after)
    return bytes(after)


# Differences between bytes.


@given(st.binary(min_size=1, max_size=200), st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20), st.binary())))
def test_a_difference_restores_the_new_bytes(old: bytes, replaced: list[tuple[int, int, bytes]]) -> None:
    new = old
    for start, count, data in replaced:
        new = (new[:start] + data + new[start + count :]) or b"?"
    difference = pack_difference(len(old), find_edits(old, new))
    after = changed_value(old, difference)
    assert bytes(after) == new
    assert changed_size(difference) == len(new)


def test_the_difference_of_an_appended_item_is_small() -> None:
    items = [{"text": "x" * 400, "n": n} for n in range(1000)]
    old, new = encode({"items": items, "count": 1}), encode({"items": [*items, "last"], "count": 2})
    assert len(pack_difference(len(old), find_edits(old, new))) < 100


def test_many_differences_keep_few_pieces() -> None:
    value: bytes | PiecedValue = b"x" * 20_000
    expected = bytearray(b"x" * 20_000)
    for n in range(500):
        at = 7 * n % len(expected)
        value = changed_value(value, pack_difference(len(value), [(at, at + 1, b"ab")]))
        expected[at : at + 1] = b"ab"
        assert isinstance(value, PiecedValue)
        assert len(value._pieces) <= 64
    assert bytes(value) == expected


@pytest.mark.parametrize(
    ("size", "edits", "problem"),
    [
        (4, [], "of 4 bytes, not 5"),
        (5, [(3, 2, b"")], "not in order"),
        (5, [(0, 3, b""), (2, 4, b"")], "not in order"),
        (5, [(4, 6, b"")], "not in order"),
        (5, [(6, 6, b"")], "not in order"),
    ],
)
def test_a_difference_from_another_value_is_refused(size: int, edits: list[Any], problem: str) -> None:
    with pytest.raises(CodecError, match=problem):
        changed_value(b"12345", pack_difference(size, edits))


def test_a_difference_applies_to_each_value_of_its_size() -> None:
    difference = pack_difference(4, [(1, 2, b"xy")])
    assert [changed_value(old, difference) for old in (b"1234", b"abcd", b"1234")] == [b"1xy34", b"axycd", b"1xy34"]


def test_a_difference_is_no_value() -> None:
    difference = pack_difference(5, [(0, 1, b"x")])
    with pytest.raises(CodecError, match="format version"):
        decode(difference)
    with pytest.raises(CodecError, match="damaged"):
        changed_value(b"12345", difference[:-1])


# Trees.


LEAVES: list[Any] = [
    0, 1, True, None, 1.0, 0.0, -0.0, "a", "b", "a much longer text than a name", b"bytes", 1 << 70, Decimal("1.0"),
    Decimal("1"), (1, "two"), ("deep", [1]), {1},
]  # fmt: skip
TEXTS = ["role", "text", "n", "the long key of a dict"]


def make_value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(8) if depth else 0
    if kind < 3:
        return copy.deepcopy(chance.choice(LEAVES))
    items = [make_value(chance, depth - 1) for _ in range(chance.randrange(9))]
    if kind == 3:
        return {text: items[n % len(items)] if n else "" for n, text in enumerate(TEXTS) if items}
    if kind == 4:
        return tuple(items)
    if kind == 5:
        return Turn("user", "hello " * 5, items)
    if kind == 6:
        return {chance.choice([*TEXTS, n, (n,)]): one for n, one in enumerate(items)}
    return items


def containers(x: Any) -> Iterator[Any]:
    """Yield the containers in a value that can be modified."""
    if isinstance(x, (list, dict, Turn)):
        yield x
    inner: Any = x if isinstance(x, (list, tuple)) else x.values() if isinstance(x, dict) else ()
    for one in [x.notes] if isinstance(x, Turn) else inner:
        yield from containers(one)


def modify(x: Any, chance: random.Random) -> None:
    """Make a random change in place, anywhere in a value."""
    found = list(containers(x))
    chosen = chance.choice(found)
    new = make_value(chance, 2)
    if chance.randrange(6) == 0:  # a part that then occurs twice
        new = chance.choice([one for one in found if not any(inner is chosen for inner in containers(one))] or [new])
    changes: list[Callable[[], Any]]
    if isinstance(chosen, Turn):
        name, value = chance.choice([("role", "other"), ("notes", [new]), ("text", chosen.text + "!")])
        changes = [lambda: setattr(chosen, name, value)]
    elif isinstance(chosen, dict):
        key = chance.choice([*chosen, "new", 7, True])
        changes = [
            lambda: chosen.update({key: new}),
            lambda: chosen.pop(key, None),
            lambda: chosen.update({key: chosen.pop(key, new)}),
            lambda: chosen.update({"renamed": chosen.pop(key, new)}),
        ]
    else:
        n = chance.randrange(len(chosen) + 1)
        changes = [
            lambda: chosen.append(new),
            lambda: chosen.insert(n, new),
            lambda: chosen.__delitem__(slice(n, n + chance.randrange(4))),
            lambda: chosen.__delitem__(slice(n)),
            lambda: chosen.__setitem__(slice(n, n + 1), [new]),
            lambda: chosen.extend([make_value(chance, 1) for _ in range(5)]),
            chosen.reverse,
            lambda: chosen.__setitem__(slice(None), copy.deepcopy(chosen)),
        ]
    chance.choice(changes)()


@pytest.mark.parametrize("small", [True, False])
@settings(max_examples=100)
@given(seed=st.integers(0, 1 << 32))
def test_a_tree_follows_random_changes(small: bool, seed: int) -> None:
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as monkeypatch:
        if small:
            _shrink(monkeypatch)
        x: Any = {"messages": [make_value(chance, 2) for _ in range(12)], "state": make_value(chance, 3), "n": 1}
        tree, data = tree_of(x), encode(x)
        for _ in range(8):
            for _ in range(chance.randrange(3)):
                modify(x, chance)
            try:
                data = follow(tree, data, x)
            except OtherStructureError:
                tree, data = tree_of(x), encode(x)


def test_an_appended_item_is_the_only_one_that_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    x = {"turns": [{"role": "user", "text": f"{n:06} {'x' * 400}"} for n in range(1000)], "n": 1}
    tree, data = tree_of(x), encode(x)
    encoded: list[int] = []

    def count(items: Sequence[Any], out: Output, depth: int) -> None:
        encoded.append(len(items))
        write_items(items, out, depth)

    monkeypatch.setattr(piece_tree, "write_items", count)
    x["turns"].append({"role": "user", "text": "new"})  # type: ignore[attr-defined]
    x["n"] = 2
    tree.update([x])
    assert len(encoded) == 2
    assert sum(len(new) for _, _, new in tree.edits) < 100
    assert bytes(changed_value(data, pack_difference(len(data), tree.edits))) == encode(x)


def trim(x: list[Any]) -> None:
    del x[:3]
    x += ["new", "newer", "newest"]


@pytest.mark.parametrize(
    "change",
    [
        trim,
        lambda x: x.pop(0),
        lambda x: x.insert(0, "first"),
        lambda x: x.insert(500, {"text": "between"}),
        lambda x: x.__delitem__(slice(300, 310)),
        lambda x: x[700].update(text="other"),
        lambda x: x[700].update(text=f"{700:06} {'x' * 400}!"),
        lambda x: x.__setitem__(slice(None), [*x, "copied"]),
    ],
)
def test_a_change_of_a_long_list_is_small(change: Callable[[list[Any]], Any]) -> None:
    x = {"turns": [{"role": "user", "text": f"{n:06} {'x' * 400}"} for n in range(1000)]}
    tree, data = tree_of(x), encode(x)
    change(x["turns"])
    follow(tree, data, x)
    assert len(pack_difference(len(data), tree.edits)) < 200


def test_a_list_that_becomes_one_of_numbers_is_encoded_as_such() -> None:
    x = {"mixed": ["text", *range(5000)]}
    tree, data = tree_of(x), encode(x)
    x["mixed"].pop(0)
    data = follow(tree, data, x)
    x["mixed"][2500] = 0.5
    follow(tree, data, x)


# In-place changes that are easy to miss.


def nested(x: Any) -> Any:
    return x["turns"][5]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: nested(x).update(n=True),
        lambda x: nested(x).update(n=1.0),
        lambda x: nested(x).update(zero=-0.0),
        lambda x: nested(x).update(text=nested(x).pop("text")),
        lambda x: nested(x).update(other=nested(x).pop("n")),
        lambda x: nested(x).update(exact=Decimal("1")),
        lambda x: nested(x)["parts"][0].append(None),
        lambda x: nested(x)["parts"][1][0].append(None),
        lambda x: nested(x)["bytes"].append(1),
        lambda x: nested(x)["set"].add(2),
        lambda x: setattr(nested(x)["turn"], "role", "other"),
        lambda x: nested(x)["turn"].notes.append(1),
        lambda x: nested(x).update(parts=tuple(nested(x)["parts"])),
        lambda x: x["turns"].__setitem__(6, nested(x)),
        lambda x: (x["turns"].__setitem__(6, nested(x)), nested(x).clear()),
    ],
)
def test_changes_in_place_are_found(change: Callable[[Any], Any]) -> None:
    x = {"turns": [_rich_item(n) for n in range(50)]}
    tree, data = tree_of(x), encode(x)
    change(x)
    assert follow(tree, data, x) != data


def _rich_item(n: int) -> dict[str, Any]:
    return {
        "text": f"{n} " * 40, "n": 1, "zero": 0.0, "exact": Decimal("1.0"), "parts": [[n], ([n],)],
        "bytes": bytearray(b"12"), "set": {1}, "turn": Turn("user", "hello", [n]),
    }  # fmt: skip


# References from other code.


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize(
    "hold",
    [
        lambda x: x,
        lambda x: x["turns"],
        lambda x: x["turns"][5],
        lambda x: x["turns"][5]["parts"],
        lambda x: x["turns"][5]["parts"][1],
        lambda x: x["turns"][5]["parts"][1][0],
        lambda x: x["turns"][5]["bytes"],
        lambda x: x["turns"][5]["turn"],
        lambda x: x["turns"][5]["turn"].__dict__,
        lambda x: x["turns"][5]["turn"].notes,
        lambda x: weakref.ref(x["turns"][5]["turn"]),
        lambda x: weakref.ref(x["turns"][5]["set"]),
        lambda x: iter(x["turns"]),
        lambda x: x["turns"][5].items(),
        lambda x: memoryview(x["turns"][5]["bytes"]),
        lambda x: x["flat"],
        lambda x: x["flat"][3],
        lambda x: iter(x["flat"][3].values()),
        lambda x: x["objects"][2],
        lambda x: x["objects"][2].notes,
        lambda x: x["object"],
        lambda x: x["object"].__dict__,
        lambda x: x["object"].notes,
    ],
)
def test_references_to_parts_are_found(hold: Callable[[Any], Any]) -> None:
    def value() -> Any:
        return {
            "turns": [_rich_item(n) for n in range(50)],
            "flat": [{"text": f"{n} " * 40} for n in range(100)],
            "objects": [Turn("user", f"{n} " * 40) for n in range(100)],
            "object": Turn("user", "", ["text " * 10 for _ in range(200)]),
        }

    holder = [value()]
    tree = PieceTree(holder)
    assert tree.is_private
    tree.update(holder)
    seen: list[bool] = [tree.is_private]
    held = hold(holder[0])
    tree.update(holder)
    seen += [tree.is_private, PieceTree(holder).is_private]
    del held
    gc.collect()
    tree.update(holder)
    assert [*seen, tree.is_private] == [True, False, False, True]


def test_an_item_with_parts_joins_a_group_of_flat_ones() -> None:
    holder: list[Any] = [{"turns": [{"text": f"{n} " * 60} for n in range(200)]}]
    tree = PieceTree(holder)
    holder[0]["turns"].append({"parts": [1]})
    tree.update(holder)
    held = holder[0]["turns"][-1]["parts"]
    tree.update(holder)
    assert not tree.is_private
    assert held == [1]


def test_parts_that_occur_twice_and_unknown_types_are_not_private() -> None:
    part = [1]
    assert not PieceTree([{"a": part, "b": part}]).is_private
    for x in (np.zeros(3), frozenset({1})):
        assert not PieceTree([{"a": x}]).is_private
    constant = ("immutable", (1, "two"))
    assert PieceTree([{"a": constant, "b": constant, "c": Decimal(1), "d": "text"}]).is_private


def test_strings_of_the_past_are_not_kept_forever() -> None:
    x = [{"text": f"{n} {'x' * 1000}"} for n in range(20)]
    tree = tree_of(x)
    alive = []
    for round_ in range(5):
        x[:] = [{"text": f"{round_} {n} {'x' * 1000}"} for n in range(20)]
        tree.update([x])
        alive.append(tree.is_worn)
    assert alive == [False, True, True, True, True]
