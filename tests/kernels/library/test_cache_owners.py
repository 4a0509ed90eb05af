"""Tests of whose files the cache of compiled code reads: its user's, or root's, and nobody else's."""

from __future__ import annotations

import os
import pickle
import pwd
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.kernels.library import cache
from tests.kernels.library.test_cache import times_compiled


class Forged:
    """An object whose unpickling writes a file."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.write_text, (self.trace, "ran")


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a file or folder another user's."""

    def give_away(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 65533)

    return give_away


NAME = f"program-{64 * 'a'}"


def forge_value(folder: Path, trace: Path) -> Path:
    """Write what ``save_value`` would, but for its content."""
    file = folder / f"{NAME}.value"
    file.write_bytes(cache._sealed(pickle.dumps(Forged(trace)), NAME))
    file.chmod(0o644)
    return file


def forge_index(folder: Path, trace: Path) -> Path:
    """Write an index as Numba's own class does, with a version that runs code."""
    assert times_compiled(1) == 1
    (file,) = folder.glob("*.nbi")
    content = pickle.dumps(Forged(trace))
    file.write_bytes(cache._sealed(content, file.name))
    return file


@pytest.mark.parametrize("forge", [forge_value, forge_index])
def test_the_file_of_another_user_is_not_read(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, give_away: Callable[[Path], None], forge: Any
) -> None:
    trace = tmp_path_factory.mktemp("trace") / "trace"
    file = forge(folder, trace)
    give_away(file)
    assert cache.load_value(NAME) is None
    assert times_compiled(1) == 1
    assert not trace.exists()


def test_a_file_that_others_can_write_is_not_read(folder: Path) -> None:
    cache.save_value(NAME, 1)
    file = folder / f"{NAME}.value"
    assert file.stat().st_mode & 0o022 == 0
    for mode in (0o664, 0o646):
        file.chmod(mode)
        assert cache.load_value(NAME) is None
    cache.save_value(NAME, 2)
    assert cache.load_value(NAME) == 2


def test_links_and_pipes_are_not_read(folder: Path) -> None:
    cache.save_value(NAME, 1)
    file, other = folder / f"{NAME}.value", folder / "other"
    file.rename(other)
    file.symlink_to(other)
    assert cache.load_value(NAME) is None
    file.unlink()
    os.mkfifo(file)
    assert cache.load_value(NAME) is None


def test_a_file_copied_over_another_is_not_read(folder: Path) -> None:
    """A file of the right owner with the wrong name: an entry of other code, which would crash the process."""
    cache.save_value(NAME, 1)
    cache.save_value(f"other-{64 * 'a'}", 2)
    (folder / f"other-{64 * 'a'}.value").replace(folder / f"{NAME}.value")
    assert cache.load_value(NAME) is None
    assert times_compiled(1, 1.5) == 2
    kernel = next(folder.glob("*.1.nbc"))
    kernel.write_bytes(next(folder.glob("*.2.nbc")).read_bytes())
    assert times_compiled(1) == 1


@pytest.fixture
def locate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str | None]:
    """Look for the folder anew, in the folder ``shared`` and with the home ``home``."""
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "shared"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    entry = pwd.getpwuid(os.geteuid())
    changed = pwd.struct_passwd((*entry[:5], str(tmp_path / "home"), entry[6]))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: changed)
    return cache.cache_directory.__wrapped__


def test_the_folder_of_another_user_is_replaced(
    tmp_path: Path, locate: Callable[[], str | None], give_away: Callable[[Path], None]
) -> None:
    (tmp_path / "shared/gpu_pregel").mkdir()
    give_away(tmp_path / "shared/gpu_pregel")
    private = str(tmp_path / "home/.cache/gpu_pregel")
    if os.geteuid() == 0:
        with pytest.warns(RuntimeWarning, match=r"shared/gpu_pregel belongs to another user \(id 65534\).*is used"):
            assert locate() == private
    else:  # every folder here is another user's
        with pytest.warns(RuntimeWarning, match="belongs to another user.*compiled in every process instead"):
            assert locate() is None


def test_a_link_to_a_folder_is_replaced(tmp_path: Path, locate: Callable[[], str | None]) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "shared/gpu_pregel").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "home").write_text("in the way")
    with pytest.warns(RuntimeWarning, match="is a symbolic link.*set NUMBA_CACHE_DIR"):
        assert locate() == str(tmp_path / f"temporary/gpu_pregel-{os.geteuid()}")


def test_a_folder_that_others_could_write_is_closed(tmp_path: Path, locate: Callable[[], str | None]) -> None:
    folder = tmp_path / "shared/gpu_pregel"
    folder.mkdir()
    folder.chmod(0o777)
    assert locate() == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_folder_that_can_only_be_read_is_used(
    tmp_path: Path, locate: Callable[[], str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an image of a container that root has filled."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert locate() is None
    (tmp_path / "shared/gpu_pregel" / f"{NAME}.value").write_text("an entry")
    assert locate() == str(tmp_path / "shared/gpu_pregel")
