"""Arrays on every device, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, NotEnoughMemoryError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from tests.counts import count
from tests.devices import EMULATED, GPUS, examples, on

DEVICES = pytest.mark.parametrize("device", [on(name) for name in ("cpu", "emulated", "emulated:1", *GPUS, "python")])
DTYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8")
LONG_ARRAY = 2 * 2048 + 100
"""More elements than two blocks of a kernel over tiles take."""


def frontier_on(device: str) -> gp.Frontier:
    return gp.Frontier(gp.grid(3), device=device)


def numbers(dtype: str, size: int = LONG_ARRAY) -> Any:
    """Return an array with repeated elements, among them the extremes of its dtype."""
    kind = np.dtype(dtype)
    random = np.random.default_rng(5)
    if kind.kind == "b":
        return random.integers(0, 2, size).astype(bool)
    if kind.kind == "f":
        pool = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, -np.nan, np.finfo(kind).max, 5e-324], kind)
    else:
        info = np.iinfo(kind)
        pool = np.array([info.min, info.max, 0, 1, 7, info.max - 1, info.min + 1], kind)
    return pool[random.integers(0, len(pool), size)]


def assert_same(found: Any, expected: Any) -> None:
    """Compare arrays with their dtypes; NaN equals itself."""
    assert found.dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(found, expected)


def arrays_of(dtype: str, most: int = 80) -> Any:
    kind: Any = np.dtype(dtype)
    few = st.sampled_from(numbers(dtype, 30).tolist())
    return hnp.arrays(kind, st.integers(0, most), elements=st.one_of(few, hnp.from_dtype(kind)))


def check_all(frontier: gp.Frontier, values: Any) -> None:
    """Compare every function of one array with NumPy's."""
    array, down = frontier.upload(values), frontier.download
    assert_same(down(gp.arrays.sort(array)), np.sort(values))
    order = gp.arrays.argsort(array)
    assert_same(down(order), np.argsort(values, kind="stable"))
    assert_same(down(gp.arrays.ranks(array)), np.argsort(np.argsort(values, kind="stable")))
    assert_same(down(gp.arrays.take(array, order)), values[np.argsort(values, kind="stable")])
    found = gp.arrays.unique(array)
    expected = np.unique(values, return_index=True, return_inverse=True, return_counts=True)
    for part, wanted in zip(found, expected, strict=True):
        assert_same(down(part), wanted)
    assert_same(down(gp.arrays.flatnonzero(array)), np.flatnonzero(values))
    if values.dtype.kind != "f":
        dtype: Any = np.uint64 if values.dtype == np.uint64 else np.int64
        assert_same(down(gp.arrays.prefix_sums(array)), np.append(dtype(0), np.cumsum(values, dtype=dtype)))
        exact = values.astype(object)
        counts = [int(np.count_nonzero(exact == number)) for number in range(9)]
        for size in (0, 7, 9):
            assert_same(down(gp.arrays.histogram(array, size)), np.array(counts[:size], np.int64))
    assert_same(down(array), values)


@pytest.mark.parametrize("dtype", DTYPES)
@DEVICES
def test_long_arrays(device: str, dtype: str) -> None:
    check_all(frontier_on(device), numbers(dtype))


@DEVICES
def test_empty_arrays_and_single_elements(device: str) -> None:
    frontier = frontier_on(device)
    for dtype in ("?", "i4", "u8", "f4"):
        check_all(frontier, np.zeros(0, dtype))
        check_all(frontier, numbers(dtype, 1))


@DEVICES
def test_random_arrays(device: str) -> None:
    frontier = frontier_on(device)

    @examples(device, values=st.sampled_from(DTYPES).flatmap(arrays_of))
    def check(values: Any) -> None:
        check_all(frontier, values)

    check()


