"""Faults of what agents beside numeric vertices need of CUDA kernels and of the state of a run."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_RUNS = "tests/host/mixed/test_mixed_runs.py::"
_WOKEN = f"{_RUNS}test_woken_agents_write_and_send[push-1-emulated]"
_DIVIDED = f"{_RUNS}test_woken_agents_write_and_send[push-3-emulated]"
_FROM_THE_START = f"{_RUNS}test_some_vertices_are_agents_from_the_start[emulated]"

FAULTS = (
    *faults_in(
        "kernels/programs/program_cuda.py",
        ("the active vertices are woken", "woken[word] = woken_bits", "woken[word] = bits", _WOKEN),
        ("woken vertices are added to those before", "woken[word] = woken_bits", "woken[word] |= woken_bits", _WOKEN),
    ),
    *faults_in(
        "kernels/traverse/elements_cuda.py",
        ("elements are read in order", "found[i] = array[places[i]]", "found[i] = array[i]", _WOKEN),
        ("elements are written in order", "array[places[i]] = given[i]", "array[i] = given[i]", _WOKEN),
        (
            "the last element is not written",
            "            array[places[i]]",
            "            if i + np.uint32(1) < np.uint32(len(places)):\n                array[places[i]]",
            _FROM_THE_START,
        ),
    ),
    *faults_in(
        "host/programs/cuda_arrays.py",
        (
            "woken vertices are in any order",
            "np.sort(device.download(found[:count]))",
            "device.download(found[:count])[::-1]",
            _WOKEN,
        ),
    ),
    *faults_in(
        "host/programs/cuda_state.py",
    ),
    *faults_in(
        "host/programs/state.py",
        (
            "an activated vertex is alone in its word",
            "np.bitwise_or.at(frontier, rows[flags], bits[flags])",
            "frontier[rows[flags]] = bits[flags]",
            _FROM_THE_START,
        ),
    ),
)
