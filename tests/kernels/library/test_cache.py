"""Tests of the cache of compiled code: what is recompiled after an edit, where it is stored, and how it is bounded."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba import types
from numba.core import ccallback

import gpu_pregel
from gpu_pregel.kernels.library import cache
from gpu_pregel.kernels.library.fingerprint import Fingerprint
from gpu_pregel.kernels.library.jit_cpu import jit
from tests.devices import EXHAUSTIVE

COUNTING = """
from numba.core import event
from gpu_pregel.kernels.library.cache import KernelCache

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        if isinstance(event.data["dispatcher"]._cache, KernelCache):
            compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass

with event.install_listener("numba:compile", Listener()):
    import gpu_pregel as gp
    print(gp.connected_components(gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4]), device="cpu").labels.tolist())
print(*sorted(compiled))
"""
LABELS = "[0, 0, 0, 3, 3]"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package whose kernels may be edited; those of a component search are in its cache."""
    target = tmp_path_factory.mktemp("copy") / "gpu_pregel"
    shutil.copytree(Path(gpu_pregel.__file__).parent, target, ignore=shutil.ignore_patterns("__pycache__"))
    everything = search_components(target)
    assert {"count_buckets", "sort_buckets", "initialise", "link_sampled", "compress", "link_rest"} <= set(everything)
    assert len(everything) == len(set(everything))
    return target


def search_components(package: Path, **environment: str) -> list[str]:
    """Run a component search in a new process and return the kernels that it compiled."""
    left_out = ("NUMBA_CACHE_DIR", "PYTHONPATH", "XDG_CACHE_HOME")
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    found = subprocess.run(
        [sys.executable, "-c", COUNTING],
        cwd=package.parent,
        env={**inherited, "PYTHONPATH": str(package.parent), "HOME": str(package.parent), **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout.splitlines()
    assert found[0] == LABELS
    return found[1].split()


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_an_edit_recompiles_the_edited_kernel_and_its_callers_alone(package: Path) -> None:
    assert search_components(package) == []
    kernels = package / "kernels/algorithms/components_cpu.py"
    edit(kernels, "        high = max(p, q)\n", "        high = max(q, p)\n")
    assert search_components(package) == ["link_rest", "link_sampled"]
    edit(kernels, "    skipped = largest[0]\n", "    skipped = labels[largest[0]]\n")
    # A helper in another file, of the kernels and of nothing else.
    edit(package / "kernels/library/hash_cpu.py", "    x = np.uint64(x)\n", "    x = np.uint64(x) + np.uint64(0)\n")
    assert search_components(package) == ["estimate_largest", "link_rest"]
    assert search_components(package) == []


KERNELS = """
import sys

from gpu_pregel.kernels.library.jit_cpu import device, jit_program

steps = [f"    total = total * {i} - v if total % {i} == {i % 5} else total - (v ^ {i * 37})\\n" for i in range(7, 70)]
names = {}
body = f"    total = v\\n{''.join(steps)}    return last if v > 0 else total\\n"
exec(f"def make(last):\\n  def step(v):\\n{body}  return step\\n", names)


def make(step):
    def kernel(v):
        return step(v) + step(v + 1) - step(v + 2)

    return kernel


print([int(jit_program(make(device(names["make"](int(last)))))(5)) for last in sys.argv[1]])
"""
"""Kernels that call a function of one name, too long to become part of them, with a constant from the command line."""


def test_functions_of_one_name_compiled_by_different_processes_stay_apart(tmp_path: Path) -> None:
    """A linker that finds two functions of a name keeps the first."""

    def run(numbers: str) -> str:
        command = [sys.executable, "-c", KERNELS, numbers]
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout

    expected = {"3": "[3]", "4": "[4]", "34": "[3, 4]", **({"43": "[4, 3]"} if EXHAUSTIVE else {})}
    assert {one: run(one).strip() for one in expected} == expected


def test_comments_and_line_numbers_recompile_nothing(package: Path) -> None:
    kernels = package / "kernels/algorithms/components_cpu.py"
    edit(kernels, "\n\n@inline\ndef _link", "\n\n# A comment.\n\n\n@inline\ndef _link")
    assert search_components(package) == []


def test_nothing_is_written_into_the_package(package: Path) -> None:
    """Files that an installer does not know would keep an uninstalled package importable."""
    assert {file.suffix for file in package.rglob("*") if file.is_file()} <= {
        ".py",
        ".pyc",
        ".typed",
        ".css",
        ".html",
        ".js",
        ".json",
        ".png",
    }
    assert list((package.parent / ".cache/gpu_pregel").glob("*.nbi"))


def test_the_cache_may_be_placed_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locate = cache.cache_directory.__wrapped__
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert locate() == str(tmp_path / "home/.cache/gpu_pregel")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert locate() == str(tmp_path / "xdg/gpu_pregel")
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "numba"))
    assert locate() == str(tmp_path / "numba/gpu_pregel")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "file"))
    assert locate() is None