@DEVICES
def test_integers_of_64_bits(device: str) -> None:
    """Integers of 64 bits are sorted by the bits in which they differ."""
    frontier = frontier_on(device)
    for values in ([5, 5, 5], [1 << 40, 1, 0], [-1, 0, -2], [256, 0, 255], [3] * 40 + [1 << 62] + [3] * 40):
        array = frontier.upload(np.array(values))
        assert frontier.download(gp.arrays.argsort(array)).tolist() == np.argsort(values, kind="stable").tolist()


@DEVICES
def test_random_segments(device: str) -> None:
    frontier = frontier_on(device)

    @examples(
        device,
        values=st.sampled_from(DTYPES).flatmap(arrays_of),
        cuts=st.lists(st.integers(0, 80), min_size=1, max_size=9),
    )
    def check(values: Any, cuts: Any) -> None:
        check_segments(frontier, values, np.sort(np.minimum(cuts, len(values))))

    check()


@DEVICES
def test_segments_of_many_lengths(device: str) -> None:
    frontier = frontier_on(device)
    lengths = np.array([0, 1, 31, 0, 0, 64, 700, 2, 1500, 33, 0, 400])
    offsets = 5 + np.append(0, np.cumsum(lengths))
    for dtype in ("u1", "i8", "f4", "f8"):
        values = numbers(dtype)
        check_segments(frontier, values, offsets)
        # The largest element is the last one of its segment.
        check_segments(frontier, np.arange(LONG_ARRAY).astype(dtype), offsets)
    check_segments(frontier, np.zeros(LONG_ARRAY), np.array([0, LONG_ARRAY]))
    check_segments(frontier, np.zeros(0), np.array([0, 0, 0]))
    check_segments(frontier, np.zeros(4), np.array([2]))


