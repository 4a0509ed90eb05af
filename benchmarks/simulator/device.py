"""A device that runs CUDA kernels on GPGPU-Sim, in place of an emulated device."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulator.process import SimulationError, Simulator
from benchmarks.simulator.ptx import rewrite
from gpu_pregel.host import devices
from gpu_pregel.host.devices.compiled_kernels import lowered
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.devices.lowering import compile_ir
from gpu_pregel.host.emulator.machine.arrays import Allocation, DeviceArray, EmulatedMemory
from gpu_pregel.host.emulator.machine.compiled_kernel import CompiledKernel
from gpu_pregel.host.emulator.machine.launch_arguments import Words
from gpu_pregel.host.emulator.machine.regions import Region
from gpu_pregel.kernels.library.jit_cuda import Kernel

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

CAPABILITY = (7, 5)
"""The oldest chip for which NVIDIA's compilers still generate PTX; the simulator models chips of this age."""
_FIRST_ADDRESS = 0xC0000000
_numbers = itertools.count(1_000_000_000)


@dataclass(frozen=True)
class LaunchRecord:
    """A launch: the kernel, its blocks, its cycles without launch latency, and its thread instructions."""

    kernel: str
    blocks: int
    cycles: int
    instructions: int


class _SimulatedAllocation(Allocation):
    """Memory of the simulator, copied to the host when the host uses it, and back before the next launch."""

    def __init__(self, memory: SimulatedMemory, nbytes: int) -> None:
        super().__init__(nbytes)
        self._memory = memory
        self._copy: Bytes | None = None
        self._is_stale = False
        self.address = memory.claim(nbytes)

    def _contents(self) -> Bytes:
        if self._is_stale:
            data = self._memory.simulator.read(self.address, self.nbytes)
            self._bytes[:] = np.frombuffer(data, np.uint8)
            self._copy, self._is_stale = self._bytes.copy(), False
        return self._bytes

    def _replace(self, contents: Bytes) -> None:
        self._bytes = contents

    bytes = property(_contents, _replace)
    """The contents on the host."""

    def launch(self) -> None:
        """Copy to the simulator what the host has written, and expect that a kernel writes to it."""
        if not self._is_stale:
            if self.nbytes and (self._copy is None or not np.array_equal(self._copy, self._bytes)):
                self._memory.simulator.write(self.address, self._bytes)
            self._is_stale = True


class SimulatedMemory(EmulatedMemory):
    """The memory of a simulated GPU. Freed memory is used again, as by CuPy's pool."""

    def __init__(self, simulator: Simulator) -> None:
        super().__init__()
        self.simulator = simulator
        self._next = _FIRST_ADDRESS
        self._free: dict[int, list[int]] = {}

    def empty(self, size: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """Return an uninitialised array."""
        array = super().empty(size, dtype)
        allocation = _SimulatedAllocation(self, array.nbytes)
        weakref.finalize(allocation, self._give_back, allocation.address, array.nbytes).atexit = False
        # The emulated allocation only counts the bytes that are in use.
        allocation.counted = array.allocation  # type: ignore[attr-defined]
        array.allocation = allocation
        return array

    def claim(self, nbytes: int) -> int:
        """Return the address of free memory."""
        size = _rounded(nbytes)
        if self._free.get(size):
            return self._free[size].pop()
        self._next += size
        return self._next - size

    def _give_back(self, address: int, nbytes: int) -> None:
        self._free.setdefault(_rounded(nbytes), []).append(address)


def _rounded(nbytes: int) -> int:
    return max(512, -(-nbytes // 512) * 512)


class SimulatedDevice(EmulatedDevice):
    """Runs CUDA kernels on GPGPU-Sim and records the cycles of each launch.

    Parameters
    ----------
    configuration : str
        The modelled GPU; see ``CONFIGURATIONS``.
    """

    multiprocessors = 30
    """No configuration has fewer."""

    def __init__(self, configuration: str = "QV100") -> None:
        self.simulator = Simulator(configuration)
        super().__init__(next(_numbers), SimulatedMemory(self.simulator))
        self.configuration = configuration
        self.records: list[LaunchRecord] = []
        self._loaded: dict[Kernel, tuple[str, CompiledKernel]] = {}

    def require(self, needed: int, purpose: str) -> None:
        """Accept any size."""

    def _compile(self, kernel: Kernel) -> CompiledKernel:
        if kernel not in self._loaded:
            self._loaded[kernel] = self._load(kernel)
        return self._loaded[kernel][1]

    def _run(
        self,
        kernel: Kernel,
        compiled: CompiledKernel,  # noqa: ARG002 (the kernel's entry is used)
        blocks: int,
        words: Words,
        regions: list[Region],
    ) -> None:
        for region in regions:
            if not isinstance(region.allocation, _SimulatedAllocation):
                raise SimulationError(
                    f"{region.name} is not in the simulator's memory: use a graph that was on no emulated device before"
                )
            region.allocation.launch()
        counted = self.simulator.launch(self._loaded[kernel][0], blocks, kernel.block, words.tolist())
        self.records.append(LaunchRecord(kernel.name, blocks, *counted))

    def _load(self, kernel: Kernel) -> tuple[str, CompiledKernel]:
        if kernel.dynamic_shared:
            raise SimulationError(f"kernel {kernel.name} uses dynamic shared memory, which the simulator does not get")
        ir = lowered(kernel)
        text = compile_ir(ir, CAPABILITY, lto=False).decode().strip("\0\n ")
        entry = f"kernel{len(self._loaded)}"
        self.simulator.load(rewrite(text, entry), entry, *resources(text))
        code = kernel.function.__code__
        declared = CompiledKernel(
            kernel.name,
            entry=0,
            sites=[],
            parameters=code.co_varnames[: code.co_argcount],
            layout=ir.layout,
        )
        return entry, declared


def resources(ptx: str) -> tuple[int, int]:
    """Assemble PTX of one kernel; return its registers per thread and its bytes of shared memory."""
    from cuda import pathfinder

    assembler = pathfinder.find_nvidia_binary_utility("ptxas")
    if assembler is None:
        raise SimulationError("ptxas is not installed: pip install gpu-pregel[test-cuda]")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(ptx)
        chip = f"sm_{CAPABILITY[0]}{CAPABILITY[1]}"
        command = [assembler, "-v", f"-arch={chip}", str(source), "-o", os.devnull]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = done.stdout + done.stderr
    if done.returncode:
        raise SimulationError(f"ptxas rejects the PTX: {report.strip()}")
    registers, shared = re.search(r"Used (\d+) registers", report), re.search(r"(\d+) bytes smem", report)
    assert registers is not None, report
    return int(registers[1]), int(shared[1]) if shared else 0


@contextmanager
def simulated(configuration: str = "QV100") -> Iterator[SimulatedDevice]:
    """Start a simulated GPU; ``device=`` takes its ``name`` until the context ends."""
    device = SimulatedDevice(configuration)
    key = "emulated", device.seed
    devices._devices[key] = os.getpid(), device
    try:
        yield device
    finally:
        del devices._devices[key]
        device.simulator.close()
