"""A GPU as a device: CuPy arrays, Numba-CUDA kernels and one stream; CUDA packages are imported on creation."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, DeviceError, GpuPregelError, MissingPackageError, NotEnoughMemoryError
from gpu_pregel.host.devices.cuda_errors import explained, is_cuda_error, is_lost, is_out_of_memory
from gpu_pregel.host.devices.gpus import Gpu, gpus
from gpu_pregel.host.devices.memory import format_bytes
from gpu_pregel.host.devices.threads import Tick
from gpu_pregel.host.devices.toolkit import (
    check_driver,
    check_numba_cuda,
    check_toolkit,
    install_command,
    libnvvm_version,
)
from gpu_pregel.host.devices.uploads import Uploads

MIN_COMPUTE_CAPABILITY = (7, 0)
"""The first compute capability with independent thread scheduling, on which the kernels rely."""
STAGING_BYTES = 1 << 16
"""Size of the page-locked buffer for small readbacks."""
_FILL_BLOCK = 1 << 14
"""Number of elements that ``full`` copies from the host."""
_LEGACY_STREAMS = (0, 1)
"""CUDA's handles of the legacy default stream."""
_PACKAGES = {"numba_cuda": "numba-cuda", "cupy": "cupy"}


def find_gpu(number: int) -> Gpu:
    """Return a GPU if it and its packages are available; this creates no CUDA context.

    Raises
    ------
    DeviceError
        The GPU does not exist or is too old.
    MissingPackageError
        The packages of the extra ``cuda12`` or ``cuda13`` are not installed.
    """
    name = f"device 'cuda:{number}' cannot be used"
    try:
        all_gpus = gpus()
        check_driver(all_gpus.cuda_version)
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from None
    if number >= len(all_gpus.found):
        count = len(all_gpus.found)
        raise DeviceError(f"{name}: this machine has {count} GPU{'s' * (count != 1)}, numbered from 0")
    gpu = all_gpus.found[number]
    if gpu.compute_capability < MIN_COMPUTE_CAPABILITY:
        versions = (gpu.compute_capability, MIN_COMPUTE_CAPABILITY)
        capability, minimum = (".".join(map(str, version)) for version in versions)
        raise DeviceError(
            f"{name}: {gpu.name} has compute capability {capability}; at least {minimum} is required: use device='cpu'"
        )
    missing = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    install = install_command(all_gpus.cuda_version, gpu.compute_capability)
    if missing:
        raise MissingPackageError(f"{name}: {' and '.join(missing)} not installed; {install}")
    check_numba_cuda(install)
    return gpu


def unavailable_reason(number: int = 0) -> str | None:
    """Return why a GPU cannot be used, or None if no reason is known before its first use."""
    try:
        find_gpu(number)
    except GpuPregelError as error:
        return str(error)
    return None