@EMULATED
def test_lanes_of_one_segment_agree_on_its_largest_element() -> None:
    """Then one of them writes, so that a long segment has one atomic operation for each warp."""
    frontier, size = frontier_on("emulated"), 1 << 12
    device: Any = frontier.device
    values, offsets = frontier.upload(np.zeros(size)), frontier.upload(np.array([0, size]))
    found = count(device, lambda: gp.arrays.segmented_argmax(values, offsets))
    assert [found[name].atomics for name in ("find_maxima", "find_places")] == [size // 32] * 2


def check_segments(frontier: gp.Frontier, values: Any, offsets: Any) -> None:
    found = frontier.download(gp.arrays.segmented_argmax(frontier.upload(values), frontier.upload(offsets)))
    bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    assert_same(found, np.array([a + int(np.argmax(values[a:b])) if a < b else -1 for a, b in bounds], np.int64))


@DEVICES
def test_numbers_keys_and_permutations(device: str) -> None:
    frontier, down = frontier_on(device), frontier_on(device).download
    assert_same(down(gp.arrays.arange(frontier)), np.arange(9))
    for dtype in ("i1", "u4", "u8"):
        assert_same(down(gp.arrays.arange(frontier, 100, dtype=dtype)), np.arange(100, dtype=dtype))
    assert_same(down(gp.arrays.arange(frontier, 0)), np.arange(0))
    cpu = gp.Frontier(gp.grid(3), device="cpu")
    for seed in (0, 3, (1 << 64) - 1):
        keys = down(gp.arrays.random_keys(frontier, seed, LONG_ARRAY))
        assert_same(keys, gp.arrays.random_keys(cpu, seed, LONG_ARRAY))
        assert len(np.unique(keys)) == LONG_ARRAY
        assert_same(down(gp.arrays.random_keys(frontier, seed)), keys[:9])
        order = down(gp.arrays.permutation(frontier, seed, LONG_ARRAY))
        assert_same(order, np.argsort(keys))
    assert down(gp.arrays.random_keys(frontier, 0, 1)) != down(gp.arrays.random_keys(frontier, 1, 1))
    assert down(gp.arrays.permutation(frontier, 7, 0)).size == 0


def test_keys_are_those_of_philox() -> None:
    """The known answers of Philox4x32-10 for a key of its first counters, and more keys than are computed at a time."""
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    keys = gp.arrays.random_keys(frontier, (5 << 32) | 3, 40_000)
    assert keys[-1] == gp.arrays.random_keys(frontier, (5 << 32) | 3, 40_000 + 1)[-2]
    counters = np.array([[1, 0, 0, 0xFFFFFFFF]], np.uint64)
    assert keys[1] == _philox_by_hand(counters[0].tolist(), [3, 5])
    bits = np.unpackbits(keys.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.all(np.abs(bits - 0.5) < 4.5 * 0.5 / 200)


def _philox_by_hand(counters: list[int], key: list[int]) -> int:
    """Return the first two words of Philox4x32-10 of its definition, in Python's integers."""
    a, b, c, d = counters
    k, j = key
    for _ in range(10):
        one, other = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (other >> 32) ^ b ^ k, other & 0xFFFFFFFF, (one >> 32) ^ d ^ j, one & 0xFFFFFFFF
        k, j = (k + 0x9E3779B9) & 0xFFFFFFFF, (j + 0xBB67AE85) & 0xFFFFFFFF
    return a << 32 | b


@DEVICES
def test_copies_are_independent(device: str) -> None:
    frontier = frontier_on(device)
    array = frontier.upload(np.arange(9))
    copied = gp.arrays.copy(array)

    def clear(v: Any, copied: Any) -> None:
        copied[v] = 0

    gp.process_vertices(clear, frontier, [copied], returns=None)
    assert frontier.download(array).tolist() == list(range(9))
    assert frontier.download(copied).tolist() == [0] * 9
    assert gp.arrays.copy(frontier.upload(np.zeros(0, np.float32))).size == 0


@DEVICES
def test_positions_of_any_integer_dtype(device: str) -> None:
    frontier = frontier_on(device)
    values = frontier.upload(np.array([1.5, 2.5, 3.5]))
    for dtype in ("i1", "u4", "i8", "u8"):
        found = gp.arrays.take(values, frontier.upload(np.array([2, 0, 2, 1], dtype)))
        assert frontier.download(found).tolist() == [3.5, 1.5, 3.5, 2.5]


BAD_POSITIONS = ([3], [0, -1], [1 << 40])


@DEVICES
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_equal_floats_keep_their_order(device: str, dtype: str) -> None:
    """0 and -0 are equal, and so are all NaN."""
    frontier, values = frontier_on(device), numbers(dtype)
    found = frontier.download(gp.arrays.sort(frontier.upload(values)))
    assert found.tobytes() == values[np.argsort(values, kind="stable")].tobytes()


@DEVICES
def test_arrays_that_do_not_fit_memory_are_refused(device: str) -> None:
    frontier = frontier_on(device)
    values = frontier.upload(np.arange(3))
    makers: list[Callable[[int], Any]] = [
        lambda size: frontier.full(0, "int64", size),
        lambda size: gp.arrays.arange(frontier, size),
        lambda size: gp.arrays.random_keys(frontier, 1, size),
        lambda size: gp.arrays.histogram(values, size),
    ]
    for size in (1 << 50, 1 << 62):
        for make in makers:
            with pytest.raises(NotEnoughMemoryError, match=f"an array of {size:,} elements.* needs"):
                make(size)


@DEVICES
def test_invalid_arguments_are_named(device: str) -> None:
    frontier = frontier_on(device)
    upload, values = frontier.upload, frontier.upload(np.array([1.5, 2.5, 3.5]))
    for positions in BAD_POSITIONS:
        with pytest.raises(ArgumentError, match="positions has 1 elements that are not from 0 to 2"):
            gp.arrays.take(values, upload(np.array(positions)))
    for offsets in ([2, 1], [-1, 2], [0, 4]):
        with pytest.raises(ArgumentError, match="offsets must ascend from at least 0 to at most 3"):
            gp.arrays.segmented_argmax(values, upload(np.array(offsets)))
    with pytest.raises(ArgumentError, match="offsets is empty"):
        gp.arrays.segmented_argmax(values, upload(np.array([], np.int64)))
    with pytest.raises(ArgumentTypeError, match="offsets must be int64, not uint32"):
        gp.arrays.segmented_argmax(values, upload(np.array([0, 1], np.uint32)))
    with pytest.raises(ArgumentTypeError, match="positions has dtype float64, but must have integers"):
        gp.arrays.take(values, values)
    with pytest.raises(ArgumentTypeError, match="array has dtype float64, but must have bools or integers"):
        gp.arrays.prefix_sums(values)
    with pytest.raises(ArgumentTypeError, match="array has dtype float64, but must have bools or integers"):
        gp.arrays.histogram(values, 3)
    with pytest.raises(ArgumentTypeError, match="array has dtype complex128, but must have bools, integers or floats"):
        gp.arrays.sort(upload(np.array([1j])))
    with pytest.raises(ArgumentError, match="size must be at least 0"):
        gp.arrays.histogram(upload(np.array([1])), -1)
    with pytest.raises(ArgumentError, match="size must be at least 0"):
        gp.arrays.arange(frontier, -1)
    with pytest.raises(ArgumentError, match="size is 300, but the largest int8 is 127"):
        gp.arrays.arange(frontier, 300, dtype="int8")
    with pytest.raises(ArgumentTypeError, match="dtype must be one of integers, such as 'int64', not 'float32'"):
        gp.arrays.arange(frontier, dtype="float32")
    with pytest.raises(ArgumentError, match="seed must be from 0 to"):
        gp.arrays.random_keys(frontier, 1 << 64)
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier, not Graph"):
        gp.arrays.permutation(frontier.graph, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sort", "argsort", "ranks", "copy", "unique", "flatnonzero", "prefix_sums"])
def test_other_values_than_arrays_are_refused(name: str) -> None:
    function = getattr(gp.arrays, name)
    for values in ([1, 2], np.ma.masked_array([1, 2]), 5):
        with pytest.raises(ArgumentTypeError, match="array must be an array of NumPy or in the memory of a device"):
            function(values)
    with pytest.raises(ArgumentTypeError, match="array has 2 dimensions, but must have one"):
        function(np.zeros((2, 2), int))
    for dtype in (">i4", "M8[s]", "O"):
        with pytest.raises(ArgumentTypeError, match="array has dtype"):
            function(np.zeros(2, dtype))


@EMULATED
def test_arrays_of_other_devices_are_refused() -> None:
    there, here = frontier_on("emulated"), np.array([0, 1])
    with pytest.raises(ArgumentError, match="positions is in host memory, but array is on device 'emulated'"):
        gp.arrays.take(there.upload(here), here)
    with pytest.raises(ArgumentError, match="offsets is on device 'emulated', but values is in host memory"):
        gp.arrays.segmented_argmax(here, there.upload(here))


@EMULATED
def test_nothing_of_n_elements_is_uploaded_or_read_back() -> None:
    frontier = frontier_on("emulated")
    device = get_device("emulated")
    assert isinstance(device, EmulatedDevice)
    keys = gp.arrays.random_keys(frontier, 1, LONG_ARRAY)
    numbers_there = gp.arrays.histogram(gp.arrays.arange(frontier, LONG_ARRAY), LONG_ARRAY)
    before = device.memory.uploads, device.memory.readback_bytes
    gp.arrays.permutation(frontier, 1, LONG_ARRAY)
    gp.arrays.unique(gp.arrays.sort(keys))
    gp.arrays.flatnonzero(gp.arrays.prefix_sums(numbers_there))
    gp.arrays.take(keys, gp.arrays.argsort(keys))
    assert device.memory.uploads == before[0]
    # The numbers of different keys and of numbers that are not 0, whether a position is wrong, and the bits to sort by.
    assert device.memory.readback_bytes - before[1] == (3 + 4) * 8
