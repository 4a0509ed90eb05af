"""Tests of kernels that the emulated device cannot compile: the error names the kernel, the line and the feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpu_pregel.errors import EmulationError
from tests.host.emulator.launcher import launch, line_of, on_device


@intrinsic  # type: ignore[untyped-decorator]
def read_clock(typingctx: Any) -> Any:
    """Read the GPU's clock, which the emulated device does not have."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(64), [])
        return builder.call(
            cuda.cgutils.get_or_insert_function(builder.module, function, "llvm.nvvm.read.ptx.sreg.clock64"), []
        )

    return types.int64(), codegen


def reads_the_clock(out: Any) -> None:
    out[0] = read_clock()  # fault


def prints(out: Any) -> None:
    print(out[0])  # fault


@intrinsic  # type: ignore[untyped-decorator]
def multiprocessor_id(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        return builder.call(ir.InlineAsm(function, "mov.u32 $0, %smid;", "=r", side_effect=True), [])

    return types.int32(), codegen


def asks_its_multiprocessor(out: Any) -> None:
    out[0] = multiprocessor_id()  # fault


def shared_of_any_size(out: Any) -> None:
    shared = cuda.shared.array(0, types.int32)  # fault
    out[0] = shared[0]


@cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
def factorial(n: Any) -> Any:
    if n < 2:
        return 1
    return n * factorial(n - 1)


def recurses(out: Any) -> None:
    out[0] = factorial(out[0])  # fault


def waits_for_a_plain_load(out: Any) -> None:
    while out[0] == 0:  # fault
        pass


@pytest.mark.parametrize(
    "kernel, what",
    [
        (reads_the_clock, r"uses llvm\.nvvm\.read\.ptx\.sreg\.clock64, which the emulated device does not support"),
        (prints, "uses vprintf"),
        (
            asks_its_multiprocessor,
            "uses the inline assembly 'mov.u32 .0, %smid;', which the emulated device does not support",
        ),
        (shared_of_any_size, "shared array without a size: declare its kernel's dynamic_shared"),
        (recurses, "function factorial is recursive, which the emulated device does not support"),
        (waits_for_a_plain_load, "infinite loop: its condition is loaded only once"),
    ],
)
def test_unsupported_features_raise(kernel: Any, what: str) -> None:
    line = line_of(kernel)
    with pytest.raises(EmulationError, match=rf"^kernel {kernel.__name__}, \S+ line {line}: {what}"):
        launch(kernel, on_device([0], np.int64), block=1)
