"""The placement of vertices on partitions, and their order."""

from __future__ import annotations

import random
from itertools import chain
from typing import Any

import pytest

from gpu_pregel.host.agents.codec import id_key, place_of_key, places_of_keys
from gpu_pregel.host.agents.placement import Placement
from gpu_pregel.host.agents.records import NO_CHANGE, Change, Id, VertexData


class Places:
    """The part of a transport that places vertices."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions

    def place(self, vertices: Any) -> list[int]:
        return places_of_keys(vertices, self.partitions)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_vertex_is_in_its_own_partition(count: int) -> None:
    placement = Placement(Places(count))  # type: ignore[arg-type]
    r = random.Random(3)
    ids: list[Id] = [id_key(x) for x in (*range(-30, 300), "a", "bb", b"c", (1, "d"))]
    r.shuffle(ids)
    vertices = {vertex: VertexData(vertex, ()) for vertex in ids}
    for active in ({ids[0]}, set(ids[:40]), set(ids[:200]), vertices.keys(), set(ids[5:])):
        for _ in range(2):  # the order and the parts of all vertices are kept
            order = placement.sort(active, vertices)
            assert order == sorted(active)
            parts = placement.split(order)
            assert sorted(chain(*parts)) == order
            for partition, part in enumerate(parts):
                assert part == [vertex for vertex in order if place_of_key(vertex, count) == partition]
    del vertices[ids[0]]
    vertices[id_key("new")] = VertexData(b"", ())
    placement.clear()
    order = placement.sort(vertices.keys(), vertices)
    assert order == sorted(vertices)
    assert sorted(chain(*placement.split(order))) == order
    parts_of_state = placement.split_state(vertices)
    assert [part is vertices for part in parts_of_state] == [False] * count
    assert {vertex: one for part in parts_of_state for vertex, one in part.items()} == vertices
    change = Change({vertex: vertices[vertex] for vertex in ids[1:9]}, ids[9:20], ids[20:30])
    changes = placement.split_change(change)
    for partition, its in enumerate(changes):
        assert {placement.of(vertex) for vertex in (*its.set, *its.halt, *its.remove)} <= {partition}
    assert {vertex for its in changes for vertex in its.set} == change.set.keys()
    assert sorted(chain(*[its.halt for its in changes])) == sorted(change.halt)
    assert sorted(chain(*[its.remove for its in changes])) == sorted(change.remove)
    assert placement.split_change(NO_CHANGE) == [NO_CHANGE] * count
