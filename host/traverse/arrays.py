"""Arrays in the memory of a device: made, sorted, counted and compacted there, with the same results on every device.

Functions that make an array take the frontier on whose device it shall be, all others an array with one dimension: of
NumPy for the devices "cpu" and "python", else one in the memory of the device, as from ``frontier.full``. Elements are
bools, integers, or floats of 32 or 64 bits. Positions and numbers are int64. NaN is the largest float and equals
itself, as in NumPy.

Examples
--------
>>> import gpu_pregel as gp, numpy as np
>>> frontier = gp.Frontier(gp.grid(3), device="cpu")
>>> labels = frontier.upload(np.array([7, 3, 7, 7]))
>>> found = gp.arrays.unique(labels)
>>> found.values.tolist(), found.counts.tolist(), gp.arrays.argsort(labels).tolist()
([3, 7], [1, 3], [1, 0, 2, 3])
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.user_arrays import find_device
from gpu_pregel.host.graphs.device_sort import scan, sort_keys
from gpu_pregel.host.traverse.frontier import Frontier, require_elements
from gpu_pregel.kernels.library.philox import ARRAYS, philox4

Array = Any
"""A NumPy array, or one in the memory of a device."""

_MOST = (1 << 32) - 1
"""Elements of an array that is sorted in device memory."""
_LONG = 64
_BLOCK = 1 << 14
"""Random keys that the host computes at a time, in its caches."""
_HALF, _WORD = np.uint64(32), np.uint64(0xFFFFFFFF)


class Unique(NamedTuple):
    """The different elements of an array, and where they are.

    Attributes
    ----------
    values : array[k]
        In ascending order.
    firsts : int64[k]
        The first position of each.
    numbers : int64[n]
        For each element, its position in ``values``.
    counts : int64[k]
        How many elements have each value.
    """

    values: Array
    firsts: Array
    numbers: Array
    counts: Array


def arange(frontier: Frontier, size: int | None = None, *, dtype: Any = np.int64) -> Array:
    """Return the integers from 0 to ``size`` - 1 in the memory of a frontier's device.

    Parameters
    ----------
    frontier : Frontier
    size : int, optional
        Default: the number of vertices.
    dtype : dtype of integers, default int64

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid, or ``dtype`` cannot hold the largest number.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.arrays.arange(gp.Frontier(gp.grid(3), device="cpu"), 4, dtype="uint32").tolist()
    [0, 1, 2, 3]
    """
    device, size = _place(frontier, size)
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "iu" or not kind.isnative or dtype is None:
        raise ArgumentTypeError(f"dtype must be one of integers, such as 'int64', not {dtype!r:.80}")
    if size - 1 > np.iinfo(kind).max:
        raise ArgumentError(f"size is {size:,}, but the largest {kind} is {np.iinfo(kind).max:,}")
    require_elements(device, size, kind)
    if device.is_host:
        return np.arange(size, dtype=kind)
    from gpu_pregel.kernels.traverse import arrays_cuda

    numbers = device.empty(size, kind)
    device.launch(arrays_cuda.make_range(kind), size, numbers)
    return numbers


def random_keys(frontier: Frontier, seed: int, size: int | None = None) -> Array:
    """Return random integers of 64 bits, uint64[size], in the memory of a frontier's device.

    Parameters
    ----------
    frontier : Frontier
    seed : int
        From 0 to 2^64 - 1.
    size : int, optional
        Default: the number of vertices.

    Returns
    -------
    array
        Each key depends on the seed and its position only, by Philox4x32-10, and is the same on every device.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> [f"{key:x}" for key in gp.arrays.random_keys(gp.Frontier(gp.grid(3), device="cpu"), 1, 2).tolist()]
    ['f50c9398b36cdab2', '6e0e67d358fe4735']
    """
    device, size = _place(frontier, size)
    seed = check_integer("seed", seed, 0, (1 << 64) - 1)
    require_elements(device, size, np.uint64)
    keys = device.empty(size, np.uint64)
    if not device.is_host:
        from gpu_pregel.kernels.traverse import arrays_cuda

        device.launch(arrays_cuda.fill_keys, size, seed, keys)
        return keys
    for first in range(0, size, _BLOCK):
        places = np.arange(first, min(first + _BLOCK, size), dtype=np.uint64)
        a, b, _, _ = philox4(seed & int(_WORD), seed >> 32, places & _WORD, places >> _HALF, 0, ARRAYS)
        keys[first : first + _BLOCK] = (a << _HALF) | b
    return keys


def permutation(frontier: Frontier, seed: int, size: int | None = None) -> Array:
    """Return the numbers from 0 to ``size`` - 1 in a random order, int64[size], in the memory of a frontier's device.

    Parameters
    ----------
    frontier : Frontier
    seed : int
        From 0 to 2^64 - 1.
    size : int, optional
        Default: the number of vertices.

    Returns
    -------
    array
        The order of :func:`random_keys`, which is the same on every device.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.arrays.permutation(gp.Frontier(gp.grid(3), device="cpu"), 1, 5).tolist()
    [1, 2, 4, 3, 0]
    """
    return argsort(random_keys(frontier, seed, size))


def copy(array: Array) -> Array:
    """Return a copy of an array in the memory of its device.

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> array = np.array([1, 2])
    >>> gp.arrays.copy(array).tolist(), gp.arrays.copy(array) is array
    ([1, 2], False)
    """
    device = check_array("array", array)
    return array.copy() if device is None else device.copy(array, array.dtype)


def sort(array: Array) -> Array:
    """Return a sorted copy of an array.

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.sort(np.array([2.0, np.nan, -1.0])).tolist()
    [-1.0, 2.0, nan]
    """
    device = check_array("array", array)
    # Stable: so 0 and -0, which are equal, are in the same order as on other devices.
    return np.sort(array, kind="stable") if device is None else _take(device, array, _ordered(device, array)[1])


def argsort(array: Array) -> Array:
    """Return the positions of the elements in ascending order, int64[n]; those of equal elements ascend.

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.argsort(np.array([5, 2, 5, 1])).tolist()
    [3, 1, 0, 2]
    """
    device = check_array("array", array)
    if device is None:
        return np.argsort(array, kind="stable")
    from gpu_pregel.kernels.traverse import arrays_cuda

    _, places = _ordered(device, array)
    order = device.empty(places.size, np.int64)
    device.launch(arrays_cuda.widen, places.size, places, order)
    return order


def ranks(array: Array) -> Array:
    """Return the position that each element has in ascending order, int64[n]; those of equal elements ascend.

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.ranks(np.array([5, 2, 5, 1])).tolist()
    [2, 1, 3, 0]
    """
    device = check_array("array", array)
    if device is None:
        found = np.empty(array.size, np.int64)
        found[np.argsort(array, kind="stable")] = np.arange(array.size)
        return found
    from gpu_pregel.kernels.traverse import arrays_cuda

    _, places = _ordered(device, array)
    numbers = device.empty(places.size, np.int64)
    device.launch(arrays_cuda.number_places, places.size, places, numbers)
    return numbers


def take(array: Array, positions: Array) -> Array:
    """Return the elements at positions, which may repeat.

    Parameters
    ----------
    array : array
    positions : array of integers
        On the same device.

    Raises
    ------
    ArgumentError
        A position is negative or beyond the last element, or the arrays are on different devices.
    ArgumentTypeError
        An argument is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.take(np.array([0.5, 1.5, 2.5]), np.array([2, 0, 2])).tolist()
    [2.5, 0.5, 2.5]
    """
    device = check_array("array", array)
    check_array("positions", positions, "iu", (device, "array"))
    if device is None:
        wrong = int(np.count_nonzero((positions < 0) | (positions >= array.size)))
        found = None if wrong else array[positions]
    else:
        bad = device.zeros(1, np.uint64)
        found = _take(device, array, positions, bad)
        wrong = int(device.download(bad)[0])
    if wrong:
        raise ArgumentError(
            f"positions has {wrong:,} elements that are not from 0 to {array.size - 1:,}, the last position in array"
        )
    return found


def unique(array: Array) -> Unique:
    """Return the different elements of an array in ascending order, and where they are.

    Returns
    -------
    Unique
        With ``values``, ``firsts``, ``numbers`` and ``counts``.

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> found = gp.arrays.unique(np.array([5, 2, 5, 1]))
    >>> found.values.tolist(), found.firsts.tolist(), found.numbers.tolist(), found.counts.tolist()
    ([1, 2, 5], [3, 1, 0], [2, 1, 2, 0], [1, 1, 2])
    """
    device = check_array("array", array)
    if device is None:
        return Unique(*np.unique(array, return_index=True, return_inverse=True, return_counts=True))
    from gpu_pregel.kernels.graphs.csr_cuda import mark_first
    from gpu_pregel.kernels.traverse import arrays_cuda

    size, empty = array.size, device.empty
    keys, places = _ordered(device, array)
    marks = empty(size + 1, np.uint32)
    device.launch(mark_first, size + 1, keys, size, marks)
    positions = scan(device, marks)
    begins = _steps(device, positions)
    firsts, counts, numbers = (empty(length, np.int64) for length in (begins.size, begins.size, size))
    device.launch(arrays_cuda.describe_groups, begins.size, begins, places, firsts, counts)
    device.launch(arrays_cuda.number_groups, size, positions, places, numbers)
    return Unique(_take(device, array, firsts), firsts, numbers, counts)


def prefix_sums(array: Array) -> Array:
    """Return the sum of the elements before each position, and of all: int64[n + 1], modulo 2^64.

    Parameters
    ----------
    array : array of bools or integers
        Sums of uint64 are uint64.

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension, or has floats, whose sums would depend on their order.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.prefix_sums(np.array([3, 0, 4])).tolist()
    [0, 3, 3, 7]
    """
    device = check_array("array", array, "biu")
    dtype: Any = np.uint64 if array.dtype == np.uint64 else np.int64
    if device is None:
        sums = np.zeros(array.size + 1, dtype)
        np.cumsum(array, dtype=dtype, out=sums[1:])
        return sums
    return _scan(device, array).view(dtype)


def histogram(array: Array, size: int) -> Array:
    """Return how many elements are 0, 1, and so on up to ``size`` - 1, int64[size]; others are not counted.

    Parameters
    ----------
    array : array of bools or integers
    size : int

    Raises
    ------
    ArgumentError
        ``size`` is negative.
    ArgumentTypeError
        ``array`` is not an array of integers with one dimension, or ``size`` is not a whole number.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.histogram(np.array([2, 0, 2, -1, 9]), 4).tolist()
    [1, 0, 2, 0]
    """
    device = check_array("array", array, "biu")
    size = check_integer("size", size, 0)
    require = require_memory if device is None else device.require
    require(8 * size, f"an array of {size:,} elements")
    if device is None:
        numbers = array.astype(np.int64) if array.dtype != np.uint64 else np.minimum(array, size).astype(np.int64)
        return np.bincount(numbers[(numbers >= 0) & (numbers < size)], minlength=size)
    from gpu_pregel.kernels.traverse import arrays_cuda

    counts, numbers = device.zeros(size, np.int64), _numeric(array)
    device.launch(arrays_cuda.make_count(numbers.dtype), numbers.size, numbers, counts)
    return counts


def flatnonzero(array: Array) -> Array:
    """Return the positions of the elements that are not 0, in ascending order, int64[k].

    Raises
    ------
    ArgumentTypeError
        ``array`` is not an array with one dimension and a dtype of numbers.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.flatnonzero(np.array([0.0, 0.5, 0.0, -1.0])).tolist()
    [1, 3]
    """
    device = check_array("array", array)
    return np.flatnonzero(array) if device is None else _steps(device, _scan(device, array, counts=True))


def segmented_argmax(values: Array, offsets: Array) -> Array:
    """Return the first position of the largest element of each segment of an array, int64[k]; -1 if it has none.

    Parameters
    ----------
    values : array
    offsets : int64[k + 1]
        Segment i has the elements from ``offsets[i]`` to ``offsets[i + 1]`` - 1, as rows of a CSR have. On the same
        device.

    Raises
    ------
    ArgumentError
        ``offsets`` is empty, does not ascend or has positions outside ``values``, or the arrays are on different
        devices.
    ArgumentTypeError
        An argument is not an array with one dimension and a dtype of numbers, or ``offsets`` is not int64.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> gp.arrays.segmented_argmax(np.array([3.0, 8.0, 8.0, 1.0]), np.array([0, 3, 3, 4])).tolist()
    [1, -1, 3]
    """
    device = check_array("values", values)
    check_array("offsets", offsets, "iu", (device, "values"))
    if offsets.dtype != np.int64:
        raise ArgumentTypeError(f"offsets must be int64, not {offsets.dtype}")
    if not offsets.size:
        raise ArgumentError("offsets is empty: it has one element more than there are segments")
    size = values.size
    if device is None:
        wrong = int(np.count_nonzero((offsets < 0) | (offsets > size))) + int(np.count_nonzero(np.diff(offsets) < 0))
    else:
        from gpu_pregel.kernels.traverse import arrays_cuda

        bad = device.zeros(1, np.uint64)
        device.launch(arrays_cuda.count_descents, offsets.size, offsets, size, bad)
        wrong = int(device.download(bad)[0])
    if wrong:
        raise ArgumentError(
            f"offsets must ascend from at least 0 to at most {size:,}, the number of elements in values"
        )
    if device is None:
        return _segment_maxima(values, offsets)
    find_maxima, find_places = arrays_cuda.make_segment_maxima(values.dtype)
    bits, segments = _bits(values), offsets.size - 1
    maxima, places = device.zeros(segments, np.uint64), device.full(segments, _NOWHERE, np.uint64)
    device.launch(find_maxima, size, bits, offsets, maxima)
    device.launch(find_places, size, bits, offsets, maxima, places)
    return places.view(np.int64)


_NOWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)
"""-1 as an int64."""


def _segment_maxima(values: Any, offsets: Any) -> Any:
    """Return the first position of the largest element of each segment, by NumPy."""
    found = np.full(offsets.size - 1, -1)
    full = np.flatnonzero(np.diff(offsets))
    if full.size:
        begin, end = offsets[0], offsets[-1]
        inner, starts = values[begin:end], offsets[full] - begin
        maxima = np.repeat(np.maximum.reduceat(inner, starts), np.diff(offsets)[full])
        is_largest = inner == maxima if values.dtype.kind != "f" else (inner == maxima) | np.isnan(inner)
        places = np.where(is_largest, np.arange(begin, end), end)
        found[full] = np.minimum.reduceat(places, starts)
    return found


def _place(frontier: object, size: Any) -> tuple[Device, int]:
    """Return the device and the size of a new array."""
    if not isinstance(frontier, Frontier):
        raise ArgumentTypeError(f"frontier must be a gp.Frontier, not {type(frontier).__name__}")
    return frontier.device, frontier.graph.num_vertices if size is None else check_integer("size", size, 0)


def check_array(name: str, array: Any, kinds: str = "biuf", other: tuple[Device | None, str] | None = None) -> Any:
    """Return the device whose memory holds an array, None for the host, or raise an error that names the argument."""
    if isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray):
        device = None
    else:
        device = find_device(array)
        if device is None:
            raise ArgumentTypeError(
                f"{name} must be an array of NumPy or in the memory of a device, not {type(array).__name__}"
            )
    dtype = array.dtype
    if not isinstance(dtype, np.dtype) or dtype.kind not in kinds or not dtype.isnative or dtype.itemsize not in _SIZES:
        words = {"iu": "integers", "biu": "bools or integers"}.get(kinds, "bools, integers or floats of 32 or 64 bits")
        raise ArgumentTypeError(f"{name} has dtype {dtype}, but must have {words}")
    if dtype == np.float16:
        raise ArgumentTypeError(f"{name} has dtype {dtype}, but must have floats of 32 or 64 bits: use astype")
    if array.ndim != 1:
        raise ArgumentTypeError(f"{name} has {array.ndim} dimensions, but must have one")
    if other is not None and other[0] is not device:
        raise ArgumentError(f"{name} is {_where(device)}, but {other[1]} is {_where(other[0])}")
    return device


_SIZES = (1, 2, 4, 8)


def _where(device: Device | None) -> str:
    return "in host memory" if device is None else f"on device {device.name!r}"


def _bits(array: Any) -> Any:
    """Return an array as unsigned integers of its bits."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _numeric(array: Any) -> Any:
    """Return an array, bools as integers."""
    return array.view(np.uint8) if array.dtype == np.bool_ else array


