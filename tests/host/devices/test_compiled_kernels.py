"""Tests of compiled CUDA kernels on disk: what equal kernels share, what an edit recompiles, and damaged entries."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba.cuda.compiler")


from gpu_pregel.host.devices import compiled_kernels, emulated, lowering
from gpu_pregel.host.devices.compiled_kernels import kernel_digest, stored
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.runtime import load_machine
from gpu_pregel.kernels.library import cache
from gpu_pregel.kernels.library.jit_cuda import Kernel

SOURCE = """
from numba import cuda, types
from gpu_pregel.kernels.library.jit_cuda import device, kernel

STEP = 3

@device
def addend(x):
    return x + STEP

def make(factor):
    def scale(values):
        i = cuda.grid(1)
        if i < len(values):
            values[i] = addend(values[i]) * factor
    return kernel(types.int64[::1])(scale)
"""


def made(source: str = SOURCE, factor: Any = 2) -> Kernel:
    """Execute a module and return the kernel that it makes."""
    namespace: dict[str, Any] = {"__name__": "module_of_a_user"}
    exec(compile(source, "module_of_a_user.py", "exec"), namespace)
    kernel: Kernel = namespace["make"](factor)
    return kernel


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr(cache, "cache_directory", lambda: str(tmp_path))
    return tmp_path


def test_equal_kernels_share_a_digest_and_edited_ones_do_not() -> None:
    expected = kernel_digest(made())
    assert expected is not None
    assert kernel_digest(made()) == expected
    edits = {
        "a callee": ("x + STEP", "x - STEP"),
        "a global": ("STEP = 3", "STEP = 4"),
        "the kernel": (") * factor", ") + factor"),
        "the signature": ("int64[", "uint64["),
        "the block": ("[::1])", "[::1], block=64)"),
        "an exemption": ("[::1])", "[::1], racy=('values',))"),
        "another exemption": ("[::1])", "[::1], relaxed=('values',))"),
        "the name": ("scale", "multiply"),
        "a line number": ("STEP = 3\n", "STEP = 3\n\n"),
        "a line number in the kernel": ("if i <", "\n        if i <"),
    }
    for edit, (old, new) in edits.items():
        assert old in SOURCE
        assert kernel_digest(made(SOURCE.replace(old, new))) not in (None, expected), edit
    assert kernel_digest(made(factor=5)) not in (None, expected)


def test_a_kernel_that_uses_unknown_objects_is_not_kept(folder: Path) -> None:
    kernel = made(factor=object())
    assert kernel_digest(kernel) is None
    assert [stored(kernel, "form", (), made) for made in (lambda: 1, lambda: 2)] == [1, 2]
    assert not list(folder.iterdir())


def counting(results: list[Any]) -> Callable[[], Any]:
    return lambda: results.pop(0)


def test_an_entry_depends_on_form_and_versions_and_is_replaced_if_damaged(folder: Path) -> None:
    results = list(range(10, 20))
    make = counting(results)
    assert [stored(made(), "ir", (1,), make) for _ in range(2)] == [10, 10]
    assert stored(made(), "ir", (2,), make) == 11
    assert stored(made(), "sm_90", (1,), make) == 12
    assert [stored(made(), "ir", (1,), make), stored(made(), "sm_90", (1,), make)] == [10, 12]
    for damage in (lambda content: content[:-1], lambda content: b"", lambda content: b"x" + content[1:]):
        for file in folder.iterdir():
            file.write_bytes(damage(file.read_bytes()))
        expected = results[0]
        assert [stored(made(), "ir", (1,), make) for _ in range(2)] == [expected, expected]
    # A write that was interrupted is no entry.
    for file in folder.iterdir():
        file.rename(f"{file}.tmp.0123456789abcdef")
    assert stored(made(), "ir", (1,), make) == results[0] - 1


def test_the_content_of_another_entry_is_not_used(folder: Path) -> None:
    make = counting(list(range(4)))
    assert [stored(made(), form, (1,), make) for form in ("ir", "sm_90")] == [0, 1]
    one, other = folder.iterdir()
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    assert [stored(made(), form, (1,), make) for form in ("ir", "sm_90")] == [2, 3]


def test_a_full_disk_keeps_no_part_of_an_entry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(source: str, target: str) -> None:
        assert list(folder.iterdir())  # a part of the entry
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        assert stored(made(), "ir", (1,), lambda: 5) == 5
    assert list(folder.iterdir()) == []


def test_equal_kernels_are_compiled_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered: list[Kernel] = []
    real = lowering.lower

    def lower(*arguments: Any, **options: Any) -> Any:
        lowered.append(arguments[0])
        return real(*arguments, **options)

    load_machine()
    monkeypatch.setattr(cache, "cache_directory", lambda: None)
    monkeypatch.setattr(compiled_kernels, "lower", lower)
    monkeypatch.setattr(emulated, "_compiled", {})
    device = EmulatedDevice()
    for _ in range(2):
        values = device.upload(np.arange(4))
        device.launch(made(), 4, values)
        assert values.get().tolist() == [6, 8, 10, 12]
    assert len(lowered) == 1


SCRIPT = """
import numpy as np
from gpu_pregel.host.devices import lowering
from gpu_pregel.host.devices.emulated import EmulatedDevice
lowered = []
real = lowering._code_library
lowering._code_library = lambda *arguments: lowered.append(1) or real(*arguments)
device = EmulatedDevice()
values = device.upload(np.arange(4))
device.launch(make(2), 4, values)
print(values.get().tolist(), len(lowered))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    # The kernel is new to the machine because its file is.
    script = tmp_path / "script.py"
    script.write_text(SOURCE + SCRIPT)
    outputs = []
    for _ in range(2):
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=300)
        outputs.append(done.stdout.strip())
    assert outputs == ["[6, 8, 10, 12] 1", "[6, 8, 10, 12] 0"]


def test_the_kernels_of_the_package_have_digests() -> None:
    from tests.kernels.test_ptx import all_kernels

    named = dict(all_kernels())
    assert len(named) > 70
    assert [name for name, kernel in named.items() if kernel_digest(kernel) is None] == []
