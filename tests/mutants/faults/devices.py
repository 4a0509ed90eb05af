"""Faults of a GPU as a device: streams, uploads, launches and memory, with a fake CuPy."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_CUDA = "tests/host/devices/test_cuda.py::"
_STREAMS = "tests/host/devices/test_streams.py::"
_SCENARIO = f"{_STREAMS}test_a_scenario"
_LAUNCHES = "tests/host/devices/test_launches.py::"
_DROPPED = f"{_STREAMS}test_only_dropped_results_make_the_device_wait"
_MEMORY = f"{_CUDA}test_too_little_memory_is_reported_before_and_during_allocation"

_DEVICE = faults_in(
    "host/devices/cuda.py",
    (
        "the device does not wait for the caller's stream",
        "                    self._cupy.wait_for_stream(self._handle, caller)\n",
        "                    pass\n",
        f"{_SCENARIO}[written_on_the_current_stream]",
    ),
    (
        "the caller's stream does not wait for the device",
        "                    self._cupy.wait_for_stream(caller, self._handle)\n",
        "                    pass\n",
        f"{_SCENARIO}[read_by_the_user]",
    ),
    (
        "work runs on the caller's stream",
        "                with self._stream:\n                    yield\n",
        "                yield\n",
        f"{_SCENARIO}[written_by_the_user] {_SCENARIO}[read_by_the_user] {_SCENARIO}[uploaded_in_parts]",
    ),
    (
        "memory of dropped results is reused at once",
        "            self._cupy.synchronize_device(self._device)\n",
        "",
        f"{_SCENARIO}[result_used_elsewhere]",
    ),
    (
        "results are handed out before they are complete",
        "            self._cupy.synchronize(self._stream)\n            return self._cupy.lend",
        "            return self._cupy.lend",
        f"{_SCENARIO}[result_before_it_is_complete]",
    ),
    (
        "results are handed out without a loan",
        "return self._cupy.lend(array, _Loan(array, self._dropped)) if array.size else array",
        "return array",
        f"{_SCENARIO}[result_used_elsewhere]",
    ),
    ("every allocation waits for the GPU", "        if self._dropped:\n", "        if True:\n", _DROPPED),
    (
        "results that are dropped are not released",
        "        self._dropped.append(self._array)\n",
        "        pass\n",
        _DROPPED,
    ),
    (
        "arrays of users are released before they are read",
        "        weakref.finalize(adopted, _finish, self._cupy, self._stream).atexit = False\n",
        "",
        f"{_SCENARIO}[released_by_its_owner]",
    ),
    (
        "small readbacks are not staged",
        "elif target.nbytes > STAGING_BYTES:",
        "elif target.nbytes >= 0:",
        f"{_CUDA}test_small_readbacks_share_one_pinned_buffer",
    ),
    (
        "each readback has its own buffer",
        "if self._staging is None:",
        "if True:",
        f"{_CUDA}test_small_readbacks_share_one_pinned_buffer",
    ),
    (
        "a readback returns the shared buffer",
        "                target[:] = staged\n",
        "                target = staged\n",
        f"{_CUDA}test_small_readbacks_share_one_pinned_buffer",
    ),
    (
        "a launch waits for its kernel",
        "            self._with_memory(None, self._launcher.launch, kernel, size, arguments)\n",
        "            self._with_memory(None, self._launcher.launch, kernel, size, arguments)\n            self._cupy.synchronize(self._stream)\n",
        f"{_CUDA}test_a_launch_is_asynchronous",
    ),
    (
        "a launch over nothing is made",
        "        if size <= 0:\n",
        "        if size < 0:\n",
        f"{_CUDA}test_a_launch_is_asynchronous",
    ),
    (
        "unused memory of the pool does not count",
        "return self._cupy.free_memory() + self._cupy.unused_in_pool() if",
        "return self._cupy.free_memory() if",
        _MEMORY,
    ),
    ("the pool is not trimmed before a retry", "        self.trim()\n", "", _MEMORY),
    (
        "a need of all available memory is refused",
        "available is not None and needed > available:",
        "available is not None and needed >= available:",
        _MEMORY,
    ),
    (
        "a copy doubles its end",
        "count = min(done, size - done)",
        "count = done",
        f"{_CUDA}test_zeros_and_full[7-100001]",
    ),
    (
        "bandwidth counts what is written only",
        "return 2 * size / min(seconds)",
        "return size / min(seconds)",
        f"{_CUDA}test_bandwidth_counts_reads_and_writes",
    ),
)
_UPLOADS = faults_in(
    "host/devices/uploads.py",
    (
        "a buffer is filled while the GPU reads it",
        "                self._cupy.wait_for(event)\n",
        "",
        f"{_SCENARIO}[uploaded_in_parts]",
    ),
    (
        "the end of a copy is not recorded",
        "                self._cupy.record(event, self._stream)\n",
        "",
        f"{_SCENARIO}[uploaded_in_parts]",
    ),
    (
        "each upload allocates its buffers",
        "        if not self._buffers:\n",
        "        if True:\n",
        f"{_CUDA}test_small_readbacks_share_one_pinned_buffer",
    ),
)
_CALLS = faults_in(
    "host/devices/cupy_calls.py",
    (
        "the stream does not block",
        "return cupy.cuda.Stream(non_blocking=False)",
        "return cupy.cuda.Stream(non_blocking=True)",
        f"{_SCENARIO}[written_on_the_default_stream]",
    ),
    (
        "the event is recorded on the waiting stream",
        "eventRecord(event.ptr, earlier)",
        "eventRecord(event.ptr, waiting)",
        f"{_SCENARIO}[written_on_the_current_stream]",
    ),
    (
        "streams are thought to be named before version 3",
        "_STREAMS_NAMED = 3",
        "_STREAMS_NAMED = 2",
        f"{_SCENARIO}[written_before_streams_were_named]",
    ),
    (
        "a lent array does not keep its owner",
        "array.nbytes, owner, array.device.id",
        "array.nbytes, None, array.device.id",
        _DROPPED,
    ),
    (
        "events are counted in milliseconds",
        "(begin, end)) / 1000",
        "(begin, end))",
        f"{_CUDA}test_bandwidth_counts_reads_and_writes",
    ),
)
_LAUNCHER = faults_in(
    "host/devices/launches.py",
    (
        "each launch loads its kernel",
        "            if kernel not in self._loaded:\n",
        "            if True:\n",
        "",
        "A loaded kernel is found before this check, which serves threads that load the same kernel at once.",
    ),
    (
        "a kernel is loaded for the wrong width of offsets",
        "            kernel = kernel.resolved(arguments)\n",
        "            kernel = kernel.resolved([np.empty(0, np.uint32)] * len(arguments))\n",
        f"{_LAUNCHES}test_a_kernel_is_compiled_once_and_launched_on_the_stream",
    ),
    (
        "arrays of another dtype are passed",
        "        if array.dtype != kind.dtype:\n",
        "        if False:\n",
        f"{_LAUNCHES}test_invalid_arguments",
    ),
    (
        "parameters outlive their array",
        "            known.pop(key, None)\n",
        "            pass\n",
        f"{_LAUNCHES}test_array_parameters_are_cached_while_the_array_exists",
    ),
    (
        "parameters of an array are made at each launch",
        "        known[key] = weakref.ref(array, forget), kind, packed\n        return known[key]\n",
        "        return weakref.ref(array, forget), kind, packed\n",
        f"{_LAUNCHES}test_array_parameters_are_cached_while_the_array_exists",
    ),
    (
        "every flag is true",
        "lambda flag: _FLAGS[bool(flag)]",
        "lambda flag: _FLAGS[1]",
        f"{_LAUNCHES}test_numbers_have_the_bytes_that_cuda_core_passes",
    ),
    (
        "equal kernels are loaded again",
        "                self._by_digest[digest] = found\n",
        "                pass\n",
        f"{_LAUNCHES}test_equal_kernels_are_loaded_once",
    ),
    (
        "blocks that wait for each other are launched plainly",
        "    if shape.cooperative:\n",
        "    if False:\n",
        f"{_LAUNCHES}test_a_cooperative_launch_has_a_block_per_multiprocessor_at_most",
    ),
    (
        "blocks are launched in no clusters",
        "    if shape.cluster > 1:\n",
        "    if False:\n",
        f"{_LAUNCHES}test_a_launch_states_shared_memory_and_clusters",
    ),
    (
        "the size of shared memory is not passed",
        " = shape.block, shape.dynamic_shared, stream",
        " = shape.block, 0, stream",
        f"{_LAUNCHES}test_a_launch_states_shared_memory_and_clusters",
    ),
    (
        "more shared memory is used than the function may",
        '            _call("cuFuncSetAttribute", code, attribute, shape.dynamic_shared)\n',
        "            pass\n",
        f"{_LAUNCHES}test_a_launch_states_shared_memory_and_clusters",
    ),
    (
        "an equal kernel of another shape is launched",
        "found is None or found.shape != kernel.shape",
        "found is None",
        f"{_LAUNCHES}test_items_per_block_may_differ_from_threads_per_block",
    ),
    (
        "a new thread has no context",
        '            _call("cuCtxSetCurrent", self._context)\n',
        "            pass\n",
        f"{_LAUNCHES}test_a_kernel_is_compiled_once_and_launched_on_the_stream",
    ),
    (
        "an array is passed as it was for another kernel",
        " or packed[1] is not kind:",
        ":",
        f"{_LAUNCHES}test_an_array_is_passed_as_each_kernel_takes_it",
    ),
)
_SHAPES = faults_in(
    "kernels/library/jit_cuda.py",
    (
        "a launch lacks the block of the last items",
        "blocks = -(-size // self.items)",
        "blocks = max(1, size // self.items)",
        f"{_LAUNCHES}test_items_per_block_may_differ_from_threads_per_block",
    ),
    (
        "items are taken as threads",
        "-(-size // self.items)",
        "-(-size // self.block)",
        f"{_LAUNCHES}test_items_per_block_may_differ_from_threads_per_block",
    ),
    (
        "a launch has part of a cluster",
        "return blocks + -blocks % self.cluster",
        "return blocks",
        f"{_LAUNCHES}test_a_launch_states_shared_memory_and_clusters",
    ),
    (
        "a cooperative launch has a cluster more than is resident",
        "min(blocks, multiprocessors - multiprocessors % self.cluster)",
        "min(blocks, multiprocessors)",
        f"{_LAUNCHES}test_a_launch_states_shared_memory_and_clusters",
    ),
)
_DYNAMIC = faults_in(
    "host/emulator/compile/translate.py",
    (
        "dynamic shared memory overlaps the arrays of fixed size",
        "offset = -(-self.size // _DYNAMIC_ALIGNMENT) * _DYNAMIC_ALIGNMENT",
        "offset = 0",
        "tests/host/emulator/compile/test_translate.py::test_a_shared_array_without_a_size_is_what_the_kernel_declares",
    ),
)
_PARAMETERS = faults_in(
    "kernels/library/parameters.py",
    (
        "an array's shape is its size in bytes",
        '{"shape": shape,',
        '{"shape": [size * itemsize for size in shape],',
        f"{_LAUNCHES}test_a_kernel_is_compiled_once_and_launched_on_the_stream",
    ),
    (
        "strides are counted in elements",
        "[itemsize * math.prod(",
        "[math.prod(",
        f"{_LAUNCHES}test_a_kernel_is_compiled_once_and_launched_on_the_stream",
    ),
)
FAULTS = (*_DEVICE, *_UPLOADS, *_CALLS, *_LAUNCHER, *_SHAPES, *_DYNAMIC, *_PARAMETERS)
