"""Lists of bytes of one length, and ids, which are encoded and decoded in one step, have the bytes of single values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key, place_of_key, places_of_keys
from gpu_pregel.host.agents.codec.format import LIST, TUPLE, VERSION

_LENGTHS = (0, 1, 10, 253, 254, 255, 300)


def lists() -> st.SearchStrategy[list[Any]]:
    """Lists of bytes, most of one length; some have an item of another length or type."""
    same = st.sampled_from(_LENGTHS).flatmap(lambda n: st.lists(st.binary(min_size=n, max_size=n), max_size=20))
    odd: st.SearchStrategy[Any] = st.one_of(st.binary(max_size=12), st.just("odd"), st.just(None), st.builds(list))
    inserted = st.tuples(same, odd, st.integers(0, 20)).map(lambda t: [*t[0][: t[2]], t[1], *t[0][t[2] :]])
    return st.one_of(same, inserted)


@settings(max_examples=200, deadline=None)
@given(lists())
@example([b"\xa9\x02"] * 9)
@example([b""] * 8)
@example([b"a"] * 300)
@example([b"ab", b"a", *[b"\xa9" * 169] * 6])
@example([(b"\xa9\xff" + bytes(255))[10:] + (b"\xa9\xff" + bytes(255)) * 7, *[b""] * 7])
def test_a_list_has_the_bytes_of_its_items(items: list[Any]) -> None:
    length = bytes((len(items),)) if len(items) < 255 else b"\xff" + len(items).to_bytes(8, "big")
    content = length + b"".join(encode(item)[1:] for item in items)
    for kind, tag in ((list, LIST), (tuple, TUPLE)):
        data = encode(kind(items))
        assert data == bytes((VERSION, tag)) + content
        assert decode(data) == kind(items)
        assert encode(kind(items), limit=len(data)) == data
        with pytest.raises(CodecError):
            encode(kind(items), limit=len(data) - 1)


def test_a_list_that_is_cut_short_or_altered_is_refused_or_read_item_by_item() -> None:
    data = encode([b"ab"] * 8)
    for end in range(2, len(data)):
        with pytest.raises(CodecError, match="truncated"):
            decode(data[:end])
    assert decode(data[:3] + encode("ab")[1:] + data[7:]) == ["ab", *[b"ab"] * 7]
    assert decode(data[:3] + encode(b"abcd")[1:] + encode(b"")[1:] + data[11:]) == [b"abcd", b"", *[b"ab"] * 6]
    with pytest.raises(CodecError):
        decode(data[:3] + b"\xa9\x03" + data[5:])


@pytest.mark.parametrize(
    "x", [-17, -16, 0, 111, 112, 1 << 40, (1 << 63) - 1, 1 << 63, -(1 << 63), "a", "b" * 300, b"c"]
)
def test_the_key_of_an_id_is_its_encoding(x: Any) -> None:
    assert id_key(x) == encode(x)
    assert id_key((x, "y")) == encode((x, "y"))


def test_places_of_many_keys_are_those_of_each() -> None:
    keys = [id_key(x) for x in ("a", 1, b"c", ("a", 1))]
    assert places_of_keys(keys, 1000) == [place_of_key(key, 1000) for key in keys] == [730, 697, 523, 456]
