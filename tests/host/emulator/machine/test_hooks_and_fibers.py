"""Tests of the switch between stacks, and of the on-disk cache of hooks."""

from __future__ import annotations

import re

import pytest

from gpu_pregel.errors import DeviceError
from gpu_pregel.host.emulator.machine import fibers, hooks, runtime


def test_hooks_are_loaded_from_the_cache() -> None:
    runtime.load_machine()
    copies = [hooks.Hook(f"{one.symbol}_copy", one.function, one.arguments) for one in hooks.HOOKS[:2]]
    for one in copies:
        hooks.compile_hook(one)
    assert all(callback.cache_hits == 1 for callback in hooks._COMPILED[-2:])


def test_other_processors_are_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(DeviceError, match="processor, not linux on riscv64"):
        fibers.load_fibers()


@pytest.mark.parametrize(
    "machine, registers",
    [
        ("x86_64", {"state": "%r12", "entry": "%r13", "exit": "%r14"}),
        ("aarch64", {"state": "x19", "entry": "x20", "exit": "x21", "start": "x30"}),
    ],
)
def test_frames_match_the_machine_code(machine: str, registers: dict[str, str]) -> None:
    code, frame = fibers._PROCESSORS[machine]
    restored = code.partition("{start}")[0]
    places = {name: 8 * place for place, name in enumerate(re.findall(r"popq (%r\w+)", restored))}
    for first, second, offset in re.findall(r"ldp (\w+), (\w+), \[sp, #(\d+)\]", restored):
        places |= {first: int(offset), second: int(offset) + 8}
    assert {name: places[register] // 8 for name, register in registers.items()} == {
        name: getattr(frame, name) for name in registers
    }
    assert frame.words == len(places) + (machine == "x86_64")