def test_kernels_work_where_no_cache_can_be_written(package: Path, tmp_path: Path) -> None:
    # A file is in the place of the folder; this stops root too.
    (tmp_path / "home").write_text("in the way")
    blocked = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    assert search_components(package, **blocked)


def test_all_kernels_and_hooks_have_complete_digests() -> None:
    from importlib import import_module
    from pkgutil import walk_packages

    from gpu_pregel import kernels
    from gpu_pregel.host.emulator.machine import hooks, runtime

    functions = []
    for module in walk_packages(kernels.__path__, f"{kernels.__name__}."):
        if module.name.endswith("_cpu"):
            declared = vars(import_module(module.name)).values()
            kernels_of_module = [one for one in declared if isinstance(getattr(one, "_cache", None), cache.KernelCache)]
            # One kernel may call another that its module imports.
            functions += [one.py_func for one in kernels_of_module if one.py_func.__module__ == module.name]
    runtime.load_machine()
    functions += [one.function for one in hooks.HOOKS]
    assert len(functions) > 30
    digests = set()
    for function in functions:
        fingerprint = Fingerprint(with_package=True)
        fingerprint.add(function)
        assert fingerprint.is_complete, (function, fingerprint.unknown)
        digests.add(fingerprint.hexdigest())
    assert len(digests) == len(functions)


