"""Assembles and links kernels for real chips with NVIDIA's tools, which need no GPU.

``python -m tests.kernels.chips`` prints the registers of each kernel on each chip.
"""

from __future__ import annotations

import functools
import re
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from gpu_pregel.kernels.library.jit_cuda import Kernel

CHIPS = {"sm_75": (7, 5), "sm_80": (8, 0), "sm_90": (9, 0), "sm_100": (10, 0)}
MAX_REGISTERS = {"sm_75": 64, "sm_80": 40, "sm_90": 40, "sm_100": 40}
_PACKAGES = {"numba_cuda": "numba-cuda", "cupy": "cupy"}
_SIZED_FORMAT, _REGISTER_COUNT = 0x04, 0x2F
"""In the section ``.nv.info``: the format of attributes with a size, and the attribute for registers."""


@dataclass(frozen=True)
class ResourceUsage:
    """Resources per thread of a kernel on a chip: the number of registers, and bytes of stack and spills."""

    registers: int
    stack: int
    spilled: int

    def excesses(self, chip: str, *, cooperative: bool = False) -> list[str]:
        """Return the resources that exceed their limits; one block of a cooperative kernel runs on a multiprocessor."""
        limits = {"registers": 128 if cooperative else MAX_REGISTERS[chip], "stack": 0, "spilled": 0}
        return [
            f"{name} {getattr(self, name)} > {limit}" for name, limit in limits.items() if getattr(self, name) > limit
        ]


def _find(name: str) -> str | None:
    if find_spec("cuda") is None or find_spec("cuda.pathfinder") is None:
        return None
    from cuda import pathfinder

    found: str | None = pathfinder.find_nvidia_binary_utility(name)
    return found


@functools.cache
def _is_loadable(library: str) -> bool:
    if find_spec("cuda") is None or find_spec("cuda.pathfinder") is None:
        return False
    from cuda import pathfinder

    try:
        pathfinder.load_nvidia_dynamic_lib(library)
    except pathfinder.DynamicLibNotFoundError:
        return False
    return True


@functools.cache
def why_no_tools() -> str | None:
    """Return which of CuPy and NVIDIA's compilers, which tests marked nvidia need, are not installed, or None."""
    missing = [name for name in ("ptxas", "nvlink") if _find(name) is None]
    missing += [f"lib{name}" for name in ("nvvm", "nvrtc") if not _is_loadable(name)]
    missing += [package for module, package in _PACKAGES.items() if find_spec(module) is None]
    return f"{', '.join(missing)} not found: pip install gpu-pregel[test,test-cuda]" if missing else None


def examine(kernel: Kernel, chips: Iterable[str]) -> dict[str, tuple[str, ResourceUsage]]:
    """Return the PTX and the resource usage of a kernel for each chip."""
    with ThreadPoolExecutor(2) as pool:
        # The PTX for the next chip is generated while the previous one is assembled.
        begun = [(chip, ptx, pool.submit(assemble, ptx, chip)) for chip in chips for ptx in [_ptx(kernel, chip)]]
        return {chip: (ptx, usage.result()) for chip, ptx, usage in begun}


def _ptx(kernel: Kernel, chip: str) -> str:
    from gpu_pregel.host.devices.compiled_kernels import lowered
    from gpu_pregel.host.devices.lowering import compile_ir

    return compile_ir(lowered(kernel), CHIPS[chip], lto=False).decode().strip("\0\n ")


@functools.cache
def assemble(ptx: str, chip: str) -> ResourceUsage:
    """Assemble PTX without warnings and return the kernel's resource usage."""
    strict = ("-Werror", "--warn-on-spills", "--warn-on-local-memory-usage")
    with tempfile.TemporaryDirectory() as folder:
        source, code = str(Path(folder, "kernel.ptx")), str(Path(folder, "kernel.cubin"))
        Path(source).write_text(ptx)
        report = _run("ptxas", "-v", *strict, f"-arch={chip}", source, "-o", code)
        assert registers_in(Path(code).read_bytes()) == _number_in(r"Used (\d+) registers", report)
    return ResourceUsage(
        registers=_number_in(r"Used (\d+) registers", report),
        stack=_number_in(r"(\d+) bytes stack frame", report),
        spilled=_number_in(r"(\d+) bytes spill stores", report) + _number_in(r"(\d+) bytes spill loads", report),
    )


def link(ptx: str, chip: str, *libraries: str) -> None:
    """Assemble PTX to a relocatable object and link it."""
    with tempfile.TemporaryDirectory() as folder:
        source, linkable, code = (str(Path(folder, f"kernel.{suffix}")) for suffix in ("ptx", "o", "cubin"))
        Path(source).write_text(ptx)
        _run("ptxas", "-c", f"-arch={chip}", source, "-o", linkable)
        _run("nvlink", f"-arch={chip}", linkable, *libraries, "-o", code)
        assert Path(code).read_bytes()[:4] == b"\x7fELF"


def _sections(code: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the name, the begin and the end of each section of an ELF file."""
    begin = int.from_bytes(code[0x28:0x30], "little")
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, begin + k * size) for k in range(count)]
    for name, _, _, _, offset, length in headers:
        start = headers[names][4] + name
        yield code[start : code.index(b"\0", start)].decode(), offset, offset + length


def opcodes_in(code: bytes, entry: str) -> list[int]:
    """Return the low 12 bits of each instruction of a kernel in an ELF file; instructions have 16 bytes."""
    begin, end = next((begin, end) for name, begin, end in _sections(code) if name == f".text.{entry}")
    return [int.from_bytes(code[place : place + 2], "little") & 0xFFF for place in range(begin, end, 16)]


def registers_in(code: bytes) -> int:
    """Return the number of registers of the only kernel in an ELF file, from its section ``.nv.info``."""
    found = set()
    for name, place, end in _sections(code):
        if name != ".nv.info":
            continue
        while place < end:
            form, attribute, value = struct.unpack_from("<BBH", code, place)
            place += 4
            if form == _SIZED_FORMAT:
                if attribute == _REGISTER_COUNT:
                    found.add(struct.unpack_from("<II", code, place)[1])
                place += value
    assert len(found) == 1, found
    return int(found.pop())


def _number_in(pattern: str, text: str) -> int:
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
    """Print the number of registers of every kernel on every chip."""
    from tests.kernels.test_ptx import all_kernels

    print(f"{'registers':<36}" + "".join(f"{chip:>8}" for chip in CHIPS))
    for name, kernel in all_kernels():
        usage = examine(kernel, CHIPS)
        print(f"{name:<36}" + "".join(f"{usage[chip][1].registers:>8}" for chip in CHIPS), flush=True)


if __name__ == "__main__":
    table()
