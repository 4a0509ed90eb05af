"""Faults of connected components on CUDA."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_COUNTED = "tests/kernels/algorithms/test_components_cuda.py::"
_ONCE = f"{_COUNTED}test_each_edge_is_linked_once"
_MEMORY = "tests/kernels/algorithms/test_components_memory.py::"
_CHAINS = f"{_MEMORY}test_compress_flattens_long_chains[0]"
_FAR = "tests/conformance/test_far_edges.py::test_components"
_LEFT = f"{_COUNTED}test_rows_of_the_chosen_component_are_not_read_to_their_end"
_SAMPLED = f"{_COUNTED}test_the_sampled_vertex_is_in_the_component_with_the_most_edges"
_LABELS = f"{_FAR}[False-31 bits]"
_BYTES = f"{_COUNTED}test_bytes_per_vertex"

FAULTS = faults_in(
    "kernels/algorithms/components_cuda.py",
    ("a plain store in compress", "fetch_and_umin(labels, child, grandparent)", "labels[child] = grandparent", _CHAINS),
    (
        "compress replaces a root by a vertex below it",
        "fetch_and_umin(labels, child, grandparent)",
        "store_relaxed(labels, child, grandparent)",
        _CHAINS,
    ),
    ("compress writes roots plainly", "store_relaxed(labels, u, parent)", "labels[u] = parent", _CHAINS),
    ("compress goes up one step", "    while parent != grandparent:", "    if parent != grandparent:", _CHAINS),
    (
        "a block has room for 128 long rows",
        "rows = cuda.shared.array(BLOCK,",
        "rows = cuda.shared.array(128,",
        f"{_MEMORY}test_a_block_of_long_rows[129-0]",
    ),
    (
        "long rows are read before all are listed",
        "    cuda.syncthreads()\n    first",
        "    first",
        f"{_MEMORY}test_a_block_of_long_rows[129-0]",
    ),
    (
        "the root of the largest tree is read before it is written",
        "    cuda.syncthreads()\n    giant",
        "    giant",
        _LABELS,
    ),
    (
        "a swap is taken as successful",
        "            parent = compare_and_swap(labels, high, high, low)\n",
        "            compare_and_swap(labels, high, high, low)\n",
        f"{_MEMORY}test_threads_that_link_the_same_root",
    ),
    (
        "find goes up one step",
        "    if parent != v:\n        above",
        "    if False:\n        above",
        f"{_COUNTED}test_rows_of_the_chosen_component_are_left_however_far_its_root",
    ),
    (
        "find returns a parent that it has replaced",
        "            above = labels[parent]\n    return parent\n",
        "            above = labels[parent]\n    return labels[v]\n",
        f"{_COUNTED}test_rows_of_the_chosen_component_are_left_however_far_its_root",
    ),
    (
        "a failed swap counts as a link",
        "        if parent == high or parent == low:",
        "        if True:",
        f"{_BYTES}[grid-280]",
    ),
    (
        "the larger root becomes the parent",
        "        high = max(p, q)\n        low = min(p, q)\n",
        "        high = min(p, q)\n        low = max(p, q)\n",
        f"{_BYTES}[grid-280]",
    ),
    (
        "find writes parents plainly",
        "            store_relaxed(labels, v, above)\n",
        "            labels[v] = above\n",
        f"{_BYTES}[grid-280]",
    ),
    ("rows of the largest component are read", "if both_ways and root == _find(labels, giant):", "if False:", _LEFT),
    (
        "rows are read after joining the largest component",
        "if both_ways and k < length and _find(labels, root) == _find(labels, giant):",
        "if False:",
        _LEFT,
    ),
    (
        "edges that leave the largest component are lost in directed graphs",
        "if both_ways and root == _find(labels, giant):",
        "if root == _find(labels, giant):",
        f"{_FAR}[True-31 bits]",
    ),
    ("the first edge is never linked", "        elif indices[begin] < u:", "        else:", f"{_ONCE}[0-False-1]"),
    (
        "rows of as many edges as a warp links are left out",
        "length <= np.uint64(WARP_EDGES)))",
        "length < np.uint64(WARP_EDGES)))",
        f"{_ONCE}[0-False-352]",
    ),
    (
        "rows of as many edges as a warp links are linked twice",
        "    if length > np.uint64(WARP_EDGES):\n",
        "    if length >= np.uint64(WARP_EDGES):\n",
        f"{_ONCE}[0-False-352]",
    ),
    (
        "lanes link the same edges of a medium row",
        "        k = np.uint64(lane)\n",
        "        k = np.uint64(0)\n",
        f"{_ONCE}[0-False-17]",
    ),
    (
        "the warps of a block link the same edges of a long row",
        "            e += np.uint64(BLOCK)\n",
        "            e += np.uint64(WARP)\n",
        f"{_ONCE}[0-False-600]",
    ),
    (
        "one thread links edges that a warp links again",
        "quota = np.uint64(FEW_EDGES) if both_ways else np.uint64(0)",
        "quota = np.uint64(FEW_EDGES)",
        f"{_ONCE}[0-False-600]",
    ),
    (
        "begins of rows of components have 32 bits",
        "np.uint64(indptr[u]), np.uint64",
        "np.uint64(np.uint32(indptr[u])), np.uint64",
        f"{_FAR}[True-32 bits]",
    ),
    (
        "begins of long rows have 32 bits",
        "np.uint64(indptr[row]) + first",
        "np.uint64(np.uint32(indptr[row])) + first",
        f"{_FAR}[True-32 bits]",
    ),
    (
        "positions in long rows are signed",
        "load_once(indices, e))\n            e +=",
        "load_once(indices, np.int32(e)))\n            e +=",
        f"{_FAR}[True-31 bits]",
    ),
    (
        "first neighbours become parents even if larger",
        "parent = min(u, indices[np.uint64(begin)])",
        "parent = indices[np.uint64(begin)]",
        _LABELS,
    ),
    (
        "the last lane takes its own begin as its row's end",
        "        end = indptr[min(np.uint32(u + np.uint32(1)), n)]\n",
        "        end = begin\n",
        _LABELS,
    ),
    ("indptr is read beyond its end", "begin = indptr[min(u, n)]", "begin = indptr[u]", _LABELS),
    (
        "samples do not walk to their roots",
        "            v = min(v, indices[begin])\n",
        "            v = min(v, v)\n",
        _SAMPLED,
    ),
    (
        "a ballot of medium rows is a signed number",
        "    medium = np.uint32(cuda.ballot_sync(ALL, length > np.uint64(0) and length <= np.uint64(WARP_EDGES)))\n    while medium != np.uint32(0):\n        owner = np.uint32(cuda.ffs(medium) - 1)\n        medium &= np.uint32(medium - np.uint32(1))\n",
        "    medium = np.int64(cuda.ballot_sync(ALL, length > np.uint64(0) and length <= np.uint64(WARP_EDGES)))\n    while medium != 0:\n        owner = np.uint32(cuda.ffs(medium) - 1)\n        medium &= medium - 1\n",
        f"{_ONCE}[31-False-352]",
    ),
    ("the rarest vertex is sampled", "if same > most:", "if same < most or most == 0:", _SAMPLED),
)
