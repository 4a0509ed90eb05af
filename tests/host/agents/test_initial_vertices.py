"""Vertices that a user passes: their encoding, what equal ids and values share, and when they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel.agents as agents
from gpu_pregel.agents import Edge, Vertex
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.vertices import decode_vertex, encode_vertex, encode_vertices


def stay(ctx: Any) -> None:
    ctx.vote_to_halt()


IDS = st.one_of(st.integers(-20, 20), st.sampled_from("abc"), st.binary(max_size=1), st.tuples(st.integers(0, 3)))
VALUES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.floats(0, 1), st.just("x"), st.builds(list))


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(IDS, st.tuples(VALUES, st.lists(st.tuples(IDS, VALUES), max_size=3), st.booleans()), max_size=6))
def test_each_vertex_is_encoded_as_if_it_were_alone(given_ones: dict[Any, Any]) -> None:
    vertices = [
        Vertex(key, value, [Edge(*edge) for edge in edges], halted)
        for key, (value, edges, halted) in given_ones.items()
    ]
    encoded = encode_vertices(vertices, {})
    assert list(encoded) == [encode(vertex.id) for vertex in vertices]
    for vertex, (key, data) in zip(vertices, encoded.items(), strict=True):
        assert (key, data) == encode_vertex(vertex)
        assert data.value == encode(vertex.value)
        assert decode_vertex(vertex.id, data) == vertex
        assert [type(edge.weight) for edge in decode_vertex(vertex.id, data).edges] == [
            type(edge.weight) for edge in vertex.edges
        ]


def test_equal_ids_and_values_become_one_object() -> None:
    known: dict[Any, bytes] = {}
    long, pair = "x" * 30, ("a", 1)
    ones = [
        Vertex(1000, {"k": [1]}, [pair, long]),
        Vertex(pair, {"k": [1]}, [1000]),
        Vertex(long, {"k": [2]}, [Edge(1000, 0.5), Edge(pair, 1)]),
    ]
    encoded = encode_vertices(ones, known)
    ids = list(encoded)
    first, second, third = encoded.values()
    assert [id(target) for one in (first, second, third) for target in one.targets] == [
        id(ids[k]) for k in (1, 2, 0, 0, 1)
    ]
    assert first.value is second.value
    assert third.value == encode({"k": [2]})
    assert len(known) == 3


def test_ids_and_values_of_different_types_are_not_confused() -> None:
    ids: list[Any] = [1, "1", b"1", (1,), ("1",)]
    result = agents.run([Vertex(x, y, [x]) for x, y in zip(ids, (1, True, 1.0, 1, 0.0), strict=True)], stay)
    assert [(type(key), key) for key in result.values] == [(type(x), x) for x in ids]
    assert list(map(type, result.values.values())) == [int, bool, float, int, float]
    assert [vertex.edges[0].target for vertex in result.vertices.values()] == ids


@pytest.mark.parametrize("missing", [2, "1", b"1", (1,), np.int64(2)])
def test_edges_to_missing_vertices_are_found_among_many(missing: Any) -> None:
    vertices = [Vertex(1, None, [np.int64(3)]), Vertex(np.int64(3), None, [1, missing])]
    with pytest.raises(ArgumentError, match=r"vertex 3 has an edge to .* which does not exist"):
        agents.run(vertices, stay)
    assert len(agents.run([vertices[0], Vertex(3, None, [1, np.int64(1)])], stay).vertices) == 2


def test_vertices_are_read_when_they_are_yielded() -> None:
    """A generator may modify what it has yielded, and yield the same objects again."""

    def ones() -> Iterator[Vertex]:
        value: dict[str, Any] = {}
        edges: list[int] = []
        for k in range(3):
            value["k"] = k
            yield Vertex(k, value, edges)
            edges.append(k)

    result = agents.run(ones(), stay)
    assert result.values == {k: {"k": k} for k in range(3)}
    assert [[edge.target for edge in one.edges] for one in result.vertices.values()] == [[], [0], [0, 1]]
