"""Kernels for tests of the emulated machine, written directly in LLVM IR through a small builder."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.compile.intrinsic_calls import HOOKS
from gpu_pregel.host.emulator.machine import runtime
from gpu_pregel.host.emulator.machine.arrays import DeviceArray
from gpu_pregel.host.emulator.machine.compiled_kernel import BLOCK_FENCE, CompiledKernel, Site
from gpu_pregel.host.emulator.machine.regions import Region

Value = str | int


class Code:
    """Builds one kernel; each hook call has its own site and its own line number, starting at line 10."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sites: list[Site] = []
        self._numbers = 0

    def _name(self) -> str:
        self._numbers += 1
        return f"%v{self._numbers}"

    def site(self, kind: str) -> int:
        self.sites.append(Site(kind, "/somewhere/kernel.py", 10 + len(self.sites)))
        return len(self.sites) - 1

    def do(self, text: str) -> str:
        name = self._name()
        self.lines.append(f"{name} = {text}")
        return name

    def call(self, hook: str, *values: Value) -> str:
        return self.do(f"call i64 @{hook}({', '.join(f'i64 {value}' for value in ('%state', *values))})")

    def argument(self, number: int) -> str:
        slots = self.do("load i64, ptr %slots")
        return self.do(f"load i64, ptr {self.pointer(self.add(slots, 8 * number))}")

    def pointer(self, address: Value) -> str:
        return self.do(f"inttoptr i64 {address} to ptr")

    def binary(self, operation: str, a: Value, b: Value) -> str:
        return self.do(f"{operation} i64 {a}, {b}")

    def add(self, a: Value, b: Value) -> str:
        return self.binary("add", a, b)

    def element(self, base: Value, index: Value, size: int = 4) -> str:
        return self.add(base, self.binary("mul", index, size))

    def compare(self, operation: str, a: Value, b: Value) -> str:
        return self.do(f"icmp {operation} i64 {a}, {b}")

    # Special registers.
    def register(self, code: int) -> str:
        return self.call("emu_sreg", code)

    def thread(self) -> str:
        return self.register(0)

    def block(self) -> str:
        return self.register(6)

    def everyone(self) -> str:
        """Return the index of the thread in a one-dimensional grid."""
        return self.add(self.binary("mul", self.block(), self.register(3)), self.thread())

    # Memory.
    def load(self, address: Value, size: int = 4) -> str:
        return self.call("emu_load", address, size, self.site("load"))

    def store(self, address: Value, value: Value, size: int = 4) -> str:
        return self.call("emu_store", address, size, value, self.site("store"))

    def atomic(self, operation: int, address: Value, value: Value, size: int = 4) -> str:
        return self.call("emu_rmw", address, size, operation, value, self.site("atomic"))

    def swap(self, address: Value, expected: Value, desired: Value, size: int = 4) -> str:
        return self.call("emu_cas", address, size, expected, desired, self.site("atomic"))

    def fence(self, level: int = 1) -> str:
        """Level 0 orders accesses within the block."""
        return self.call("emu_fence", level, self.site("fence" if level else BLOCK_FENCE))

    def shared(self, offset: Value = 0) -> str:
        return self.call("emu_shared", offset)

    def sync(self, kind: int, mask: Value = 0, a: Value = 0, b: Value = 0, c: Value = 0) -> str:
        return self.call("emu_sync", kind, mask, a, b, c, self.site("sync"))

    def barrier(self) -> str:
        return self.sync(0)

    # Control.
    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        self._numbers += 1
        yes, after = f"yes{self._numbers}", f"after{self._numbers}"
        self.lines += [f"br i1 {condition}, label %{yes}, label %{after}", f"{yes}:"]
        yield
        self.lines += [f"br label %{after}", f"{after}:"]

    @contextmanager
    def repeat(self, times: Value) -> Iterator[str]:
        """Run the body ``times`` times; yields the number of the iteration."""
        self._numbers += 1
        counter, body, after = f"%count{self._numbers}", f"body{self._numbers}", f"after{self._numbers}"
        self.lines += [f"{counter} = alloca i64", f"store i64 0, ptr {counter}", f"br label %{body}", f"{body}:"]
        place = self.do(f"load i64, ptr {counter}")
        yield place
        following = self.add(place, 1)
        self.lines.append(f"store i64 {following}, ptr {counter}")
        self.lines += [
            f"br i1 {self.compare('slt', following, times)}, label %{body}, label %{after}",
            f"{after}:",
        ]

    @contextmanager
    def until(self) -> Iterator[list[str]]:
        """Run the body until the condition that it appends to the list holds."""
        self._numbers += 1
        body, after = f"body{self._numbers}", f"after{self._numbers}"
        self.lines += [f"br label %{body}", f"{body}:"]
        condition: list[str] = []
        yield condition
        self.lines += [f"br i1 {condition[0]}, label %{after}, label %{body}", f"{after}:"]

    def leave(self, condition: str) -> None:
        """Exit the thread if the condition holds."""
        with self.when(condition):
            self.lines.append("br label %end")
            self.lines.append(f"dead{self._numbers}:")

    def text(self) -> str:
        declarations = "\n".join(f"declare i64 @{name}({', '.join(['i64'] * n)})" for name, n in HOOKS.items())
        body = "\n".join(self.lines)
        return (
            f"@emu_state = global i64 0\n{declarations}\ndefine void @emu_entry(i64 %given) {{\nentry:\n"
            f"%state = load i64, ptr @emu_state\n%slots = inttoptr i64 %state to ptr\n{body}\n"
            f"br label %end\nend:\nret void\n}}\n"
        )


