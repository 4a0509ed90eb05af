"""Kernels as PTX, assembled and linked for real chips by NVIDIA's own tools, which need no GPU.

``python -m tests.kernels.chips`` prints the registers of each kernel on each chip.
"""

from __future__ import annotations

import functools
import os
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.kernels.library.jit_cuda import Kernel

CHIPS = {"sm_75": (7, 5), "sm_80": (8, 0), "sm_90": (9, 0), "sm_100": (10, 0)}
MOST_REGISTERS = {"sm_75": 64, "sm_80": 40, "sm_90": 40, "sm_100": 40}
_SIZED, _REGISTER_COUNT = 0x04, 0x2F
"""In the section ``.nv.info``: the form of an attribute that tells its size, and the attribute of registers."""


@dataclass(frozen=True)
class Figures:
    """What a thread of a kernel takes on a chip, bytes but for the registers."""

    registers: int
    stack: int
    spilled: int

    def faults(self, chip: str) -> list[str]:
        """What is more than it may be."""
        most = {"registers": MOST_REGISTERS[chip], "stack": 0, "spilled": 0}
        return [
            f"{name} {getattr(self, name)} > {limit}" for name, limit in most.items() if getattr(self, name) > limit
        ]


def _find(name: str) -> str | None:
    if find_spec("cuda") is None or find_spec("cuda.pathfinder") is None:
        return None
    from cuda import pathfinder

    found: str | None = pathfinder.find_nvidia_binary_utility(name)
    return found


@pytest.fixture(scope="session")
def tools() -> None:
    """What assembles and links."""
    check_tools()


def check_tools() -> None:
    """Skip where the packages numba-cuda and nvidia-cuda-nvcc are not installed, which in CI they must be."""
    missing = [name for name in ("ptxas", "nvlink") if _find(name) is None]
    missing += [] if find_spec("numba_cuda") else ["numba-cuda"]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"{', '.join(missing)} not found: pip install gpu-pregel[test]")
    if missing:
        pytest.skip(f"{', '.join(missing)} not found: pip install gpu-pregel[test]")


def examine(kernel: Kernel, chips: Iterable[str]) -> dict[str, tuple[str, Figures]]:
    """A kernel's PTX and figures for each chip."""
    with ThreadPoolExecutor(2) as pool:
        # The next chip's PTX is made while the tool is at work on the last one's.
        begun = [(chip, ptx, pool.submit(assemble, ptx, chip)) for chip in chips for ptx in [_ptx(kernel, chip)]]
        return {chip: (ptx, figures.result()) for chip, ptx, figures in begun}


def _ptx(kernel: Kernel, chip: str) -> str:
    text: str = _lowered(kernel).get_asm_str(cc=CHIPS[chip])
    return text


@functools.cache
def _lowered(kernel: Kernel) -> Any:
    """A kernel's LLVM IR, which is the same for all chips and takes longest to make."""
    from gpu_pregel.host.devices.lowering import _lower

    return _lower(kernel.function, kernel.signature, CHIPS["sm_75"], fastmath=False, block=kernel.block)


@functools.cache
def assemble(ptx: str, chip: str) -> Figures:
    """Assemble PTX, with no warning, and read what the kernel takes."""
    strict = ("-Werror", "--warn-on-spills", "--warn-on-local-memory-usage")
    with tempfile.TemporaryDirectory() as folder:
        source, code = str(Path(folder, "kernel.ptx")), str(Path(folder, "kernel.cubin"))
        Path(source).write_text(ptx)
        told = _run("ptxas", "-v", *strict, f"-arch={chip}", source, "-o", code)
        assert registers_in(Path(code).read_bytes()) == _figure(r"Used (\d+) registers", told)
    return Figures(
        registers=_figure(r"Used (\d+) registers", told),
        stack=_figure(r"(\d+) bytes stack frame", told),
        spilled=_figure(r"(\d+) bytes spill stores", told) + _figure(r"(\d+) bytes spill loads", told),
    )


def link(ptx: str, chip: str, *libraries: str) -> None:
    """Assemble PTX to what can be linked, and link it."""
    with tempfile.TemporaryDirectory() as folder:
        source, linkable, code = (str(Path(folder, f"kernel.{suffix}")) for suffix in ("ptx", "o", "cubin"))
        Path(source).write_text(ptx)
        _run("ptxas", "-c", f"-arch={chip}", source, "-o", linkable)
        _run("nvlink", f"-arch={chip}", linkable, *libraries, "-o", code)
        assert Path(code).read_bytes()[:4] == b"\x7fELF"


def registers_in(code: bytes) -> int:
    """The registers that the one kernel of an ELF file takes: an attribute in its section ``.nv.info``."""
    begin = int.from_bytes(code[0x28:0x30], "little")
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, begin + k * size) for k in range(count)]
    found = set()
    for name, _, _, _, offset, length in headers:
        start = headers[names][4] + name
        if code[start : code.index(b"\0", start)] != b".nv.info":
            continue
        place = offset
        while place < offset + length:
            form, attribute, value = struct.unpack_from("<BBH", code, place)
            place += 4
            if form == _SIZED:
                if attribute == _REGISTER_COUNT:
                    found.add(struct.unpack_from("<II", code, place)[1])
                place += value
    assert len(found) == 1, found
    return int(found.pop())


def _figure(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    assert len(found) == 1, text
    return int(found[0])


def _run(tool: str, *arguments: str) -> str:
    path = _find(tool)
    assert path is not None
    done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=300)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "warning" not in text, text
    return text


def table() -> None:
    """Print the registers of every kernel on every chip."""
    from tests.kernels.test_ptx import all_kernels

    print(f"{'registers':<36}" + "".join(f"{chip:>8}" for chip in CHIPS))
    for name, kernel in all_kernels():
        figures = examine(kernel, CHIPS)
        print(f"{name:<36}" + "".join(f"{figures[chip][1].registers:>8}" for chip in CHIPS), flush=True)


if __name__ == "__main__":
    table()
