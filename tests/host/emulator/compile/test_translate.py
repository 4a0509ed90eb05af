"""Tests of the translation of Numba-CUDA's IR: pointers, names, shared memory and metadata."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import cuda, types
from numba.cuda import libdevicefuncs

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.devices.lowering import lower
from gpu_pregel.host.emulator.compile import device_library
from gpu_pregel.host.emulator.compile.ir_text import (
    closing,
    members,
    opaque,
    size_and_alignment,
    smallest_number,
    split,
    typed_value,
)
from gpu_pregel.host.emulator.compile.translate import SharedLayout, translate
from tests.host.emulator.launcher import SEEDS, compile_cached, fault_of, launch, memory, on_device

HEADER = 'target triple = "x86_64-unknown-linux-gnu"'


@pytest.mark.parametrize(
    "typed, expected",
    [
        ("  %x = load i32, i32* %p", "  %x = load i32, ptr %p"),
        ("  store i8** %a, i8*** %b", "  store ptr %a, ptr %b"),
        (
            '  %"x y" = getelementptr {i8*, [1 x i64], <{i8, i8*}>}, {i8*, [1 x i64], <{i8, i8*}>}* %"a*b", i32 0',
            '  %"x y" = getelementptr {ptr, [1 x i64], <{i8, ptr}>}, ptr %"a*b", i32 0',
        ),
        ("  %y = bitcast i32 addrspace(1)* %x to i8*", "  %y = bitcast ptr %x to ptr"),
        ("  %y = bitcast [4 x i32] addrspace(3)* %x to i8*", "  %y = bitcast ptr addrspace(3) %x to ptr"),
        (
            '@"f" = constant i8* bitcast (void (i8*, {i64, i32*})* @"_ZN*(i8*)" to i8*)',
            '@"f" = constant ptr bitcast (ptr @"_ZN*(i8*)" to ptr)',
        ),
        ("declare i32 (i8*, ...)* @f(void ()*, i32 (i32*)**)", "declare ptr @f(ptr, ptr)"),
        ('  call void @"g"(%"struct.a b"* %x, <4 x i32>* %y)', '  call void @"g"(ptr %x, ptr %y)'),
        (
            '@"_str" = internal addrspace(4) constant [3 x i8] c"a*\\00"',
            '@"_str" = internal  constant [3 x i8] c"a*\\00"',
        ),
        ("  %z = mul i32 %x, %y", "  %z = mul i32 %x, %y"),
    ],
)
def test_opaque_pointers(typed: str, expected: str) -> None:
    assert opaque(typed) == expected


def test_operands() -> None:
    assert split('i32 %a, {i32, i1} %"b,c", ptr getelementptr (i8, ptr @g, i64 4)') == [
        "i32 %a",
        '{i32, i1} %"b,c"',
        "ptr getelementptr (i8, ptr @g, i64 4)",
    ]
    assert split("") == []
    assert closing('(a, "(", [1])(', 0) == 12
    with pytest.raises(ValueError, match="unbalanced"):
        closing("(a", 0)
    assert typed_value("i64 range(i64 0, 5) noundef %x") == ("i64", "%x")
    assert typed_value("{ i32, i1 } %x") == ("{ i32, i1 }", "%x")


@pytest.mark.parametrize(
    "kind, expected",
    [
        ("i1", (1, 1)), ("i24", (4, 4)), ("double", (8, 8)), ("i8*", (8, 8)), ("[3 x i16]", (6, 2)),
        ("{i8, i32, i8}", (12, 4)), ("[2 x {i8, [3 x double]}]", (64, 8)),
    ],
)  # fmt: skip
def test_layout_of_types(kind: str, expected: tuple[int, int]) -> None:
    assert size_and_alignment(kind) == expected


def test_members_of_types() -> None:
    assert members("{i8, i32, [2 x i8]}") == [(0, "i8"), (4, "i32"), (8, "[2 x i8]")]
    assert members("[3 x i16]") == [(0, "i16"), (2, "i16"), (4, "i16")]
    assert smallest_number("[5 x {i64, [2 x i16]}]") == 2
    with pytest.raises(ValueError, match="label"):
        size_and_alignment("label")


def test_llvm_parses_the_modules() -> None:
    table = np.array([3, 1, 4, 1, 5], np.float32)

    @cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
    def helper(pair: Any, i: Any) -> Any:
        return pair[0][i] + table[i % 5]

    def kernel(pair: Any, out: Any) -> None:
        shared = cuda.shared.array((4, 8), types.complex64)
        i = cuda.grid(1)
        shared[i % 4, i // 4] = helper(pair, i)
        cuda.syncthreads()
        out[i] = shared[i % 4, i // 4].real

    array = types.float32[::1]
    lowered = lower(kernel, (types.UniTuple(array, 2), array))
    shared = SharedLayout()
    for text in lowered.modules:
        module = translate(text, lowered.entry, shared, HEADER)
        llvm.parse_assembly(module.text).verify()
        assert "*" not in module.text.replace("i8*", "").split("!0 =")[0].replace("array(", "")
    assert shared.size == 32 * 8
    assert shared.granule == 4

    x = on_device(np.arange(32, dtype=np.float32))
    out = memory.empty(32, np.float32)
    launch(kernel, (x, x), out)
    np.testing.assert_array_equal(out.get(), np.arange(32) + table[np.arange(32) % 5])


def test_a_shared_array_without_a_size_is_what_the_kernel_declares() -> None:
    def kernel(out: Any) -> None:
        flags = cuda.shared.array(3, types.int8)
        numbers = cuda.shared.array(0, types.int32)
        t = cuda.threadIdx.x
        if t < 3:
            flags[t] = t
        for k in range(t, len(numbers), 32):
            numbers[k] = k
        cuda.syncthreads()
        out[t] = numbers[len(numbers) - 1 - t] + flags[t % 3]

    for seed in SEEDS:
        out = memory.empty(32, np.int64)
        launch(kernel, out, seed=seed, dynamic_shared=64 << 10)
        assert out.get().tolist() == [(16 << 10) - 1 - t + t % 3 for t in range(32)]
    made = compile_cached(kernel, (types.int64[::1],), dynamic_shared=64 << 10)
    assert (made.shared_bytes, made.dynamic_shared) == (16 + (64 << 10), 64 << 10)
    with pytest.raises(EmulationError, match="104464 bytes of shared memory: the limit is 101376 per block"):
        launch(kernel, out, dynamic_shared=102 << 10)


def beyond_dynamic_shared(out: Any) -> None:
    numbers = cuda.shared.array(0, types.int32)
    t = cuda.threadIdx.x
    numbers[t + 1] = t  # fault
    cuda.syncwarp()
    out[t] = numbers[t + 1]


def test_a_write_past_the_end_of_dynamic_shared_memory() -> None:
    message = fault_of(beyond_dynamic_shared, memory.empty(32, np.int32), dynamic_shared=128)
    assert "past the end of its 128 bytes" in message
    launch(beyond_dynamic_shared, memory.empty(32, np.int32), dynamic_shared=132)


def test_shared_arrays_do_not_overlap() -> None:
    @cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
    def reversed_in_shared(value: Any) -> Any:
        own = cuda.shared.array(32, types.int64)
        t = cuda.threadIdx.x
        own[t] = value
        cuda.syncthreads()
        result = own[31 - t]
        cuda.syncthreads()
        return result

    def kernel(out: Any) -> None:
        flags = cuda.shared.array(3, types.int8)
        values = cuda.shared.array(32, types.float64)
        t = cuda.threadIdx.x
        if t < 3:
            flags[t] = t
        values[t] = t
        cuda.syncthreads()
        out[t] = reversed_in_shared(np.int64(t)) + reversed_in_shared(2 * t) + flags[t % 3] + values[31 - t]

    for seed in SEEDS:
        out = memory.empty(32, np.int64)
        launch(kernel, out, seed=seed)
        t = np.arange(32)
        assert out.get().tolist() == (4 * (31 - t) + t % 3).tolist()
    made = compile_cached(kernel, (types.int64[::1],))
    # Both calls of the function use the same array.
    assert made.shared_bytes == 8 + 32 * 8 + 32 * 8
    assert made.shared_granule == 1


def test_types_of_libdevice_functions() -> None:
    names = {"int16": "i16", "int32": "i32", "int64": "i64", "float32": "float", "float64": "double", "none": "void"}
    known = 0
    for name, (result, parameters) in libdevicefuncs.functions.items():
        text = device_library.definition(name)
        if text is None:
            continue
        known += 1
        module = llvm.parse_assembly(text)
        module.verify()
        function = module.get_function(name)
        kinds = [str(argument.type) for argument in function.arguments]
        assert kinds == ["ptr" if one.is_ptr else names[str(one.ty)] for one in parameters], name
        assert f"define weak_odr {names[str(result)]} @" in text, name
    assert known > 200
    assert device_library.definition("__nv_erfcinv") is None
    assert device_library.definition("vprintf") is None


def test_unsupported_libdevice_functions_raise() -> None:
    from numba.cuda import libdevice

    def kernel(out: Any) -> None:
        out[0] = libdevice.normcdf(out[0])

    with pytest.raises(EmulationError, match=r"kernel kernel, test_translate.py line \d+: uses __nv_normcdf"):
        launch(kernel, on_device([0.5]), block=1)
