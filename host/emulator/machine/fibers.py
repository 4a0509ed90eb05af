"""Fibers: machine code that switches from one stack to another.

A switch takes about ten instructions, whereas the C library's swapcontext makes two system calls.
"""

from __future__ import annotations

import platform
import sys
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from gpu_pregel.errors import DeviceError


class Frame(NamedTuple):
    """Layout of a saved context: its size in words and the positions of four registers."""

    words: int
    state: int
    entry: int
    exit: int
    start: int


_X86_64 = """
{switch}:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    retq
{start}:
    movq %r12, %rdi
    callq *%r13
    movq %r12, %rdi
    callq *%r14
    ud2
"""

_SAVED = ["x19, x20", "x21, x22", "x23, x24", "x25, x26", "x27, x28", "x29, x30", "d8, d9", "d10, d11", "d12, d13"]
_SAVED += ["d14, d15"]

_AARCH64 = "\n".join(
    [
        "{switch}:",
        "sub sp, sp, #160",
        *[f"stp {pair}, [sp, #{16 * place}]" for place, pair in enumerate(_SAVED)],
        "mov x9, sp",
        "str x9, [x0]",
        "mov sp, x1",
        *[f"ldp {pair}, [sp, #{16 * place}]" for place, pair in enumerate(_SAVED)],
        "add sp, sp, #160",
        "ret",
        "{start}:",
        "mov x0, x19",
        "blr x20",
        "mov x0, x19",
        "blr x21",
        "brk #1",
    ]
)

_PROCESSORS = {
    "x86_64": (_X86_64, Frame(words=7, state=3, entry=2, exit=1, start=6)),
    "aarch64": (_AARCH64, Frame(words=20, state=0, entry=1, exit=2, start=11)),
}
_OTHER_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


class Fibers(NamedTuple):
    """The loaded machine code of the switch."""

    switch: int
    start: int
    frame: Frame
    engine: Any


def load_fibers() -> Fibers:
    """Assemble and load the switch, whose symbol is ``emu_switch``.

    Raises
    ------
    DeviceError
        The processor architecture is not supported.
    """
    machine = platform.machine().lower()
    machine = _OTHER_NAMES.get(machine, machine)
    if machine not in _PROCESSORS or sys.platform == "win32":
        raise DeviceError(
            f"device 'emulated' requires Linux or macOS on an x86-64 or aarch64 processor, not {sys.platform} on "
            f"{machine}"
        )
    code, frame = _PROCESSORS[machine]
    engine = _load(code)
    switch, start = (int(engine.get_function_address(name)) for name in ("emu_switch", "emu_start"))
    if not switch or not start:
        raise DeviceError("device 'emulated' failed to load its machine code: this version of LLVM cannot assemble it")
    llvm.add_symbol("emu_switch", switch)
    return Fibers(switch, start, frame, engine)


def _load(code: str) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    # Symbols have a leading underscore on macOS.
    prefix = "_" if sys.platform == "darwin" else ""
    names = {"switch": f"{prefix}emu_switch", "start": f"{prefix}emu_start"}
    lines = [".text", ".p2align 4", *[f".globl {name}" for name in names.values()], *code.format(**names).splitlines()]
    text = "\n".join(f'module asm "{line.strip()}"' for line in lines if line.strip())
    declarations = "declare void @emu_switch(i64, i64)\ndeclare void @emu_start()"
    module = llvm.parse_assembly(f"{text}\n{declarations}")
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine
