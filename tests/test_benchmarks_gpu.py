"""Tests of the report about a GPU: on a stand-in where there is none, at small sizes. Nothing here tests speed."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import _gpu_parts, gpu
from benchmarks.__main__ import main
from benchmarks._gpu_page import write_page
from benchmarks._gpu_parts import METRICS, Settings, compare_bytes, run_part
from benchmarks.gpu import execute, has_failed
from tests.devices import LONG


def run_here(name: str, settings: Settings, limit: float) -> dict[str, Any]:
    """Run a part at small sizes in this process, which has the stand-in."""
    assert limit <= 330
    saved: dict[str, Any] = {}
    small = replace(settings, trials=2, copied=1 << 10, counted="kron:5")
    run_part(name, small, lambda found: saved.update(json.loads(json.dumps(found))))
    return saved


@pytest.mark.gpu
def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parts but the tests; the tools are missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu, "execute", run_here)
    output = tmp_path / "report.json"
    parts = ["device", "sanitizer", "bytes", "algorithms grid:4", "cugraph"]
    assert main(["gpu", "--graphs", "grid:4", "--parts", ", ".join(parts), "-o", str(output)]) == 0
    report = json.loads(output.read_text())
    assert list(report["parts"]) == parts
    assert report["parts"]["device"]["copy_bytes_per_second"] > 0
    for name in ("sanitizer", "bytes", "cugraph"):
        assert "not" in report["parts"][name]["skipped"]
    part = report["parts"]["algorithms grid:4"]
    assert part["vertices"] == 16
    assert list(part["algorithms"]) == ["components", "bfs", "pagerank", "sssp", "triangles"]
    for one in part["algorithms"].values():
        assert one["correct"] is True
        assert len(one["trials"]) == 2
        assert one["copy_share"] > 0
    page = output.with_suffix(".html").read_text()
    assert "as on the CPU" in page
    assert ("<svg" in page) == (find_spec("matplotlib") is not None)
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(gpu, "unavailable_reason", lambda number: "no NVIDIA driver is installed")
    monkeypatch.setattr(gpu, "_REQUIRED", {"no_such_package": "CuPy", "json": "json"})
    output = tmp_path / "report.json"
    assert main(["gpu", "-o", str(output)]) == 2
    expected = (
        "this report needs a GPU; no NVIDIA driver is installed; CuPy not installed: pip install gpu-pregel[cuda13]"
    )
    assert expected in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the report's file: -o REPORT.json"),
        (["-o", "report.html"], "report.html would be replaced by the page of pictures"),
        (["-o", "."], "cannot write .: give a file in a folder to which you may write"),
        (["-o", f"{__file__}/new/report.json"], "report.json: give a file in a folder to which you may write"),
        (["-o", "x", "--device", "cpu"], "--device 'cpu' is not a GPU: give cuda or cuda:N"),
        (["-o", "x", "--device", "cuda:first"], "--device 'cuda:first' is not a GPU"),
        (["-o", "x", "--graphs", "kron:5,road"], "'road' is not a graph"),
        (["-o", "x", "--parts", "device,speed"], "unknown part 'speed': use device, tests, algorithms kron:20, bytes"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make parts run a script, which has their arguments."""
    script = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(script))
    return script


def write_script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n[ $2 = benchmarks._gpu_parts ] || exit 3\n{body}\n")
    path.chmod(0o755)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] not in "ZX"
    except OSError:
        return False


@LONG
def test_a_part_that_hangs_or_fails_loses_nothing(child: Path, tmp_path: Path) -> None:
    """What a part saved is kept, and everything it started ends with it."""
    write_script(child, f"echo '{{\"a\": 1}}' > $4\nsleep 600 & echo $! > {tmp_path}/pid\nwait")
    found = execute("tests", Settings(), 3)
    assert (found["a"], found["timed_out"]) == (1, True)
    assert 3 <= found["seconds"] < 60
    pid = int((tmp_path / "pid").read_text())
    # A killed process ends soon, but not at once.
    while is_running(pid):
        time.sleep(0.01)
    write_script(child, "echo '{\"a\": 2}' > $4\necho CUDA_ERROR_LAUNCH_FAILED >&2\nexit 7")
    found = execute("tests", Settings(), 20)
    assert found["error"] == "the process ended with status 7: CUDA_ERROR_LAUNCH_FAILED"
    assert found["a"] == 2
    assert has_failed(found)


@pytest.mark.parametrize(
    ("part", "failed"),
    [
        ({"skipped": "ncu is missing"}, False),
        ({"status": 0, "summary": "3 passed"}, False),
        ({"status": 1, "summary": "1 failed"}, True),
        ({"memcheck": {"status": 0}, "racecheck": {"status": 9}}, True),
        ({"algorithms": {"bfs": {"median": 1.0, "correct": True}, "sssp": {"skipped": "large"}}}, False),
        ({"algorithms": {"bfs": {"median": 1.0, "correct": False}}}, True),
        ({"algorithms": {"bfs": {"error": "NotEnoughMemoryError"}}}, True),
        ({"timed_out": True}, True),
    ],
)
def test_failed_parts(part: dict[str, Any], failed: bool) -> None:
    assert has_failed(part) is failed


