"""Tests of ``gpu-pregel warm``: what it compiles, that later processes compile nothing, and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms import _sample_calls
from gpu_pregel.algorithms.registry import ALGORITHMS, algorithm
from gpu_pregel.cli import _warm_record, main, warm
from gpu_pregel.errors import DeviceError
from gpu_pregel.kernels.library import cache
from gpu_pregel.kernels.traverse.pairs_cuda import PIECE
from tests.devices import LONG

FEW_KINDS = "from gpu_pregel.algorithms import _sample_calls; _sample_calls.WEIGHTS = (None,)\n"
COMMAND = "import sys; from gpu_pregel.cli import main; sys.exit(main(sys.argv[1:]))"
CALLS = """
import gpu_pregel as gp
from gpu_pregel.cli import main

for arguments in ("bfs -g 12 -r 0", "toposort -f path.el --directed"):
    if arguments.split()[0] in {commands}:
        assert main([*arguments.split(), "--device", "cpu"]) == 0
for graph in (gp.grid(3, 3), gp.kronecker(10), gp.kronecker(13)):
    for threads in (1, 2, None):
        gp.bfs(graph, 0, device="cpu", threads=threads)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr(cache, "cache_directory", lambda: str(tmp_path))
    return tmp_path


def in_process(code: str, *arguments: str, parent: Path) -> tuple[str, str]:
    """Run code in a new process whose cache is in ``parent``; return what it prints to stdout and stderr."""
    path = str(Path(gp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(parent), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def kernels(parent: Path) -> set[str]:
    return {file.name for file in (parent / "gpu_pregel").glob("*.nbc")}


@pytest.mark.parametrize("commands", [["bfs"], pytest.param(["bfs", "toposort"], marks=LONG)], ids=" ".join)
def test_later_processes_compile_nothing(tmp_path: Path, commands: list[str]) -> None:
    out, err = in_process(FEW_KINDS + COMMAND, "warm", *commands, "--json", parent=tmp_path)
    (counts,) = json.loads(out)["targets"]
    compiled = kernels(tmp_path)
    assert counts["algorithms"] == commands
    assert (counts["compiled"], counts["already_cached"]) == (len(compiled), 0)
    assert len(compiled) > 10
    for label in ("warm", "compiled", "cache"):
        assert f"\n{label} " in f"\n{err}"

    path = tmp_path / "path.el"
    path.write_text("0 1\n1 2\n")
    in_process(CALLS.replace("path.el", str(path)).replace("{commands}", str(commands)), parent=tmp_path)
    assert kernels(tmp_path) == compiled

    out, err = in_process(FEW_KINDS + COMMAND, "warm", *commands[::-1], "--json", parent=tmp_path)
    (counts,) = json.loads(out)["targets"]
    assert (counts["compiled"], counts["already_cached"]) == (0, len(compiled))
    assert "nothing for the CPU" in err
    out, _ = in_process(COMMAND, "info", "--json", parent=tmp_path)
    facts = json.loads(out)
    assert facts["warmed"] == {"cpu": " ".join(commands)}
    assert facts["cached kernels"]["cpu"].startswith(f"{len(compiled)} of ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pagerang"], "unknown algorithm 'pagerang': did you mean 'pagerank'? algorithms: cc, bfs, "),
        (["cc", "xyzzy"], "unknown algorithm 'xyzzy': algorithms: cc, bfs, "),
        (["--device", "emulated"], "the devices 'cpu', 'cuda' and 'cuda:N', not 'emulated'"),
        (["--device", "auto"], "not 'auto'"),
        (["--compute-capability", "9.0"], "--compute-capability applies only to --device cuda"),
        (["--device", "cuda", "--compute-capability", "nine"], "'nine' is not of the form X.Y, such as 9.0"),
        (["--device", "cuda", "--compute-capability", "9.0,5.2"], "--compute-capability 5.2: at least 7.0 is required"),
    ],
)
def test_invalid_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["warm", *arguments])
    except SystemExit as error:
        status = cast(int, error.code)
    assert status == 2
    assert message in capsys.readouterr().err


def test_without_a_gpu_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise DeviceError("device 'cuda:0' cannot be used: there is none")

    monkeypatch.setattr("gpu_pregel.host.devices.get_device", refuse)
    assert main(["warm", "cc", "--device", "cuda"]) == 2
    assert "there is none; without a GPU, as in docker build, name" in capsys.readouterr().err