def _take(device: Device, array: Any, places: Any, wrong: Any = None) -> Any:
    """Return the elements at places, and count those that are outside the array in ``wrong``."""
    from gpu_pregel.kernels.traverse import arrays_cuda

    found, bits = device.empty(places.size, array.dtype), _bits(array)
    wrong = device.zeros(1, np.uint64) if wrong is None else wrong
    kernel = arrays_cuda.make_take(array.dtype.itemsize, places.dtype)
    device.launch(kernel, places.size, bits, places, _bits(found), wrong)
    return found


def _ordered(device: Device, array: Any) -> tuple[Any, Any]:
    """Return keys that are ordered as the elements, ascending, and the places of the elements as uint32."""
    from gpu_pregel.kernels.traverse import arrays_cuda

    if array.size > _MOST:
        raise ArgumentError(f"array has {array.size:,} elements, but at most {_MOST:,} are sorted in device memory")
    keys = device.empty(array.size, np.uint64)
    device.launch(arrays_cuda.make_order_keys(array.dtype), array.size, _bits(array), keys)
    bits = 8 * array.dtype.itemsize
    if bits == _LONG:
        # Most integers of 64 bits are small: equal digits need no pass.
        differences = device.zeros(1, np.uint64)
        device.launch(arrays_cuda.find_differences, keys.size, keys, differences)
        bits = max(1, int(device.download(differences)[0]).bit_length())
    return sort_keys(device, keys, bits, takes_slots=True)


def _scan(device: Device, array: Any, *, counts: bool = False) -> Any:
    """Return the prefix sums of an array, or of whether its elements differ from 0, as uint64[n + 1]."""
    from numba import from_dtype

    from gpu_pregel.kernels.graphs.csr_cuda import make_scan

    numbers = _numeric(array)
    kernels = make_scan(from_dtype(numbers.dtype), counts=counts)
    return scan(device, numbers, size=array.size + 1, kernels=kernels)


def _steps(device: Device, positions: Any) -> Any:
    """Return the places after which ``positions`` increase, by one each time."""
    from gpu_pregel.kernels.traverse import arrays_cuda

    steps = device.empty(int(device.download(positions[positions.size - 1 :])[0]), np.int64)
    device.launch(arrays_cuda.list_steps, positions.size, positions, steps)
    return steps
