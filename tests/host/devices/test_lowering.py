"""Tests of lowering to LLVM IR without a GPU, and to PTX where NVIDIA's compiler is installed."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba.cuda.compiler")

import numba
from numba import cuda, types
from numba.cuda import dispatcher, target
from numba.cuda.cudadrv import nvvm

from gpu_pregel.errors import MissingPackageError
from gpu_pregel.host.devices import lowering
from gpu_pregel.host.devices.lowering import lower
from tests.kernels.ptx import to_ptx

ARRAY = types.float64[::1]


@cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
def twice(x: Any) -> Any:
    return x + x


@cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
def four_times(x: Any) -> Any:
    return twice(twice(x))


def kernel(values: Any, n: Any) -> None:
    i = cuda.grid(1)
    if i < n:
        values[i] = four_times(values[i]) + twice(values[i])


def test_each_module_is_returned_once() -> None:
    lowered = lower(kernel, (ARRAY, types.int64))
    assert len(lowered.modules) == 3
    assert f'define void @"{lowered.entry}"(' in lowered.modules[0]
    assert sum("define linkonce_odr" in text for text in lowered.modules) == 2


def test_patches_are_undone() -> None:
    def patched() -> list[Any]:
        return [
            dispatcher.get_current_device,
            nvvm.NVVM,
            target.CUDADIBuilder,
            numba.cuda.lowering.get_func_def_lineno,
        ]

    before = patched()
    lower(kernel, (ARRAY, types.int32))
    assert patched() == before
    with pytest.raises(Exception, match="nonsense"):
        lower(lambda values: values.nonsense, (ARRAY,))
    assert patched() == before


def test_other_threads_get_the_real_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: "real device")
    devices: list[Any] = []
    with lowering._fixed_capability((7, 5)):
        thread = threading.Thread(target=lambda: devices.append(dispatcher.get_current_device()))
        thread.start()
        thread.join()
        assert dispatcher.get_current_device().compute_capability == (7, 5)
    assert devices == ["real device"]
    assert dispatcher.get_current_device() == "real device"


def test_without_libnvvm(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise RuntimeError("libnvvm.so cannot be found")

    expected = lower(kernel, (ARRAY, types.uint8))
    monkeypatch.setattr(nvvm, "NVVM", missing)
    lowered = lower(kernel, (ARRAY, types.uint8))
    assert nvvm.NVVM is missing
    assert len(lowered.modules) == len(expected.modules)


def test_without_numba_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    with pytest.raises(
        MissingPackageError,
        match=r"compiling CUDA kernels needs the package numba_cuda: pip install gpu-pregel\[emulated\]",
    ):
        lower(kernel, (ARRAY, types.int64))


def test_importing_the_package_does_not_import_numba_cuda() -> None:
    code = "import sys, gpu_pregel, gpu_pregel.host.devices.lowering; print('numba.cuda' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_functions_without_source_have_line_numbers() -> None:
    names: dict[str, Any] = {"twice": cuda.jit(device=True, lineinfo=True)(lambda x: x + x)}
    exec(compile("def k(values):\n\n    values[0] = twice(values[1])", "<prompt>", "exec"), names)
    text = lower(names["k"], (ARRAY,)).modules[0]
    assert 'filename: "<prompt>"' in text
    assert "DILocation(column: 1, line: 3," in text


@pytest.mark.nvidia
@pytest.mark.parametrize("cc", [(7, 5), (8, 0), (9, 0)])
def test_ptx(cc: tuple[int, int]) -> None:
    text = to_ptx(kernel, (ARRAY, types.int64), cc)
    assert f".target sm_{cc[0]}{cc[1]}" in text
    assert ".visible .entry" in text
    limited = to_ptx(kernel, (ARRAY, types.int64), cc, max_registers=40)
    assert ")\n.maxnreg 40\n{" in limited
    assert "div.rn" in to_ptx(_divides, (types.float32[::1],), cc)


def _divides(values: Any) -> None:
    values[0] = values[1] / values[2] + np.float32(1)
