"""Chains of values: every value is read back, and growing values take space in proportion to the last one."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.workflows.value_chains import Chain, ChainReader, read_chain

Rows = dict[tuple[int, int], bytes]


def store(values: list[bytes]) -> tuple[Rows, list[tuple[int, int]]]:
    """Return the rows of values stored one after the other, and the place of each."""
    rows: Rows = {}
    places = []
    chain: Chain | None = None
    for value in values:
        longer = None if chain is None else chain.extended(value)
        chain, row = (Chain(0 if chain is None else chain.number + 1, 0, value), value) if longer is None else longer
        rows[chain.number, chain.position] = row
        places.append((chain.number, chain.position))
    return rows, places


def reader(rows: Rows) -> ChainReader:
    return ChainReader(lambda chain, position: [rows[chain, number] for number in range(position + 1)])


def message(number: int) -> dict[str, Any]:
    return {"role": "user" if number % 2 else "assistant", "content": f"message {number}: " + "some words " * 20}


def check(values: list[bytes]) -> Rows:
    """Read all values in both directions."""
    rows, places = store(values)
    for order in (1, -1):
        again = reader(rows)
        assert [again.value(*place) for place in places[::order]] == values[::order]
    number, position = places[-1]
    last = read_chain(number, [rows[number, k] for k in range(position + 1)])
    assert (last.number, last.position, last.value) == (number, position, values[-1])
    assert last.cost == sum(len(rows[number, k]) + 256 for k in range(1, position + 1))
    return rows


def test_growing_list_takes_linear_space() -> None:
    sizes = {}
    for steps in (125, 250, 500):
        values = [encode([message(number) for number in range(step + 1)]) for step in range(steps)]
        rows = check(values)
        assert len(rows) == steps
        sizes[steps] = sum(map(len, rows.values()))
        assert sizes[steps] < 4 * len(values[-1])
        assert sum(map(len, values)) > steps // 8 * sizes[steps]
    assert sizes[500] < 5 * sizes[125]


@pytest.mark.parametrize(
    "values, whole",
    [
        ([b"x" * 200] * 3, 3),  # rows would cost more than the value
        ([bytes([k]) * 5000 for k in range(5)], 5),  # nothing in common
        ([b"x" * 5000 + b"%05d" % k for k in range(60)], 4),  # a change in a large value
        ([b"x" * 5000, b"x" * 4000, b"x" * 40, b"x" * 6000], 3),
    ],
)
def test_values_are_whole_where_differences_do_not_pay(values: list[bytes], whole: int) -> None:
    rows = check(values)
    assert sum(position == 0 for _, position in rows) == whole


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.binary(max_size=300)), max_size=40))
def test_any_values_are_read_back(edits: list[tuple[int, int, bytes]]) -> None:
    def edited(value: bytes, edit: tuple[int, int, bytes]) -> bytes:
        start, length, new = edit
        return value[: start * 50] + new + value[start * 50 + length * 20 :] + b"!"

    check(list(accumulate(edits, edited, initial=b"begin" * 300)))


def test_damaged_rows_are_refused() -> None:
    values = [encode([message(number) for number in range(step)]) for step in (20, 21, 22)]
    rows, places = store(values)
    assert places[-1] == (0, 2)
    rows[0, 0] = rows[0, 0][:-1]
    with pytest.raises(CodecError, match="is the difference from a value of"):
        reader(rows).value(0, 1)
    rows[0, 0] = b""
    with pytest.raises(CodecError, match="a stored value is empty"):
        reader(rows).value(0, 0)
    assert len(decode(values[2])) == 22