class CudaDevice:
    """Runs kernels on one GPU, in order.

    Arrays are CuPy arrays. All allocations, copies and kernels use one stream; ``download`` and ``synchronize`` wait
    for it. Its work follows that of the caller's current stream, which then waits for it: CUDA orders it with the
    legacy default stream, and events order it with any other. ``adopt`` waits for the streams of other libraries, and
    arrays from ``hand_out`` may be used on any stream. CuPy's pool reuses memory on the stream that allocated it, so do
    not drop other arrays of this device while work that uses them is queued on a stream that is neither the legacy
    default stream nor current.

    Raises
    ------
    DeviceError, MissingPackageError
        The GPU does not exist or cannot be used; the message states the reason and the remedy.
    """

    is_host = False
    threads = None

    def __init__(self, number: int = 0) -> None:
        self.gpu = find_gpu(number)
        self.name = f"cuda:{number}"
        self._staging: np.ndarray[Any, Any] | None = None
        self._lock = threading.RLock()
        self._dropped: deque[Any] = deque()
        with self._setup_errors():
            from gpu_pregel.host.devices import cupy_calls

            self._cupy = cupy_calls
            self._device = cupy_calls.new_device(number)
            with self._device:
                self._stream = cupy_calls.new_stream()
                self._handle = cupy_calls.stream_pointer(self._stream)
                self._uploads = Uploads(cupy_calls, self._stream)
                self._launcher = _make_launcher(self.gpu, self._stream, cupy_calls)

    @contextmanager
    def _setup_errors(self) -> Iterator[None]:
        """Convert errors during setup to ``DeviceError`` or ``NotEnoughMemoryError``."""
        try:
            yield
        except GpuPregelError:
            raise
        except Exception as error:  # a library is missing or too new for the driver; packages differ in their errors
            if is_out_of_memory(error) or is_lost(error):
                raise explained(self.name, error) from error
            install = install_command(gpus().cuda_version, self.gpu.compute_capability)
            raise DeviceError(
                f"device {self.name!r} cannot be used: {error}; install packages that match the driver: {install}"
            ) from error

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Make this device and its stream current, and convert CUDA errors to ``DeviceError``.

        The work in the context follows that of the caller's current stream, which then waits for it.
        """
        try:
            with self._device:
                caller = self._cupy.current_stream()
                is_ordered = caller in (*_LEGACY_STREAMS, self._handle)
                if not is_ordered:
                    self._cupy.wait_for_stream(self._handle, caller)
                with self._stream:
                    yield
                if not is_ordered:
                    self._cupy.wait_for_stream(caller, self._handle)
        except Exception as error:
            if not is_cuda_error(error):
                raise
            raise explained(self.name, error) from error

    def kernels(self, family: str) -> ModuleType:
        """Return the module of CUDA kernels of a family, such as "components"."""
        return import_module(f"gpu_pregel.kernels.algorithms.{family}_cuda")

    def empty(self, size: int, dtype: Any) -> Any:
        """Return an uninitialised array on this device."""
        with self._current():
            self._reclaim()
            return self._with_memory(size * np.dtype(dtype).itemsize, self._cupy.empty, size, dtype)

    def zeros(self, size: int, dtype: Any) -> Any:
        """Return an array of zeros on this device."""
        array = self.empty(size, dtype)
        if array.nbytes:
            with self._current():
                self._cupy.clear(array, self._stream)
        return array

    def full(self, size: int, value: Any, dtype: Any) -> Any:
        """Return an array filled with ``value``, without a kernel: a block from the host, copied repeatedly."""
        if not np.array(value, dtype).tobytes().strip(b"\0"):
            return self.zeros(size, dtype)
        array = self.empty(size, dtype)
        done = min(size, _FILL_BLOCK)
        with self._current():
            if done:
                self._uploads.copy(array[:done], np.full(done, value, dtype))
            while 0 < done < size:
                count = min(done, size - done)
                self._cupy.copy(array[done : done + count], array[:count], self._stream)
                done += count
        return array

    def upload(self, array: Any, dtype: Any = None) -> Any:
        """Begin to copy a host array, converted to ``dtype``; the host array may be modified once this returns."""
        if not isinstance(array, np.ndarray):
            raise ArgumentTypeError(f"only NumPy arrays can be uploaded, not {type(array).__name__}")
        target = self.empty(array.size, dtype or array.dtype)
        with self._current():
            self._uploads.copy(target, array.reshape(-1))
        return target

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """Copy an array to the host after all earlier launches; this is a readback."""
        target: np.ndarray[Any, Any] = np.empty(array.size, array.dtype)
        if not target.size:
            self.synchronize()
        elif target.nbytes > STAGING_BYTES:
            with self._current():
                self._cupy.copy_out(target, array, self._stream)
        else:
            with self._lock, self._current():
                if self._staging is None:
                    self._staging = self._cupy.pinned(STAGING_BYTES)
                staged = self._staging[: target.nbytes].view(target.dtype)
                self._cupy.copy_out(staged, array, self._stream)
                target[:] = staged
        return target

    def adopt(self, array: Any) -> Any:
        """Return a user's array on this GPU as a CuPy array, for use after all work of its producer.

        Raises
        ------
        ArgumentTypeError
            The array is not contiguous, has several dimensions, or does not follow the protocol of its library.
        """
        with self._current():
            try:
                adopted = self._cupy.as_array(array, self._device)
            except (AttributeError, BufferError, LookupError, TypeError, ValueError) as error:
                raise ArgumentTypeError(f"an array in the memory of a GPU cannot be used: {error}") from error
        if adopted.ndim != 1 or not adopted.flags.c_contiguous:
            raise ArgumentTypeError(
                "arrays in the memory of a GPU must have one dimension and be contiguous: use cupy.ascontiguousarray "
                "or tensor.contiguous()"
            )
        # Its owner may use the memory again, on any stream, once it is released here.
        weakref.finalize(adopted, _finish, self._cupy, self._stream).atexit = False
        return adopted

    def hand_out(self, array: Any) -> Any:
        """Return a complete array for use on any stream; its memory is reused only after all work of the GPU."""
        with self._current():
            self._cupy.synchronize(self._stream)
            return self._cupy.lend(array, _Loan(array, self._dropped)) if array.size else array

    def _reclaim(self) -> None:
        """Return the memory of arrays that were handed out and dropped to the pool, after all work of the GPU."""
        if self._dropped:
            with self._lock:  # another thread may take some of them
                dropped = [self._dropped.popleft() for _ in range(len(self._dropped))]
            self._cupy.synchronize_device(self._device)
            dropped.clear()

    def move(self, target: Any, source: Any) -> None:
        """Copy the elements of an array to another one of the same length and dtype, after all earlier launches."""
        if source.size:
            with self._current():
                self._cupy.copy(target, source, self._stream)

    def copy(self, array: Any, dtype: Any) -> Any:
        """Copy an array within this GPU, as elements of a dtype of the same size; it may be modified afterwards."""
        target = self.empty(array.size, dtype)
        if array.size:
            with self._current():
                self._cupy.copy(target, array, self._stream)
                self._cupy.synchronize(self._stream)
        return target

    def launch(
        self,
        kernel: Any,
        size: int,
        *arguments: Any,
        chunk: int | None = None,  # noqa: ARG002 (CPU only)
        tick: Tick | None = None,
    ) -> None:
        """Launch ``kernel`` over ``size`` items without waiting for it; ``tick`` is called once after the launch."""
        if size <= 0:
            return
        with self._current():
            self._with_memory(None, self._launcher.launch, kernel, size, arguments)
        if tick is not None:
            tick(size, size)

    def synchronize(self) -> None:
        """Wait until all launches have finished."""
        with self._current():
            self._cupy.synchronize(self._stream)

    def available_memory(self) -> int | None:
        """Return the bytes available to arrays: free memory of the GPU and unused memory of CuPy's pool.

        None if they are unknown, because CuPy has another allocator. The driver counts what an allocator such as RMM's
        pool has reserved as used, and only the allocator itself knows how much of that is left.
        """
        with self._current():
            self._reclaim()
            return self._cupy.free_memory() + self._cupy.unused_in_pool() if self._cupy.has_own_pool() else None

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` if ``purpose`` needs more bytes than are available.

        Where they are unknown, an allocation that fails raises the same error.
        """
        with self._current():
            if needed <= self._cupy.unused_in_pool():
                return  # asking the driver takes longer than many a kernel
        available = self.available_memory()
        if available is not None and needed > available:
            raise self._not_enough(f"{purpose} needs {format_bytes(needed)} of memory", available)

    def trim(self) -> None:
        """Release the unused memory of the pool."""
        with self._current():
            self._cupy.synchronize(self._stream)
            self._reclaim()
            self._cupy.trim()

    def copy_bandwidth(self, size: int = 1 << 28, trials: int = 9) -> float:
        """Return the bytes read and written per second by the fastest of several copies of ``size`` bytes."""
        source, target = self.zeros(size, np.uint8), self.zeros(size, np.uint8)
        seconds = []
        with self._current():
            begin, end = self._cupy.new_event(), self._cupy.new_event()
            for _ in range(trials):
                self._cupy.record(begin, self._stream)
                self._cupy.copy(target, source, self._stream)
                self._cupy.record(end, self._stream)
                seconds.append(self._cupy.seconds_between(begin, end))
        return 2 * size / min(seconds)

    def _with_memory(self, needed: int | None, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``work``; if it runs out of memory, trim the pool and retry once."""
        try:
            return work(*arguments)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        self.trim()
        try:
            return work(*arguments)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            what = "a kernel" if needed is None else f"an array of {format_bytes(needed)}"
            raise self._not_enough(f"{what} needs memory", self.available_memory()) from error

    def _not_enough(self, what: str, available: int | None) -> NotEnoughMemoryError:
        if available is None:
            problem, remedy = "CuPy's allocator has no more", "let its pool grow, use a smaller graph"
        else:
            problem, remedy = f"only {format_bytes(available)} are available", "use a smaller graph"
        return NotEnoughMemoryError(f"{what} on device {self.name}, but {problem}: {remedy} or a GPU with more memory")


class _Loan:
    """Keeps an array that was handed out; when nobody has it any more, the array waits in ``dropped``."""

    def __init__(self, array: Any, dropped: deque[Any]) -> None:
        self._array = array
        self._dropped = dropped

    def __del__(self) -> None:
        self._dropped.append(self._array)


def _finish(cupy_calls: ModuleType, stream: Any) -> None:
    """Wait for all work of a stream; if it has failed, the next call on it raises the error again."""
    with suppress(Exception):
        cupy_calls.synchronize(stream)


def _make_launcher(gpu: Gpu, stream: Any, cupy_calls: Any) -> Any:
    from gpu_pregel.host.devices.launches import Launcher, check_linker, linker_version

    check_toolkit(gpus().cuda_version, gpu.compute_capability, libnvvm_version(), linker_version())
    check_linker(gpu.compute_capability)
    return Launcher(gpu.number, gpu.compute_capability, cupy_calls.stream_pointer(stream), cupy_calls.pointer)