@pytest.fixture
def write(folder: Path) -> Callable[[str, int, float], None]:
    """Write an entry of a name, a size and an age in seconds."""

    def write(name: str, size: int, age: float) -> None:
        for suffix, part in ((".nbi", size // 2), (".1.nbc", size - size // 2)):
            file = folder / f"{name}-{64 * '0'}{suffix}"
            file.write_bytes(bytes(part))
            os.utime(file, (time.time() - age,) * 2)

    return write


def names(folder: Path) -> set[str]:
    return {file.name.partition("-")[0] for file in folder.iterdir()}


def test_the_least_recently_used_entries_are_deleted(
    folder: Path, write: Callable[[str, int, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "250")
    for name, age in (("oldest", 9000), ("used", 8000), ("middle", 7000), ("newest", 6000)):
        write(name, 100, age)
    # A load sets the time of the index.
    os.utime(folder / f"used-{64 * '0'}.nbi")
    assert cache.cache_size() == 400
    cache.trim_cache()
    assert names(folder) == {"used", "newest"}
    assert cache.cache_size() == 200
    cache.trim_cache()
    assert names(folder) == {"used", "newest"}


def test_saving_many_entries_reads_the_folder_once_a_minute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    trims: list[float] = []
    monkeypatch.setattr(cache, "_last_trim", -float("inf"))
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(cache, "trim_cache", lambda: trims.append(now[0]))
    for now[0] in (1000.0, 1001.0, 1059.9, 1060.0, 1100.0, 1120.5):
        cache.save_value("value-" + "0" * 64, 1)
    assert trims == [1000.0, 1060.0, 1120.5]


def test_entries_just_written_are_kept_beyond_the_limit(
    folder: Path, write: Callable[[str, int, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "0")
    write("own", 100, 0)
    write("others", 100, 30)
    write("old", 100, 90)
    cache.trim_cache()
    assert names(folder) == {"own", "others"}


def test_clearing_the_cache_keeps_other_files(folder: Path, write: Callable[[str, int, float], None]) -> None:
    write("kernel", 100, 0)
    cache.save_value(f"program-{64 * 'a'}", {"delta": 1})
    (folder / f"push-{64 * 'b'}.nbi.tmp.0123456789abcdef").write_bytes(bytes(10))
    for name in ("notes.txt", "kernel.nbi", "program-short.json"):
        (folder / name).write_text("of the user")
    assert cache.load_value(f"program-{64 * 'a'}") == {"delta": 1}
    saved = (folder / f"program-{64 * 'a'}.value").stat().st_size
    assert cache.clear_cache() == 110 + saved
    assert {file.name for file in folder.iterdir()} == {"notes.txt", "kernel.nbi", "program-short.json"}
    assert cache.load_value(f"program-{64 * 'a'}") is None


def test_files_deleted_by_another_process_are_no_error(
    folder: Path, write: Callable[[str, int, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("kernel", 100, 9000)
    entries = cache._entries()
    for file in folder.iterdir():
        file.unlink()
    monkeypatch.setattr(cache, "_entries", lambda: entries)
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "0")
    cache.trim_cache()
    assert cache.clear_cache() == 100


def add_one(x: Any) -> Any:
    return x + 1


def times_compiled(*arguments: float) -> int:
    """Call a kernel as a new process would, and return how often it was compiled."""
    kernel: Any = jit(add_one)
    for argument in arguments:
        result = kernel(argument)
        assert (result, type(result)) == (argument + 1, type(argument))
    return sum(kernel.stats.cache_misses.values())


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", pickle.dumps(numba.__version__) + pickle.dumps(("", []))],
    ids=["empty", "garbage", "other"],
)
@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_a_damaged_file_is_replaced(folder: Path, suffix: str, content: bytes) -> None:
    assert times_compiled(1) == 1
    (file,) = folder.glob(f"*.{suffix}")
    file.write_bytes(content)
    assert times_compiled(1) == 1
    assert times_compiled(1) == 0


def test_altered_code_is_not_called(folder: Path) -> None:
    assert times_compiled(1) == 1
    (file,) = folder.glob("*.nbc")
    content = bytearray(file.read_bytes())
    for position in range(len(content) // 4, len(content), len(content) // 4):
        content[position] ^= 1
        file.write_bytes(content)
        assert times_compiled(1) == 1
        content[:] = file.read_bytes()


def test_code_for_other_arguments_is_not_called(folder: Path) -> None:
    """Two processes that write at once may choose the same file for different signatures."""
    assert times_compiled(1, 1.5) == 2
    one, two = sorted(folder.glob("*.nbc"))
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    assert times_compiled(1, 1.5) == 2
    assert times_compiled(1, 1.5) == 0


def test_c_functions_are_loaded_from_the_cache(folder: Path) -> None:
    for hits in (0, 1):
        callback: Any = ccallback.CFunc(add_one, ((types.int64,), types.int64), {}, {"nopython": True})
        callback._cache = cache.KernelCache(add_one, {})
        callback.compile()
        assert callback.cache_hits == hits


def test_entries_of_another_user_are_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    assert times_compiled(1) == 1
    monkeypatch.setattr(os, "utime", refuse)
    assert times_compiled(1) == 0
    cache.save_value(f"program-{64 * 'a'}", {"delta": 1})
    assert cache.load_value(f"program-{64 * 'a'}") == {"delta": 1}


def test_a_folder_that_cannot_be_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "cache_directory", cache.cache_directory.__wrapped__)
    assert times_compiled(1) == 1
    assert cache.is_writable()
    # No permission stops the user "root".
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    monkeypatch.setattr(cache, "_replacing", refuse)
    assert not cache.is_writable()
    assert cache.cache_directory() == str(tmp_path / "gpu_pregel")
    assert [times_compiled(1), times_compiled(1.5), times_compiled(1.5)] == [0, 1, 1]


def test_what_is_cached_is_counted_by_kind(folder: Path, write: Callable[[str, int, float], None]) -> None:
    digest = 64 * "0"
    write("kernel", 100, 9000)
    (folder / f"kernel-{digest}.2.nbc").write_bytes(bytes(10))
    (folder / f"push-sm_90-{digest}.value").write_bytes(bytes(20))
    (folder / f"pull-sm_90-{digest}.value").write_bytes(bytes(30))
    (folder / f"pull-ir-{digest}.value").write_bytes(bytes(40))
    (folder / f"checks-{digest}.value").write_bytes(bytes(5))
    assert cache.cached_kernels() == {"cpu": (2, 110), "sm_90": (2, 50), "ir": (1, 40), "other": (1, 5)}


def test_loading_and_saving_is_recorded(folder: Path) -> None:
    name = f"program-{64 * 'a'}"
    with cache.recorded_use() as first:
        assert times_compiled(1) == 1
        cache.save_value(name, 1)
    with cache.recorded_use() as second:
        assert times_compiled(1) == 0
        assert cache.load_value(name) == 1
    assert first.saved == second.loaded == {f"{name}.value", *(file.name for file in folder.glob("*.nbc"))}
    assert first.loaded == second.saved == set()


def test_without_a_home_there_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user without an account
    monkeypatch.chdir(tmp_path)
    assert cache.cache_directory.__wrapped__() is None
    assert list(tmp_path.iterdir()) == []


def test_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cache.LIMIT_VARIABLE, raising=False)
    assert cache.cache_limit() == 256 * 1024 * 1024
    monkeypatch.setenv(cache.LIMIT_VARIABLE, " 1000 ")
    assert cache.cache_limit() == 1000
    for text in ("1 GB", "-1", "1.5"):
        monkeypatch.setenv(cache.LIMIT_VARIABLE, text)
        with pytest.raises(
            ValueError, match="GPU_PREGEL_CACHE_BYTES must be a number of bytes, such as 268435456, not"
        ):
            cache.cache_limit()