class LoadedKernel:
    """A kernel loaded into memory."""

    def __init__(self, code: Code) -> None:
        runtime.load_machine()
        module = llvm.parse_assembly(code.text())
        module.verify()
        target = llvm.Target.from_default_triple().create_target_machine(jit=True, opt=0)
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()
        state = self._engine.get_global_value_address("emu_state")
        ctypes.c_int64.from_address(state).value = runtime.state_address()
        entry = int(self._engine.get_function_address("emu_entry"))
        self.compiled = CompiledKernel("trial", entry, code.sites)


def region(array: DeviceArray, name: str, racy: bool = False, relaxed: bool = False) -> Region:
    return Region(name, array.address, array.nbytes, array.itemsize, racy, array.allocation, relaxed)


def launch(
    kernel: LoadedKernel | Code,
    *arrays: DeviceArray,
    grid: int | tuple[int, int, int] = 1,
    block: int | tuple[int, int, int] = 32,
    racy: Sequence[int] = (),
    relaxed: Sequence[int] = (),
    numbers: Sequence[int] = (),
    regions: Sequence[Region] = (),
    shared_bytes: int = 0,
    shared_granule: int = 1,
    grid_barrier: bool = False,
    **options: Any,
) -> None:
    """Launch with arrays named a, b, c…, racy or relaxed at the positions of that name, followed by ``numbers``."""
    kernel = LoadedKernel(kernel) if isinstance(kernel, Code) else kernel
    named = [region(array, "abcdefgh"[place], place in racy, place in relaxed) for place, array in enumerate(arrays)]
    runtime.run(
        replace(
            kernel.compiled,
            shared_bytes=shared_bytes,
            shared_granule=shared_granule,
            uses_grid_barrier=grid_barrier,
        ),
        np.array([*(array.address for array in arrays), *numbers, 0], np.int64),
        [*named, *regions],
        grid=grid if isinstance(grid, tuple) else (grid, 1, 1),
        block=block if isinstance(block, tuple) else (block, 1, 1),
        **options,
    )


@contextmanager
def expect_fault(*parts: str) -> Iterator[None]:
    """Expect the launch to fail with a message that contains all ``parts``."""
    with pytest.raises(EmulationError) as caught:
        yield
    for part in ("kernel trial", *parts):
        assert part in str(caught.value), f"no {part!r} in {caught.value}"


def first_only(code: Code) -> str:
    return code.compare("eq", code.thread(), 0)
