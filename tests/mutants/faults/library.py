"""Faults of atomics, bits and operations of warps."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_ROWS = "tests/conformance/test_shapes.py::test_rows_of_every_length[emulated:1-pull-1]"
_BLOCKS = "tests/conformance/test_shapes.py::test_numbers_of_vertices_around_block_boundaries[emulated-65-push]"
_ATOMICS = "tests/conformance/test_atomics.py::test_atomics_do_the_same_on_every_device"
_SCOPE = "tests/kernels/library/test_atomics_cuda.py::test_one_instruction_of_the_scope_of_the_gpu"
_BARRIER = (
    "tests/kernels/library/test_grid_barrier.py::test_all_blocks_see_what_the_others_wrote_before_the_barrier[emulated]"
)
_MESSAGES = "tests/host/programs/test_cuda_chains.py::test_messages_are_combined_to_the_same_bits"
_CHAINS = "tests/kernels/algorithms/test_components_memory.py::test_compress_flattens_long_chains[0]"

_ATOMICS_FAULTS = faults_in(
    "kernels/library/atomics_cuda.py",
    ("atomics have the scope of the system", "'syncscope(\"device\") monotonic'", "'monotonic'", f"{_SCOPE}[sm_100]"),
    ("an unsigned minimum is signed", '_read_modify_write("umin"', '_read_modify_write("min"', f"{_ATOMICS}[32 bits]"),
    ("an unsigned maximum is signed", '_read_modify_write("umax"', '_read_modify_write("max"', f"{_ATOMICS}[64 bits]"),
    ("relaxed stores have the scope of a block", "st.relaxed.gpu", "st.relaxed.cta", _CHAINS),
    ("relaxed loads have the scope of a block", "ld.relaxed.gpu", "ld.relaxed.cta", _BARRIER),
    (
        "indices of atomics wrap around",
        "[index], wraparound=False)",
        "[index], wraparound=True)",
        "",
        "No index is negative; the wrapped ones only add a comparison.",
    ),
    (
        "a swap stores what it expects",
        "builder.cmpxchg(pointer, old, new,",
        "builder.cmpxchg(pointer, old, old,",
        f"{_ATOMICS}[32 bits]",
    ),
)
_BITS = faults_in(
    "kernels/library/bits_cuda.py",
    (
        "the upper half of each word is read as the lower",
        "(position & np.uint32(31))) & np",
        "(position & np.uint32(15))) & np",
        "tests/conformance/test_shapes.py::test_aggregates_of_every_superstep[emulated-pull]",
    ),
    (
        "the upper half of each word is written as the lower",
        "np.uint32(1) << (position & np.uint32(31))",
        "np.uint32(1) << (position & np.uint32(15))",
        _BLOCKS,
    ),
    (
        "words of bitmaps have 16 bits",
        "bitmap[position >> np.uint32(5)]",
        "bitmap[position >> np.uint32(4)]",
        "tests/conformance/test_shapes.py::test_numbers_of_vertices_around_block_boundaries[emulated-65-pull]",
    ),
)
_WARPS = faults_in(
    "kernels/library/warps_cuda.py",
    (
        "a scan leaves out the lane at its distance",
        "        if lane >= distance:\n            count",
        "        if lane > distance:\n            count",
        _ROWS,
    ),
    ("a position belongs to the row before", "<= position:", "< position:", _ROWS),
    (
        "a search for an owner ends one step early",
        "    while step > np.uint32(0):",
        "    while step > np.uint32(1):",
        _ROWS,
    ),
    (
        "sums of a warp go to all lanes",
        "value += shuffle(value, lane + distance)",
        "value += shuffle(value, lane ^ distance)",
        "",
        "Lane 0 adds the same partial sums in the same order; the results of other lanes are not used.",
    ),
    (
        "a sum of a warp leaves out the last step",
        "    while distance > np.uint32(0):\n        value +=",
        "    while distance > np.uint32(1):\n        value +=",
        "tests/host/programs/test_cuda_state.py::test_a_superstep_takes_few_launches_and_one_readback",
    ),
    (
        "the upper half of a number of 64 bits is not shuffled",
        "_shuffle_word(builder, mode, builder.trunc(builder.lshr(value, _I64(32)), _I32), lane)",
        "builder.trunc(builder.lshr(value, _I64(32)), _I32)",
        f"{_MESSAGES}[65536-emulated]",
    ),
    (
        "both halves of a number of 64 bits are the lower",
        "builder.trunc(builder.lshr(value, _I64(32)), _I32), lane)",
        "builder.trunc(value, _I32), lane)",
        f"{_MESSAGES}[65536-emulated]",
    ),
    ("shuffles from below clamp as those by index", "_CLAMP = {_UP: 0x00,", "_CLAMP = {_UP: 0x1F,", _ROWS),
    ("lanes are numbered within half a warp", "np.uint32(WARP - 1)", "np.uint32(WARP // 2 - 1)", _ROWS),
)
_PORTABLE = faults_in(
    "kernels/library/portable_cuda.py",
    ("the float 0 is ordered as negative", "if bits >= 0:", "if bits > 0:", f"{_ATOMICS}[64 bits]"),
    (
        "atomic loads are plain",
        "return lambda array, index: atomics_cuda.load_relaxed(array, index)",
        "return lambda array, index: array[index]",
        "tests/kernels/test_ptx.py::test_the_kernels_of_operators",
    ),
    (
        "atomic stores are plain",
        "return lambda array, index, value: atomics_cuda.store_relaxed(array, index, value)",
        "def plain(array, index, value):\n        array[index] = value\n    return plain",
        "tests/kernels/test_ptx.py::test_the_kernels_of_operators",
    ),
    (
        "minima and maxima are signed",
        "operation = signed if number.signed else unsigned",
        "operation = signed",
        f"{_ATOMICS}[32 bits]",
    ),
)
FAULTS = (*_ATOMICS_FAULTS, *_BITS, *_WARPS, *_PORTABLE)
