"""GPGPU-Sim in a process of its own: its configuration, its build with ``bridge.cpp``, and calls to it.

The simulator ends its process when it meets something that it cannot run, and prints to standard output.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER_VARIABLE = "GPU_PREGEL_GPGPUSIM"
"""The environment variable that names the folder of a built GPGPU-Sim."""
CONFIGURATIONS = {"QV100": "SM7_QV100", "RTX2060": "SM75_RTX2060"}
"""The modelled GPUs, and the folders of their configurations in ``configs/tested-cfgs``."""

_BRIDGE = Path(__file__).with_name("bridge.cpp")
_OPTIONS = """
-gpgpu_kernel_launch_latency 0
-gpgpu_ptx_sim_mode 0
-gpgpu_max_concurrent_kernel 1
-visualizer_enabled 0
-enable_ptx_file_line_stats 0
-gpgpu_memlatency_stat 0
"""
_SHUFFLES = {"-ptx_opcode_latency_int": "21", "-ptx_opcode_initiation_int": "4"}
"""Of shuffles, as configured for the QV100; the configuration of the RTX 2060 lacks them."""


class SimulationError(Exception):
    """The simulator is not available, or ended before a kernel did."""


class Launch(NamedTuple):
    """What the simulator counted during a launch: cycles, without launch latency, and instructions of threads."""

    cycles: int
    instructions: int


def why_unavailable() -> str | None:
    """Return why there is no simulator, or None if there is one."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return f"{FOLDER_VARIABLE} does not name the folder of a built GPGPU-Sim"
    if not _library(Path(folder)):
        return f"{folder} (from {FOLDER_VARIABLE}) has no lib/*/*/release/libcudart.so: build GPGPU-Sim there"
    return None


def _library(folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob("lib/*/*/release/libcudart.so"))), None)


def build_bridge(folder: Path) -> Path:
    """Compile ``bridge.cpp`` against the simulator in ``folder``, once per version of the file; return the program."""
    library = _library(folder)
    assert library is not None
    program = library.with_name(f"gpu_pregel_bridge_{hashlib.sha256(_BRIDGE.read_bytes()).hexdigest()[:12]}")
    if program.exists():
        return program
    toolkit = os.environ.get("CUDA_INSTALL_PATH")
    if not toolkit:
        raise SimulationError("CUDA_INSTALL_PATH must name the CUDA toolkit with which GPGPU-Sim was built")
    include = [f"-I{folder / 'libcuda'}", f"-I{folder / 'src'}", f"-I{toolkit}/include"]
    linked = [f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-lcudart"]
    unfinished = program.with_suffix(f".{os.getpid()}")
    command = ["g++", "-O2", "-w", "-std=c++11", str(_BRIDGE), "-o", str(unfinished), *include, *linked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SimulationError(f"compiling {_BRIDGE.name} failed: {done.stderr.strip().splitlines()[-1]}")
    unfinished.replace(program)
    return program


class Simulator:
    """A simulated GPU in a process.

    Parameters
    ----------
    configuration : str
        One of ``CONFIGURATIONS``.

    Raises
    ------
    SimulationError
        There is no simulator.
    """

    def __init__(self, configuration: str) -> None:
        reason = why_unavailable()
        if reason is not None:
            raise SimulationError(reason)
        root = Path(os.environ[FOLDER_VARIABLE])
        self._folder = tempfile.TemporaryDirectory(prefix="gpgpusim-")
        folder = Path(self._folder.name)
        self._log = folder / "log"
        _write_configuration(root / "configs" / "tested-cfgs" / CONFIGURATIONS[configuration], folder)
        self._process = subprocess.Popen(
            [build_bridge(root), self._log],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GPGPUSIM_ROOT": str(root)},
        )
        self._reply()

    def close(self) -> None:
        """End the process."""
        with self._process:
            self._process.kill()
        self._folder.cleanup()

    def load(self, ptx: str, entry: str, registers: int, shared: int) -> int:
        """Load a kernel; return its number of parameters.

        Parameters
        ----------
        ptx : str
            PTX with the kernel, in the dialect of the simulator.
        entry : str
            Its name, which differs from those of all loaded kernels.
        registers, shared : int
            Registers per thread, and bytes of shared memory per block, which limit the blocks per multiprocessor.
        """
        file = Path(self._folder.name, f"{entry}.ptx")
        file.write_text(ptx)
        before = self._log.stat().st_size
        self._send(f"load {file.name} {entry} {registers} {shared}\n".encode())
        count = int(self._reply())
        printed = self._log.read_text(errors="replace")[before:]
        wrong = re.search(r"(?i)^.*(?:syntax error|parse error|not \(yet\) implemented).*(?:\n.*){0,3}", printed, re.M)
        if wrong or count < 0:
            raise SimulationError(f"the simulator cannot read {entry}: {wrong[0] if wrong else 'entry not found'}")
        return count

    def write(self, address: int, data: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
        """Copy bytes to device memory."""
        self._send(f"write {address} {data.size}\n".encode() + data.tobytes())

    def read(self, address: int, size: int) -> bytes:
        """Copy bytes from device memory."""
        self._send(f"read {address} {size}\n".encode())
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise self._ended()
        return data

    def launch(self, entry: str, grid: int, block: int, words: Sequence[int]) -> Launch:
        """Run a kernel with one 64-bit word per parameter."""
        parameters = np.asarray(words, np.int64).tobytes()
        self._send(f"launch {entry} {grid} {block} {len(words)}\n".encode() + parameters)
        return Launch(*map(int, self._reply().split()))

    def _send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(message)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def _reply(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()
        if not line:
            raise self._ended()
        return line.strip()

    def _ended(self) -> SimulationError:
        status = self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines() if self._log.exists() else []
        return SimulationError(f"GPGPU-Sim ended with status {status}: {' | '.join(lines[-3:]) or 'no output'}")


def _write_configuration(source: Path, target: Path) -> None:
    """Copy a configuration, complete it with the latency of shuffles, and switch off latencies of launches and logs."""
    for file in source.glob("*.icnt"):
        shutil.copy(file, target)
    lines = []
    for line in (source / "gpgpusim.config").read_text().splitlines():
        name, _, values = line.partition(" ")
        is_short = name in _SHUFFLES and values.count(",") == 4
        lines.append(f"{line.rstrip()},{_SHUFFLES[name]}" if is_short else line)
    (target / "gpgpusim.config").write_text("\n".join(lines) + _OPTIONS)
