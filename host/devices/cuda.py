"""A GPU as a device: CuPy arrays, Numba-CUDA kernels, one stream; nothing of CUDA is imported before it is made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, DeviceError, GpuPregelError, MissingPackageError, NotEnoughMemoryError
from gpu_pregel.host.devices.gpus import Gpu, gpus
from gpu_pregel.host.devices.memory import format_bytes
from gpu_pregel.host.devices.threads import Tick

OLDEST = (7, 0)
"""Compute capability from which the threads of a warp are scheduled independently, as kernels here rely on."""
STAGING = 1 << 16
"""Bytes of page-locked memory through which small readbacks go."""
_BLOCK = 1 << 14
"""Elements that ``full`` copies from the host."""
_PACKAGES = {"numba_cuda": "numba-cuda", "cupy": "cupy"}


def find_gpu(number: int) -> Gpu:
    """The GPU of this number, if it and the packages for it are there; makes no CUDA context.

    Raises
    ------
    DeviceError
        There is no such GPU, or it is too old.
    MissingPackageError
        The packages of the extra ``cuda12`` or ``cuda13`` are not installed.
    """
    name = f"device 'cuda:{number}' cannot be used"
    try:
        all_gpus = gpus()
    except DeviceError as error:
        raise DeviceError(f"{name}: {error}") from None
    if number >= len(all_gpus.found):
        raise DeviceError(f"{name}: there are {len(all_gpus.found)} GPUs, numbered from 0")
    gpu = all_gpus.found[number]
    if gpu.compute_capability < OLDEST:
        capability, oldest = (".".join(map(str, pair)) for pair in (gpu.compute_capability, OLDEST))
        raise DeviceError(
            f"{name}: {gpu.name} has compute capability {capability}, and {oldest} is the least that will do"
        )
    missing = [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise MissingPackageError(f"{name}: {' and '.join(missing)} not installed; {_install(all_gpus.cuda_version)}")
    return gpu


def why_unusable() -> str | None:
    """Why no GPU can be used, or None if the first one can as far as is known before its use."""
    try:
        find_gpu(0)
    except GpuPregelError as error:
        return str(error)
    return None


def _install(cuda_version: tuple[int, int]) -> str:
    """What to install for a driver that knows CUDA up to this version."""
    return f"pip install gpu-pregel[cuda{13 if cuda_version >= (13, 0) else 12}]"


class CudaDevice:
    """Runs kernels on the GPU of this number, one after the other.

    Arrays are CuPy's. They are allocated, copied and worked on in one stream of this object, which no other stream
    waits for; ``download`` and ``synchronize`` wait for it.

    Raises
    ------
    DeviceError, MissingPackageError
        There is no such GPU, or it cannot be used; the message says why and what to do.
    """

    is_host = False
    threads = None

    def __init__(self, number: int = 0) -> None:
        self.gpu = find_gpu(number)
        self.name = f"cuda:{number}"
        self._staging: np.ndarray[Any, Any] | None = None
        self._lock = threading.RLock()
        with self._explained():
            from gpu_pregel.host.devices import cupy_calls

            self._cupy = cupy_calls
            self._device = cupy_calls.new_device(number)
            with self._device:
                self._stream = cupy_calls.new_stream()
                self._launcher = _make_launcher(self.gpu, self._stream, cupy_calls)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors while the device is set up, as ours."""
        try:
            yield
        except GpuPregelError:
            raise
        except Exception as error:  # each package has its own: a library missing, or too new for the driver
            install = _install(gpus().cuda_version)
            raise DeviceError(
                f"device {self.name!r} cannot be used: {error}; the packages must fit the driver: {install}"
            ) from error

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Make this device and its stream current, and tell of CUDA's errors as ours."""
        try:
            with self._device, self._stream:
                yield
        except Exception as error:
            if not _is_of_cuda(error):
                raise
            raise DeviceError(
                f"device {self.name!r}: {error}; CUDA may tell of an error long after the kernel that made it: run on "
                f"device 'emulated' to find it"
            ) from error

    def kernels(self, family: str) -> ModuleType:
        """CUDA's kernels of one family, such as "components"."""
        return import_module(f"gpu_pregel.kernels.algorithms.{family}_cuda")

    def empty(self, size: int, dtype: Any) -> Any:
        """An uninitialised array on this device."""
        with self._current():
            return self._with_memory(size * np.dtype(dtype).itemsize, self._cupy.empty, size, dtype)

    def zeros(self, size: int, dtype: Any) -> Any:
        """An array of zeros on this device."""
        array = self.empty(size, dtype)
        if array.nbytes:
            with self._current():
                self._cupy.clear(array, self._stream)
        return array

    def full(self, size: int, value: Any, dtype: Any) -> Any:
        """An array that holds ``value`` everywhere: a short one, doubled until it fills it, which takes no kernel."""
        array = self.empty(size, dtype)
        done = min(size, _BLOCK)
        with self._current():
            if done:
                self._cupy.copy_in(array[:done], np.full(done, value, dtype), self._stream)
            while 0 < done < size:
                count = min(done, size - done)
                self._cupy.copy(array[done : done + count], array[:count], self._stream)
                done += count
        return array

    def upload(self, array: Any) -> Any:
        """A copy of a host array on this device; the host's may be changed as soon as this returns."""
        if not isinstance(array, np.ndarray):
            raise ArgumentTypeError(f"only NumPy arrays are uploaded, not {type(array).__name__}")
        source = np.ascontiguousarray(array)
        target = self.empty(source.size, source.dtype)
        if source.size:
            with self._current():
                self._cupy.copy_in(target, source, self._stream)
        return target

    def download(self, array: Any) -> np.ndarray[Any, Any]:
        """A copy of an array in host memory, after all that was launched before: a readback."""
        target: np.ndarray[Any, Any] = np.empty(array.size, array.dtype)
        if not target.size:
            self.synchronize()
        elif target.nbytes > STAGING:
            with self._current():
                self._cupy.copy_out(target, array, self._stream)
        else:
            with self._lock, self._current():
                if self._staging is None:
                    self._staging = self._cupy.pinned(STAGING)
                staged = self._staging[: target.nbytes].view(target.dtype)
                self._cupy.copy_out(staged, array, self._stream)
                target[:] = staged
        return target

    def launch(
        self,
        kernel: Any,
        size: int,
        *arguments: Any,
        chunk: int | None = None,  # noqa: ARG002 (the CPU's)
        tick: Tick | None = None,
    ) -> None:
        """Begin to run ``kernel`` over ``size`` items and return; ``tick`` is called once, then."""
        if size <= 0:
            return
        with self._current():
            self._with_memory(None, self._launcher.launch, kernel, size, arguments)
        if tick is not None:
            tick(size, size)

    def synchronize(self) -> None:
        """Wait for all that was launched."""
        with self._current():
            self._cupy.synchronize(self._stream)

    def available_memory(self) -> int:
        """Bytes that arrays can still get: the GPU's free ones and those that the pool holds unused."""
        with self._current():
            return self._cupy.free_memory() + self._cupy.unused_in_pool()

    def require(self, needed: int, purpose: str) -> None:
        """Raise ``NotEnoughMemoryError`` with both figures if ``purpose`` needs more bytes than there are."""
        available = self.available_memory()
        if needed > available:
            raise self._not_enough(f"{purpose} needs {format_bytes(needed)} of memory", available)

    def trim(self) -> None:
        """Give unused memory of the pool back."""
        with self._current():
            self._cupy.synchronize(self._stream)
            self._cupy.trim()

    def copy_bandwidth(self, size: int = 1 << 28, trials: int = 9) -> float:
        """Bytes that the GPU reads and writes in a second, the fastest of some copies of ``size`` bytes."""
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
        """Do what takes memory; if there is too little, once more with the pool trimmed."""
        try:
            return work(*arguments)
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
        self.trim()
        try:
            return work(*arguments)
        except Exception as error:
            if not _is_out_of_memory(error):
                raise
            what = "a kernel" if needed is None else f"an array of {format_bytes(needed)}"
            raise self._not_enough(f"{what} finds no memory", self.available_memory()) from error

    def _not_enough(self, what: str, available: int) -> NotEnoughMemoryError:
        return NotEnoughMemoryError(
            f"{what} on device {self.name}, and {format_bytes(available)} are available: use a smaller graph, or "
            f"a GPU with more memory"
        )


def _make_launcher(gpu: Gpu, stream: Any, cupy_calls: Any) -> Any:
    from gpu_pregel.host.devices.launches import Launcher

    return Launcher(gpu.number, gpu.compute_capability, cupy_calls.stream_pointer(stream), cupy_calls.pointer)


def _is_of_cuda(error: Exception) -> bool:
    """Whether CUDA failed, which CuPy, Numba and cuda-core each tell by an exception of their own."""
    return not isinstance(error, GpuPregelError) and any(word in str(error) for word in ("cudaError", "CUDA_ERROR"))


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, GpuPregelError):
        return False
    text = str(error)
    return isinstance(error, MemoryError) or "OUT_OF_MEMORY" in text or "cudaErrorMemoryAllocation" in text
