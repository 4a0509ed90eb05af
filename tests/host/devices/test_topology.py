"""NUMA nodes, read from a pretended folder of the system."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from gpu_pregel.host.devices.topology import numa_nodes, threads_by_node


def pretend(folder: Path, *lists: str) -> Path:
    for number, text in enumerate(lists):
        (folder / f"node{number}").mkdir()
        (folder / f"node{number}" / "cpulist").write_text(f"{text}\n")
    (folder / "possible").write_text("0-1\n")
    return folder


@pytest.mark.parametrize(
    ("lists", "usable", "sizes"),
    [
        (("0-3,8-11", "4-7,12-15"), range(16), (8, 8)),
        (("0-3", "4-7"), (1, 2, 5), (2, 1)),
        (("0-3", "4-7"), (4, 5), (2,)),
        (("0-1", "", "2-3"), range(4), (2, 2)),
        (("0-3",), range(4), (4,)),
        (("none",), range(4), (4,)),
        ((), range(3), (3,)),
        (tuple(f"{k}" for k in range(12)), range(12), (1,) * 12),
    ],
)
def test_processors_by_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lists: tuple[str, ...], usable: range, sizes: tuple[int, ...]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(usable))
    nodes = numa_nodes(pretend(tmp_path, *lists))
    assert tuple(map(len, nodes)) == sizes
    assert frozenset.union(*nodes) <= frozenset(usable)


def test_nodes_without_threads_are_left_out() -> None:
    nodes = tuple(frozenset([k]) for k in range(4))
    found = threads_by_node(2, nodes)
    assert [one.threads for one in found] == [1, 1]
    assert {one.processors for one in found} < set(nodes)


@pytest.mark.parametrize(
    ("threads", "sizes", "counts"),
    [
        (4, (8, 8), [2, 2]),
        (5, (8, 8), [3, 2]),
        (1, (8, 8), [1]),
        (3, (2, 1), [2, 1]),
        (40, (8, 8), [20, 20]),
        (7, (4,), [7]),
    ],
)
def test_threads_are_divided_in_proportion(threads: int, sizes: tuple[int, ...], counts: list[int]) -> None:
    processors = iter(range(sum(sizes)))
    nodes = tuple(frozenset(islice(processors, size)) for size in sizes)
    found = threads_by_node(threads, nodes)
    assert [one.threads for one in found] == counts
    assert [one.processors for one in found] == ([*nodes[: len(counts)]] if len(counts) > 1 else [None])
