"""Portable atomics in the bodies of operators: the same results on every device, and no lost updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.kernels.library import atomics
from tests.devices import EMULATED, LONG

pytestmark = EMULATED
DTYPES = (np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64)


def every_operation(v: Any, a: Any, b: Any, old: Any) -> Any:
    old[5 * v] = atomics.min(a, 4 * v, b[v])
    old[5 * v + 1] = atomics.max(a, 4 * v + 1, b[v])
    old[5 * v + 2] = atomics.add(a, 4 * v + 2, b[v])
    old[5 * v + 3] = atomics.load(a, 4 * v + 3)
    atomics.store(a, 4 * v + 3, b[v])
    old[5 * v + 4] = atomics.compare_and_swap(b, v, a[4 * v], 3)
    return atomics.compare_and_swap(b, v, 1, 77)


def on_all_types(v: Any, a1: Any, b1: Any, c1: Any, a2: Any, b2: Any, c2: Any, a3: Any, b3: Any, c3: Any) -> Any:
    return every_operation(v, a1, b1, c1) + every_operation(v, a2, b2, c2) + every_operation(v, a3, b3, c3)


def write_bounds(v: Any, a: Any, b: Any, wrote: Any) -> Any:
    low, high = atomics.write_min(a, 4 * v, b[v]), atomics.write_max(a, 4 * v + 1, b[v])
    wrote[2 * v], wrote[2 * v + 1] = low, high
    return low + high


@pytest.mark.parametrize(
    "dtype", [pytest.param(t, marks=() if t in (np.int32, np.uint64, np.float32) else LONG) for t in DTYPES]
)
def test_write_min_and_write_max_return_whether_they_wrote(dtype: Any) -> None:
    some = [0.0, -0.0, 1.5, -1.5, np.inf, np.nan] if np.dtype(dtype).kind == "f" else [0, 1, 5, 77, np.iinfo(dtype).max]
    pairs = [(x, y) for x in some for y in some]
    expected = [[bool(y < x), bool(y > x)] for x, y in pairs]
    for device in ("python", "cpu", "emulated"):
        frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=len(pairs)), device=device)
        elements = frontier.upload(np.repeat(np.array([x for x, _ in pairs], dtype), 4))
        values = frontier.upload(np.array([y for _, y in pairs], dtype))
        wrote = frontier.full(0, np.int32, 2 * len(pairs))
        assert gp.process_vertices(write_bounds, frontier, (elements, values, wrote)) == sum(map(sum, expected))
        assert frontier.download(wrote).reshape(-1, 2).tolist() == expected
        bounds = frontier.download(elements).reshape(-1, 4)[:, :2].tolist()
        kept = [[y if low else x, y if high else x] for (x, y), (low, high) in zip(pairs, expected, strict=True)]
        np.testing.assert_array_equal(bounds, np.array(kept, dtype))


def relax(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    """The slot of Gemini's shortest paths: what ``write_min`` returns says whether the receiver becomes active."""
    return atomics.write_min(distances, v, atomics.load(distances, u) + weight)


@pytest.mark.parametrize("mode", ["push", "pull", "auto"])
def test_a_ported_slot_returns_what_write_min_returns(mode: Any) -> None:
    src, dst, _ = gp.uniform(7, 4, seed=2).to_edgelist()
    graph = gp.Graph.from_edgelist(src, dst, 1 + np.arange(len(src)) % 7 / 2, num_vertices=128)
    expected = gp.sssp(graph, 0).distances
    for device in ("python", "cpu", "emulated"):
        active = gp.Frontier(graph, [0], device=device)
        distances = active.upload(np.where(np.arange(128) == 0, 0.0, np.inf))
        while active:
            active = gp.process_edges(relax, active, [distances], returns="frontier", mode=mode)
        np.testing.assert_array_equal(active.download(distances), expected)


@pytest.mark.parametrize("dtypes", [DTYPES[:3], DTYPES[3:]], ids=["32 bits", "64 bits"])
def test_atomics_do_the_same_on_every_device(dtypes: Any) -> None:
    """Compared with Python, NaN, both zeros, and numbers of either sign included."""
    results = []
    for device in ("python", "cpu", "emulated"):
        given_arrays = []
        for dtype in dtypes:
            # The largest unsigned number would be negative as a signed one; twice as much does not fit.
            half = 1 << (8 * np.dtype(dtype).itemsize - 1)
            values: dict[str, list[Any]] = {
                "u": [0, 1, 5, 77, 100, half],
                "i": [0, 1, -1, 5, -5, 77, -(1 << 30)],
                "f": [0.0, -0.0, 1.5, -1.5, -2.5, np.inf, np.nan],
            }
            some = values[np.dtype(dtype).kind]
            pairs = [(x, y) for x in some for y in some if x != half or y != half]
            given_arrays.append((pairs, dtype))
        n = max(len(pairs) for pairs, _ in given_arrays)
        frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=n), device=device)
        passed = []
        for pairs, dtype in given_arrays:
            full = (pairs * n)[:n]
            passed.append(frontier.upload(np.repeat(np.array([x for x, _ in full], dtype), 4)))
            passed += [frontier.upload(np.array([y for _, y in full], dtype)), frontier.full(0, dtype, 5 * n)]
        swapped = gp.process_vertices(on_all_types, frontier, passed)
        results.append((swapped, [frontier.download(one).tobytes() for one in passed]))
    assert results[0][0] > 0
    assert results[1] == results[0]
    assert results[2] == results[0]


def test_lost_updates_do_not_occur() -> None:
    n = 2000
    graph = gp.Graph.from_edgelist([], [], num_vertices=n)
    for dtype in (np.float32, np.float64, np.uint64):
        frontier = gp.Frontier(graph, device="emulated:1")
        totals = frontier.upload(np.array([0, 1 << 22, 0, 0]).astype(dtype))

        def gather(v: Any, totals: Any) -> Any:
            atomics.add(totals, 0, 1)
            atomics.min(totals, 1, v + 3)
            atomics.max(totals, 2, v)
            # That threads overwrite each other's values is no race.
            atomics.store(totals, 3, atomics.load(totals, 3) + 1)
            return 0

        gp.process_vertices(gather, frontier, [totals])
        *found, stored = frontier.download(totals).tolist()
        assert found == [n, 3, n - 1]
        assert 0 < stored <= n
