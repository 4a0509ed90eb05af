"""Faults in what follows a failure, and in what is kept on disk: errors, checkpoints and the cache."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_MASTER = "tests/host/superstep/test_master.py::"
_CUDA = "tests/host/devices/test_cuda.py::"
_FAILURES = "tests/host/programs/test_failures.py::"
_DEVICE_FAILURES = "tests/host/programs/test_device_failures.py::"
_DEVICE_CSR = "tests/host/graphs/test_device_csr.py::"
_TOGETHER = f"{_MASTER}test_with_a_journal_supersteps_up_to_the_next_commit_execute_together"

_STEPS = faults_in(
    "host/superstep/master.py",
    (
        "a run stops amid supersteps that were executed together",
        "may_stop=is_last)",
        "may_stop=True)",
        _TOGETHER,
    ),
    (
        "supersteps are executed beyond the next checkpoint",
        "limit = min(limit, journal.until_commit(self.superstep))",
        "pass",
        _TOGETHER,
    ),
)
_STATE = faults_in(
    "host/programs/cuda_state.py",
    (
        "figures of a chain are not checked",
        "        self._check_progress(figures, superstep, limit, written, least=0)\n",
        "",
        f"{_FAILURES}test_a_chain_that_does_not_advance_is_an_error",
    ),
)
_REPORT = faults_in(
    "host/programs/failures.py",
    (
        "a lost GPU is an error of the program",
        "        except (DeviceError, NotEnoughMemoryError):\n            raise\n",
        "",
        f"{_FAILURES}test_a_gpu_that_is_lost_before_the_call_is_repeated",
    ),
)
_SAVED = faults_in(
    "host/programs/checkpoints.py",
    (
        "the newest checkpoint is the one that the run was resumed from",
        "            return self._journal.head\n",
        "            return -1\n",
        f"{_DEVICE_FAILURES}test_while_the_result_is_completed",
    ),
)
_ERRORS = faults_in(
    "host/devices/cuda.py",
    (
        "a GPU without memory asks for other packages",
        "            if is_out_of_memory(error) or is_lost(error):\n",
        "            if is_lost(error):\n",
        f"{_CUDA}test_a_setup_that_the_gpu_prevents_needs_no_other_packages",
    ),
    (
        "arrays of a lost GPU print errors",
        "    with suppress(Exception):\n        cupy_calls.synchronize(stream)\n",
        "    cupy_calls.synchronize(stream)\n",
        f"{_CUDA}test_arrays_of_a_lost_gpu_are_released_silently",
    ),
    (
        "a chip that the linker does not know is found at the first launch",
        "    check_linker(gpu.compute_capability)\n",
        "",
        "tests/host/devices/test_standin.py::test_a_chip_that_is_newer_than_the_packages_is_refused_before_any_work",
    ),
)
_BUILD = faults_in(
    "host/graphs/device_csr.py",
    (
        "a failed allocation ends the building of a graph",
        "        except NotEnoughMemoryError:\n            pass ",
        "        except NotEnoughMemoryError:\n            raise ",
        f"{_DEVICE_CSR}test_the_host_builds_the_graph_if_an_allocation_fails",
    ),
    (
        "ids of another byte order are read in the machine's",
        'ids.dtype.kind in "iu" and ids.dtype.isnative for',
        'ids.dtype.kind in "iu" for',
        f"{_DEVICE_CSR}test_arrays_in_another_byte_order",
    ),
)
_KEPT = faults_in(
    "host/graphs/device_graph.py",
    (
        "arrays of another byte order are kept for kernels",
        "        if not is_alike or not array.dtype.isnative:\n",
        "        if not is_alike:\n",
        f"{_DEVICE_CSR}test_arrays_in_another_byte_order",
    ),
)
_CACHE = faults_in(
    "kernels/library/cache.py",
    (
        "the content of another entry is used",
        "hashlib.sha256(content + name.encode()).digest()",
        "hashlib.sha256(content).digest()",
        "tests/host/devices/test_compiled_kernels.py::test_the_content_of_another_entry_is_not_used",
    ),
)
FAULTS = (*_STEPS, *_STATE, *_REPORT, *_SAVED, *_ERRORS, *_BUILD, *_KEPT, *_CACHE)
