"""Tests of the available memory and of the check against it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices import memory
from gpu_pregel.host.devices.memory import available_memory, format_bytes, require_memory


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (3 << 30, "3.0 GiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_format_bytes(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_available_memory_of_this_machine() -> None:
    available = available_memory()
    assert available is not None
    assert available > 1 << 20
    require_memory(1, "nothing much")


def test_the_minimum_of_machine_and_control_group_applies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_machine_memory", lambda: 100 << 20)
    monkeypatch.setattr(memory, "_control_group_memory", lambda: 40 << 20)
    assert available_memory() == 40 << 20
    require_memory(40 << 20, "work")
    with pytest.raises(NotEnoughMemoryError, match=r"work needs 41\.0 MiB of memory, but only 40\.0 MiB are available"):
        require_memory(41 << 20, "work")
    monkeypatch.setattr(memory, "_control_group_memory", lambda: None)
    assert available_memory() == 100 << 20


def test_a_mebibyte_is_there_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []

    def look() -> int:
        looks.append(0)
        return 10

    monkeypatch.setattr(memory, "available_memory", look)
    require_memory(1 << 20, "work")
    assert not looks
    with pytest.raises(NotEnoughMemoryError):
        require_memory((1 << 20) + 1, "work")
    assert looks


def test_the_page_cache_of_a_control_group_counts_as_available(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/job\n")
    (tmp_path / "job").mkdir()
    monkeypatch.setattr(memory, "_CONTROL_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_OWN_CONTROL_GROUP", tmp_path / "cgroup")
    assert memory._control_group_memory() is None
    (tmp_path / "job" / "memory.max").write_text("1000\n")
    (tmp_path / "job" / "memory.current").write_text("900\n")
    assert memory._control_group_memory() == 100
    (tmp_path / "job" / "memory.stat").write_text("anon 300\nfile 600\nactive_file 400\ninactive_file 150\n")
    assert memory._control_group_memory() == 650
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5000\n")
    assert memory._control_group_memory() == 650


def test_the_error_is_also_a_memory_error() -> None:
    assert issubclass(NotEnoughMemoryError, MemoryError)