@pytest.mark.parametrize("writable", [False, None])
def test_a_cache_that_cannot_be_written_is_an_error_before_any_work(
    writable: bool | None, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if writable is None:
        monkeypatch.setattr(cache, "cache_directory", lambda: None)
    monkeypatch.setattr(cache, "is_writable", lambda: False)
    monkeypatch.setattr(warm, "_warm", lambda *_: pytest.fail("work began"))
    assert main(["warm", "cc"]) == 1
    where = "" if writable is None else f" in {folder}"
    message = f"the cache of compiled kernels{where} cannot be written: set NUMBA_CACHE_DIR to a folder that"
    assert message in capsys.readouterr().err


def test_after_ctrl_c_what_was_complete_is_not_repeated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[str] = []
    is_interrupted = True

    def calls(_: object, entry: Any) -> Iterator[None]:
        called.append(entry.command)
        if entry.command == "sssp" and is_interrupted:
            raise KeyboardInterrupt
        yield

    monkeypatch.setattr(_sample_calls, "make_graphs", lambda *_: iter(()))
    monkeypatch.setattr(warm, "_calls", calls)
    assert main(["warm", "cc", "bfs", "sssp"]) == 130
    assert capsys.readouterr().err == "gpu-pregel: interrupted\n"
    assert called == ["cc", "bfs", "sssp"]
    is_interrupted = False
    assert main(["warm"]) == 0
    assert called[3:] == [entry.command for entry in ALGORITHMS if entry.command not in ("cc", "bfs")]
    called.clear()
    assert main(["warm"]) == 0
    assert called == []


def info(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["info", "--json"]) == 0
    return cast(dict[str, Any], json.loads(capsys.readouterr().out))


def test_info_says_what_is_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = 64 * "0"
    assert info(capsys)["cached kernels"] == {}
    assert info(capsys)["warmed"] == {"cpu": "none"}
    for name, size in (("kernel", "nbi"), 24), (("kernel", "1.nbc"), 1000), (("push-sm_90", "value"), 2048):
        (folder / f"{name[0]}-{digest}.{name[1]}").write_bytes(bytes(size))
    _warm_record.save_record("cpu", ["graphs", "cc", "bfs"], [f"kernel-{digest}.1.nbc"])
    _warm_record.save_record("sm_90", [entry.command for entry in ALGORITHMS], [f"push-sm_90-{digest}.value"])
    gpu = "cuda (compute capability 9.0)"
    assert info(capsys)["cached kernels"] == {"cpu": "1 of 1.0 KiB", gpu: "1 of 2.0 KiB"}
    assert info(capsys)["warmed"] == {"cpu": "cc bfs", gpu: "all algorithms"}
    (folder / f"kernel-{digest}.1.nbc").unlink()
    assert info(capsys)["warmed"]["cpu"] == "incomplete: 1 kernels have been deleted since gpu-pregel warm"
    monkeypatch.setattr(_warm_record, "__version__", "another")
    assert info(capsys)["warmed"] == {"cpu": "none", gpu: "none"}


@pytest.mark.parametrize("name", ["cc", "toposort", "tc", "mis", "walks"])
def test_samples_are_graphs_that_the_algorithm_accepts(name: str) -> None:
    (entry,) = [entry for entry in ALGORITHMS if entry.command == name]
    kinds = {
        (graph.is_directed, None if graph.weights is None else str(graph.weights.dtype))
        for graph in _sample_calls.graphs(entry, large=False)
    }
    directions = {"cc": (False, True), "walks": (False, True), "toposort": (True,)}.get(name, (False,))
    assert kinds == {(directed, dtype) for directed in directions for dtype in _sample_calls.WEIGHTS}


def test_a_pair_of_a_sample_for_gpus_has_pieces() -> None:
    shorter = []
    for graph in _sample_calls.graphs(algorithm("jaccard"), large=False):
        degrees = graph.simplify(combine="min").out_degrees
        first, second, _ = graph.to_edgelist()
        shorter.append(int(np.minimum(degrees[first], degrees[second]).max()))
    assert sum(length > PIECE for length in shorter) == len(_sample_calls.WEIGHTS)


def test_each_value_that_chooses_kernels_is_passed() -> None:
    graph = gp.grid(3, 3)
    assert list(_sample_calls.arguments(algorithm("connected_components"), graph)) == [
        {},
        {"method": "afforest"},
        {"method": "propagation"},
    ]
    walks = {"starts": [0, 1], "length": 8}
    assert list(_sample_calls.arguments(algorithm("random_walks"), graph)) == [
        walks,
        {**walks, "length": 5},
        {**walks, "weighted": False},
        {**walks, "weighted": True},
        {**walks, "p": 0.25},
        {**walks, "q": 0.25},
    ]


@pytest.mark.nvidia
def test_kernels_for_a_gpu_are_compiled_without_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpu_pregel.host.devices.launches import link

    linked: list[tuple[int, int]] = []

    def linking(kernel: Any, capability: tuple[int, int]) -> Any:
        linked.append(capability)
        return link(kernel, capability)

    monkeypatch.setattr("gpu_pregel.host.devices.launches.link", linking)
    monkeypatch.setattr(_sample_calls, "WEIGHTS", (None,))
    assert main(["warm", "cc", "--device", "cuda", "--compute-capability", "9.0"]) == 0
    assert f"{len(linked)} kernels for sm_90; 0 kernels were already cached" in capsys.readouterr().err
    assert len(linked) == len(list(folder.glob("*-sm_90-*.value"))) > 3
    assert info(capsys)["warmed"] == {"cpu": "none", "cuda (compute capability 9.0)": "cc"}