def test_report_after_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report on disk has all earlier parts when a part runs, and parts without time are skipped."""
    output, seen = tmp_path / "report.json", []

    def look(name: str, settings: Settings, limit: float) -> dict[str, Any]:
        seen.append(list(json.loads(output.read_text())["parts"]) if output.exists() else [])
        return {"error": "lost"} if name == "tests" else {"seconds": 1.0}

    monkeypatch.setattr(gpu, "execute", look)
    monkeypatch.setattr(gpu, "unavailable_reason", lambda number: None)
    monkeypatch.setattr(gpu, "_REQUIRED", {})
    assert main(["gpu", "--parts", "device,tests,bytes", "-o", str(output)]) == 1
    assert seen == [[], ["device"], ["device", "tests"]]
    assert "lost" in output.with_suffix(".html").read_text()
    assert main(["gpu", "--parts", "device", "--minutes", "0", "-o", str(output)]) == 0
    assert json.loads(output.read_text())["parts"]["device"] == {"skipped": "no time left"}


def table(*rows: tuple[str, ...]) -> str:
    lines = [("ID", "Kernel Name", *METRICS), ("", "", *["sector"] * len(METRICS)), *rows]
    return "==PROF== Connected\n" + "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)


def test_bytes_of_the_profiler() -> None:
    """Sectors are summed by kernel; of two names in one another, the longer is meant."""
    counted = {"push": {"bytes": 100}, "push_long_name": {"bytes": 200}}
    rows = [
        ("0", "_ZN4numba4pushB2v1", "1,000", "10", "1", "2", "500", "50"),
        ("1", "_ZN4numba14push_long_nameB2v1", "7", "0", "0", "0", "4", "3"),
        ("2", "_ZN4numba4pushB2v1", "1", "0", "0", "0", "1", "0"),
        ("3", "cupy_fill", "9", "9", "9", "9", "9", "9"),
        ("4", "push_cuda::make_push::<locals>::push[v1,cw51c](Array<int, 1>)", "2", "0", "0", "0", "1", "1"),
    ]
    assert compare_bytes(table(*rows), counted) == [
        {"kernel": "push", "launches": 3, "warps": 32 * 1016, "l2": 32 * 502, "memory": 32 * 51, "counted": 100},
        {"kernel": "push_long_name", "launches": 1, "warps": 32 * 7, "l2": 32 * 4, "memory": 32 * 3, "counted": 200},
    ]
    with pytest.raises(ValueError, match="ncu printed no table of metrics"):
        compare_bytes("==PROF== Connected", counted)


@pytest.mark.gpu
def test_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts in place of the tools run what follows their options."""
    for name in ("ncu", "compute-sanitizer"):
        (tmp_path / name).write_text(
            '#!/bin/sh\ncase "$*" in *"-m benchmarks._gpu_parts short /dev/null {"*) ;; *) exit 4;; esac\n'
        )
        (tmp_path / name).chmod(0o755)
    row = ("0", "_ZN4numba8compressB2v1", *["1"] * len(METRICS))
    with (tmp_path / "ncu").open("a") as script:
        script.write(f"cat <<'END'\n{table(row)}\nEND\n")
    with (tmp_path / "compute-sanitizer").open("a") as script:
        script.write('case "$2" in racecheck) echo found a race; exit 9;; esac\n')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = run_here("bytes", Settings(), 1)
    assert [one["kernel"] for one in found["kernels"]] == ["compress"]
    assert found["kernels"][0]["warps"] == 4 * 32
    assert found["kernels"][0]["counted"] > 0
    with (tmp_path / "ncu").open("a") as script:
        script.write("echo ==ERROR== ERR_NVGPUCTRPERM >&2; exit 1\n")
    found = run_here("bytes", Settings(), 1)
    assert not has_failed(found)
    assert "ncu may not read performance counters" in found["skipped"]
    assert found["counted"]
    found = run_here("sanitizer", Settings(), 1)
    assert (found["memcheck"]["status"], found["racecheck"]) == (0, {"status": 9, "output": ["found a race"]})


def test_the_tests_are_run() -> None:
    saved: dict[str, Any] = {}
    run_part("tests", Settings(tests=("--version",)), saved.update)
    assert saved["status"] == 0
    assert saved["summary"].startswith("pytest ")


def test_the_short_run(capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"device": "cpu", "counted": "kron:5", "graphs": ["kron:5"]}
    _gpu_parts.main("short", os.devnull, json.dumps(settings))


def test_a_page_of_nothing(tmp_path: Path) -> None:
    write_page({"parts": {}}, tmp_path / "page.html")
    assert "gpu_pregel on GPU" in (tmp_path / "page.html").read_text()
