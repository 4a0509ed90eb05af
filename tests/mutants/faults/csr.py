"""Faults of building a CSR in device memory."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_TESTS = "tests/host/graphs/test_device_csr.py::"
_KNOWN = f"{_TESTS}test_a_known_answer"
_PLAIN = f"{_TESTS}test_it_equals_that_of_the_host[emulated0]"
_DROP = f"{_TESTS}test_it_equals_that_of_the_host[emulated1]"
_DIRECTED = f"{_TESTS}test_it_equals_that_of_the_host[emulated2]"
_FLOATS = f"{_TESTS}test_it_equals_that_of_the_host[emulated4]"
_MOVED = f"{_TESTS}test_bytes_moved_per_key"
_SUMS = f"{_TESTS}test_sums_of_many_tiles"

_KERNELS = faults_in(
    "kernels/graphs/csr_cuda.py",
    (
        "unstored edges have the key 0",
        "return _NONE >> np.uint64(np.uint64(64) - np.uint64(2) * np.uint64(id_bits))",
        "return np.uint64(0)",
        _KNOWN,
    ),
    (
        "the largest source is not a destination",
        "largest = max(max(largest, u), v)",
        "largest = max(largest, u)",
        f"{_TESTS}test_ids[src0-dst0-options0-True]",
    ),
    (
        "self-loops are stored twice",
        "                key = (v << bits) | u\n                if u == v:",
        "                key = (v << bits) | u\n                if False:",
        _PLAIN,
    ),
    ("dropped self-loops are kept", "if u == v and not keep_loops:", "if False:", _KNOWN),
    (
        "dropped edges of lane 0 only are counted",
        "dropped = np.uint32(sum_of_warp(dropped))",
        "dropped = np.uint32(dropped)",
        _PLAIN,
    ),
    (
        "digits are counted before all counters are 0",
        "    found[thread] = 0\n    cuda.syncthreads()\n",
        "    found[thread] = 0\n",
        _MOVED,
    ),
    (
        "digits are written before all are counted",
        "    cuda.syncthreads()\n    counts[np.uint64(thread)",
        "    counts[np.uint64(thread)",
        _MOVED,
    ),
    (
        "a tile counts a key beyond the last",
        "        if e < np.uint64(len(keys)):\n            fetch_and_add(found",
        "        if e <= np.uint64(len(keys)):\n            fetch_and_add(found",
        _KNOWN,
    ),
    (
        "sums of warps are read before they are written",
        "        sums[warp] = upto\n    cuda.syncthreads()\n",
        "        sums[warp] = upto\n",
        _SUMS,
    ),
    (
        "the sum below a thread includes its own",
        "return np.uint64(before + upto - value), total",
        "return np.uint64(before + upto), total",
        _SUMS,
    ),
    (
        "the sum below a thread leaves out the warp before",
        "if np.uint32(other) < warp:",
        "if np.uint32(other + 1) < warp:",
        _SUMS,
    ),
    (
        "the next sums of a scan overwrite those in use",
        "            sums[i] = np.uint64(before + below)\n        before = np.uint64(before + total)\n        cuda.syncthreads()\n",
        "            sums[i] = np.uint64(before + below)\n        before = np.uint64(before + total)\n",
        _SUMS,
    ),
    (
        "a scan forgets what came before the last block",
        "            sums[i] = np.uint64(before + below)\n        before = np.uint64(before + total)\n",
        "            sums[i] = np.uint64(before + below)\n        before = total\n",
        f"{_SUMS}",
    ),
    (
        "the next sums of a tile overwrite those in use",
        "                positions[i] = np.uint64(before + below)\n            before = np.uint64(before + total)\n            cuda.syncthreads()\n",
        "                positions[i] = np.uint64(before + below)\n            before = np.uint64(before + total)\n",
        _PLAIN,
    ),
    (
        "a tile's sum is left out of the positions after it",
        "                positions[i] = np.uint64(before + below)\n            before = np.uint64(before + total)\n",
        "                positions[i] = np.uint64(before + below)\n",
        _PLAIN,
    ),
    (
        "lanes with seven equal bits of a digit are peers",
        "    for k in range(DIGIT_BITS):\n",
        "    for k in range(DIGIT_BITS - 1):\n",
        _PLAIN,
    ),
    (
        "equal digits are moved in the order of lanes only",
        "peers & np.uint32((np.uint32(1) << lane) - np.uint32(1))",
        "np.uint32((np.uint32(1) << lane) - np.uint32(1))",
        _PLAIN,
    ),
    (
        "counters are written before all lanes have read them",
        "        place = np.uint32(counts[own + digit] + before)\n        cuda.syncwarp()\n",
        "        place = np.uint32(counts[own + digit] + before)\n",
        _MOVED,
    ),
    (
        "counters are read before they are written",
        "        cuda.syncwarp()\n    cuda.syncthreads()\n",
        "    cuda.syncthreads()\n",
        _MOVED,
    ),
    (
        "a tile is moved before all have sorted it",
        "        cuda.syncwarp()\n    cuda.syncthreads()\n",
        "        cuda.syncwarp()\n",
        _MOVED,
    ),
    (
        "the counts of warps are summed before all are counted",
        "_digit(keys[tile + np.uint64(i)], shift), 1)\n    cuda.syncthreads()\n",
        "_digit(keys[tile + np.uint64(i)], shift), 1)\n",
        _MOVED,
    ),
    (
        "slots stay where their keys were",
        "            moved_slots[to] = sorted_slots[np.uint32(j)]\n",
        "            moved_slots[to] = sorted_slots[np.uint32(thread)]\n",
        _DIRECTED,
    ),
    (
        "keys are written one by one",
        "        to = np.uint64(begins[_digit(key, shift)] + np.uint64(j))\n",
        "        to = np.uint64(begins[_digit(key, shift)] + np.uint64(j ^ 1))\n",
        _MOVED,
    ),
    (
        "rows end one edge early",
        "fetch_and_add(degrees, u, np.uint32(np.uint32(e) + np.uint32(1)))",
        "fetch_and_add(degrees, u, np.uint32(e))",
        _KNOWN,
    ),
    (
        "only the first of all keys begins a row",
        "if e == np.uint64(0) or keys[e - np.uint64(1)] >> bits != u:",
        "if e == np.uint64(0):",
        _KNOWN,
    ),
    (
        "the last of equal keys is kept",
        "is_first[e] = e == np.uint64(0) or keys[e - np.uint64(1)] != keys[e]",
        "is_first[e] = e + np.uint64(1) == size or keys[e + np.uint64(1)] != keys[e]",
        _FLOATS,
    ),
    ("equal keys are all kept", "        if to != positions[e + np.uint64(1)]:\n", "        if True:\n", _DROP),
)
_WEIGHTS = faults_in(
    "kernels/graphs/edge_weights_cuda.py",
    ("negative floats are ordered as positive ones", "return number ^ every", "return number ^ sign", _FLOATS),
    (
        "signed weights are ordered as unsigned ones",
        "        return number ^ sign\n\n    return order",
        "        return number\n\n    return order",
        f"{_TESTS}test_it_equals_that_of_the_host[emulated3]",
    ),
    ("infinity counts as NaN", "np.uint64(own) & highest > limit", "np.uint64(own) & highest >= limit", _FLOATS),
    (
        "NaN is not noticed",
        "np.uint64(own) & highest > limit",
        "np.uint64(own) & highest > highest",
        f"{_TESTS}test_invalid_edges_are_reported_as_those_of_the_host",
    ),
    (
        "unsorted weights of parallel edges are not noticed",
        "if order(before, kind) > order(own, kind):",
        "if False:",
        _DIRECTED,
    ),
)
_SORT = faults_in(
    "host/graphs/device_sort.py",
    (
        "one more digit is sorted",
        "for shift in range(0, bits, kernels.DIGIT_BITS):",
        "for shift in range(0, bits + kernels.DIGIT_BITS, kernels.DIGIT_BITS):",
        "",
        "The digit is 0 in every key, and a pass is stable. It costs time and no memory.",
    ),
    (
        "the last digit is not sorted",
        "for shift in range(0, bits, kernels.DIGIT_BITS):",
        "for shift in range(0, bits - kernels.DIGIT_BITS, kernels.DIGIT_BITS):",
        _KNOWN,
    ),
    (
        "the spare slots are those in use",
        "slots is None else (slots, pair[0])",
        "slots is None else (slots, slots)",
        _DIRECTED,
    ),
)
_HOST = faults_in(
    "host/graphs/device_csr.py",
    (
        "edges that are not stored have the largest key of those that are",
        "(n - 1 if edges.weight is None else n).bit_length()",
        "(n - 1).bit_length()",
        _KNOWN,
    ),
)
FAULTS = (*_KERNELS, *_WEIGHTS, *_SORT, *_HOST)
