"""Faults of arrays in device memory, and of samples of rows."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_ARRAYS = "tests/conformance/test_device_arrays.py::"
_FLOATS = f"{_ARRAYS}test_long_arrays[emulated-f4]"
_SIGNED = f"{_ARRAYS}test_long_arrays[emulated-i2]"
_LONGS = f"{_ARRAYS}test_integers_of_64_bits[emulated]"
_BYTES = f"{_ARRAYS}test_long_arrays[emulated-i1]"
_KEYS = f"{_ARRAYS}test_numbers_keys_and_permutations[emulated]"
_SEGMENTS = f"{_ARRAYS}test_segments_of_many_lengths[emulated]"
_AGREED = f"{_ARRAYS}test_lanes_of_one_segment_agree_on_its_largest_element"
_INVALID = f"{_ARRAYS}test_invalid_arguments_are_named[emulated]"
_HOST = f"{_ARRAYS}test_segments_of_many_lengths[cpu]"
_SAMPLES = "tests/conformance/test_sample_rows.py::"
_DIFFERENT = f"{_SAMPLES}test_rows_without_weights[False-emulated]"
_DIFFERENT_ON_CPU = f"{_SAMPLES}test_rows_without_weights[False-cpu]"
_WEIGHTED = f"{_SAMPLES}test_rows_with_weights[True-emulated]"
_WEIGHTED_ON_CPU = f"{_SAMPLES}test_rows_with_weights[False-cpu]"
_WHOLE = f"{_SAMPLES}test_all_edges_and_every_vertex[emulated]"
_MAGNITUDES = f"{_SAMPLES}test_weights_of_all_magnitudes[1e+300]"

_KERNELS = faults_in(
    "kernels/traverse/arrays_cuda.py",
    ("all keys have the same high counter", "i & _WORD, i >> _HALF, np.uint64(0)", "i & _WORD, i, np.uint64(0)", _KEYS),
    ("keys have the low words of the seed only", "seed >> _HALF, i & _WORD", "seed & _WORD, i & _WORD", _KEYS),
    ("NaN is ordered by its bits", "                return every\n", "                return number ^ sign\n", _FLOATS),
    ("-0 is less than 0", "            if number == sign:\n", "            if False:\n", _FLOATS),
    (
        "infinity counts as NaN in an order",
        "np.uint64(every ^ sign) > infinity",
        "np.uint64(every ^ sign) >= infinity",
        _FLOATS,
    ),
    ("signed integers are ordered as unsigned ones", 'if kind == "f" or kind == "i":', 'if kind == "f":', _SIGNED),
    (
        "places beyond the last element are read",
        "if place < np.uint64(len(array)):",
        "if place <= np.uint64(len(array)):",
        _INVALID,
    ),
    ("the last group ends at its begin", "begins[g], np.int64(len(places))", "begins[g], begins[g]", _SIGNED),
    (
        "groups are numbered from 1",
        "positions[i + np.uint64(1)]) - np.int64(1)",
        "positions[i + np.uint64(1)])",
        _SIGNED,
    ),
    (
        "elements have the group of the one before",
        "np.int64(positions[i + np.uint64(1)]) -",
        "np.int64(positions[i]) -",
        _SIGNED,
    ),
    (
        "only the first lane of a warp looks for differences",
        "        own |= shuffle(own, lane_number() + distance)\n",
        "        own |= shuffle(own, lane_number())\n",
        _LONGS,
    ),
    (
        "places are numbered by their elements",
        "numbers[places[i]] = np.int64(i)",
        "numbers[i] = np.int64(places[i])",
        _SIGNED,
    ),
    (
        "numbers up to the size are counted",
        "if number < np.uint64(len(counts)):",
        "if number <= np.uint64(len(counts)):",
        _BYTES,
    ),
    ("offsets may descend", "            is_wrong = True\n", "            pass\n", _INVALID),
    (
        "an element that begins a segment is in the one before",
        "if offsets[middle] > i:",
        "if offsets[middle] >= i:",
        _SEGMENTS,
    ),
    (
        "elements after the last segment are in it",
        "            if segment == np.int64(len(offsets) - 1):\n",
        "            if False:\n",
        _SEGMENTS,
    ),
    ("lanes of two segments share their maximum", "shuffle(segment, 0) == segment and", "True and", _SEGMENTS),
    (
        "the largest element of a warp is that of its first lanes",
        "key = max(key, shuffle(key, lane_number() + distance))",
        "key = max(key, shuffle(key, lane_number()))",
        _SEGMENTS,
    ),
    (
        "all lanes of a segment send its maximum",
        "            has_own = lane_number() == np.uint32(0)\n",
        "            pass\n",
        _AGREED,
    ),
    (
        "all lanes with the largest element send its place",
        "            is_largest = is_largest and lane_number() == np.uint32(cuda.ffs(among) - 1)\n",
        "            pass\n",
        _AGREED,
    ),
    (
        "the last of the largest elements is taken",
        "np.uint32(cuda.ffs(among) - 1)",
        "np.uint32(31 - cuda.clz(among))",
        _SEGMENTS,
    ),
)
_SCANS = faults_in(
    "kernels/graphs/csr_cuda.py",
    ("elements that are not 0 are summed", "        if counts:\n", "        if False:\n", _SIGNED),
)
_DISPATCH = faults_in(
    "host/traverse/arrays.py",
    (
        "half of the bits are sorted",
        "    bits = 8 * array.dtype.itemsize\n",
        "    bits = 4 * array.dtype.itemsize\n",
        _SIGNED,
    ),
    (
        "the highest digit is not sorted",
        ".bit_length())\n    return sort_keys",
        ".bit_length() - 8)\n    return sort_keys",
        _LONGS,
    ),
    ("segments without elements have the next position", "np.full(offsets.size - 1, -1)", "offsets[:-1].copy()", _HOST),
    ("NaN is no largest element", "(inner == maxima) | np.isnan(inner)", "inner == maxima", _HOST),
)
_ROWS = faults_in(
    "host/traverse/samples.py",
    (
        "draws of a row are compared with those of the rows before",
        "for other in range(first, first + d):\n            if draws[other] == drawn:",
        "for other in range(first + d):\n            if draws[other] == drawn:",
        _DIFFERENT,
    ),
    (
        "an edge that an earlier draw fell back on is drawn again",
        "        d = earlier\n",
        "        return False\n",
        _DIFFERENT,
    ),
    (
        "an edge that no earlier draw fell back on is taken",
        "            return False\n        d = earlier\n",
        "            return True\n        d = earlier\n",
        _DIFFERENT,
    ),
    (
        "rows that are taken as a whole are drawn from",
        "    elif count == end - begin:\n        edges[s]",
        "    elif False:\n        edges[s]",
        _DIFFERENT,
    ),
    (
        "random numbers of positions are those of vertices",
        "    stream = i if by_position else v\n    if replace:",
        "    stream = v\n    if replace:",
        _DIFFERENT,
    ),
    (
        "an edge is drawn twice on the CPU",
        "                if edges[other] == chosen:\n",
        "                if False:\n",
        _DIFFERENT_ON_CPU,
    ),
    ("a weighted row has the sums of the rows before", " - before[np.int64(indptr[row_of(indptr, e)])]", "", _WEIGHTED),
    (
        "an edge has the weights of those up to it only",
        "        if sums[middle] > value:",
        "        if sums[middle] >= value:",
        f"{_SAMPLES}test_the_first_sum_above_a_value",
    ),
    (
        "skipped edges keep their weights",
        "                value += sums[ordered[place]] - _sum_before(sums, begin, ordered[place])\n",
        "",
        _WEIGHTED_ON_CPU,
    ),
    (
        "edges drawn before are not kept in order",
        "            for other in range(first + d, place, -1):\n                ordered[other] = ordered[other - 1]\n",
        "            place = first + d\n",
        _WEIGHTED_ON_CPU,
    ),
    (
        "the weight of a drawn edge can be drawn again",
        "            left -= sums[chosen] - _sum_before(sums, begin, chosen)\n",
        "",
        _WEIGHTED_ON_CPU,
    ),
    (
        "large weights are scaled up",
        "return _TO_SMALL if largest > 1.0 else _TO_LARGE",
        "return _TO_LARGE",
        _MAGNITUDES,
    ),
    (
        "a row of many edges has a sum beyond 64 bits",
        "        limit *= 0.5\n",
        "        limit *= 1.0\n",
        f"{_SAMPLES}test_sums_of_long_rows[cpu]",
    ),
)
_SETS = faults_in(
    "host/traverse/operators_cuda.py",
    (
        "vertices are listed in the order in which they were found",
        "        if not (active.queued and active.ordered):\n",
        "        if not active.queued:\n",
        _WHOLE,
    ),
)
FAULTS = (*_KERNELS, *_SCANS, *_DISPATCH, *_ROWS, *_SETS)
