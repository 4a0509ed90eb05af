"""Tests of the command line: results, files, exit status and streams."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.el"
    path.write_text("0 1\n2 3\n3 4\n")
    return path


def test_cc_prints_the_answer_to_stderr_and_nothing_to_stdout(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cc", "-f", str(pairs), "-v", "-n", "3"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "2 components, the largest of 3 vertices (60.0% of the vertices)" in err
    assert "verified" in err
    assert "of 3 trials" in err
    assert len([line for line in err.splitlines() if line.startswith("run ")]) == 3


def test_cc_prints_json_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["cc", "-g", "8", "-k", "4", "--seed", "3", "--device", "cpu", "--threads", "1", "--json", "-n", "2"]) == 0
    )
    answer = json.loads(capsys.readouterr().out)
    graph = gp.kronecker(8, 4, seed=3)
    expected = gp.connected_components(graph)
    assert answer["components"] == expected.count
    assert answer["largest"] == expected.sizes().max()
    assert (answer["num_vertices"], answer["num_stored_edges"]) == (256, graph.num_stored_edges)
    assert (answer["device"], answer["threads"], answer["verified"]) == ("cpu", 1, False)
    assert len(answer["seconds"]["trials"]) == 2


def test_cc_writes_every_result_format(pairs: Path, tmp_path: Path, capfdbinary: Any) -> None:
    for name in ("labels.parquet", "labels.csv", "labels.npy"):
        assert main(["cc", "-f", str(pairs), "-o", str(tmp_path / name)]) == 0
    expected = {"vertex": [0, 1, 2, 3, 4], "component": [0, 0, 2, 2, 2]}
    assert pyarrow.parquet.read_table(tmp_path / "labels.parquet").to_pydict() == expected
    rows = b'"vertex","component"\n0,0\n1,0\n2,2\n3,2\n4,2\n'
    assert (tmp_path / "labels.csv").read_bytes() == rows
    assert np.load(tmp_path / "labels.npy").tolist() == expected["component"]
    capfdbinary.readouterr()
    command = [sys.executable, "-m", "gpu_pregel", "cc", "-f", str(pairs), "-o", "-"]
    assert subprocess.run(command, capture_output=True, check=True, timeout=120).stdout == rows


@pytest.mark.parametrize("source", [["-g", "7"], ["-u", "7"], ["--grid", "10x12"], ["--grid", "9", "--holes", "0.2"]])
def test_generate_and_convert_give_the_same_graph(
    source: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = str(tmp_path / "graph.pregel"), str(tmp_path / "graph.sg")
    assert main(["generate", *source, "-o", first, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["convert", first, second]) == 0
    one, two = gp.read_graph(first), gp.read_graph(second)
    assert np.array_equal(one.indptr, two.indptr)
    assert np.array_equal(one.indices, two.indices)
    assert (made["num_vertices"], made["num_stored_edges"]) == (one.num_vertices, one.num_stored_edges)


def test_convert_accepts_options_for_reading(tmp_path: Path) -> None:
    source = tmp_path / "odd.data"
    source.write_text("0 1\n0 1\n1 1\n")
    target = tmp_path / "out.parquet"
    options = ["--format", "edgelist", "--directed", "--num-vertices", "9", "--combine", "count", "--drop-self-loops"]
    assert main(["convert", str(source), str(target), *options]) == 0
    graph = gp.read_graph(target)
    assert (graph.num_vertices, graph.num_stored_edges, graph.is_directed) == (9, 1, True)
    assert graph.weights is not None
    assert graph.weights.tolist() == [2]


def test_info_prints_versions_devices_and_threads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    for word in ("gpu_pregel", "numba", "devices", "gpus", "threads", "threading", "kernel cache", "cache size"):
        assert word in out
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["devices"][0] == "cpu"
    assert ("cuda:0" in facts["devices"]) == facts["gpus"][-1].startswith("cuda:")
    assert facts["threads"] >= 1


def test_info_wraps_the_functions_of_networkx(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    shown = capsys.readouterr().out
    functions = shown[shown.index("\nnetworkx ") + 1 :].splitlines()
    assert len(functions) > 50
    assert max(map(len, functions)) <= 104
    assert functions[0].startswith("networkx        nx.adamic_adar_index, nx.")
    assert functions[1].startswith(" " * 16 + "nx.")
    assert "networkx 3." in shown


def test_info_clears_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpu_pregel.kernels.library.cache.cache_directory", lambda: str(tmp_path))
    monkeypatch.delenv("GPU_PREGEL_CACHE_BYTES", raising=False)
    (tmp_path / f"push-{64 * '0'}.nbi").write_bytes(bytes(2048))
    (tmp_path / "other").write_bytes(bytes(2000))
    assert main(["info"]) == 0
    assert "2.0 KiB of at most 256.0 MiB" in capsys.readouterr().out
    assert main(["info", "--clear-cache", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"kernel cache": str(tmp_path), "deleted": "2.0 KiB"}
    assert [file.name for file in tmp_path.iterdir()] == ["other"]
    monkeypatch.setenv("GPU_PREGEL_CACHE_BYTES", "1 GB")
    assert main(["info"]) == 2
    assert "GPU_PREGEL_CACHE_BYTES must be a number of bytes, such as 268435456, not '1 GB'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "required: {cc,"),
        (["cc"], 2, "one of the arguments -g -u --grid -f is required"),
        (["cc", "-g", "4", "-u", "4"], 2, "not allowed with"),
        (["cc", "-g", "four"], 2, "'four' is not a whole number"),
        (["cc", "-g", "-4"], 2, "-4 is below 0"),
        (["cc", "-g", "99"], 2, "-g must be from 0 to 31, not 99"),
        (["cc", "-g", "4", "-n", "0"], 2, "0 is below 1"),
        (["cc", "-g", "4", "--device", "cuda:99"], 2, "device 'cuda:99' cannot be used: "),
        (["cc", "-g", "4", "--device", "tpu"], 2, "unknown device 'tpu'"),
        (["cc", "-g", "4", "--directed"], 2, "require -f"),
        (["cc", "--grid", "4y5"], 2, "not of the form ROWSxCOLUMNS"),
        (["cc", "-g", "4", "-o", "labels.xls"], 2, "labels.xls"),
        (["cc", "-g", "4", "-o", "-", "--json"], 2, "-o - and --json both write to stdout"),
        (["cc", "-f", "nowhere.el"], 1, "nowhere.el: no such file"),
        (["generate", "-g", "4", "-o", "graph.xyz"], 2, "graph.xyz"),
        (["convert", "a.el", "b.xyz"], 2, "b.xyz"),
        (["generate", "-g", "4"], 2, "-o"),
    ],
)
def test_exit_status_and_message(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        result = main(arguments)
    except SystemExit as error:
        result = cast(int, error.code)
    assert result == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-f", "nowhere.el"], 1, "nowhere.el: no such file"),
        (["-f", "FOLDER"], 1, "is a folder"),
        (["-f", "FOLDER/graph.docx"], 1, "unknown suffix '.docx'"),
        (["-f", "FOLDER/graph.docx", "--format", "word"], 2, "--format must be 'edgelist', 'matrix-market', "),
        (["-g", "4", "--num-vertices", "3"], 2, "require -f"),
        (["-g", "99"], 2, "-g must be from 0 to 31, not 99"),
        (["-u", "99"], 2, "-u must be from 0 to 31, not 99"),
        (["-g", "31", "-k", "500"], 1, "GiB are available: use a smaller graph"),
        (["--grid", "4x5", "--holes", "2"], 2, "--holes must be a probability from 0 to 1, not 2.0"),
        (["--grid", "100000x100000"], 2, "columns of --grid must be from 0 to 42,949, not 100,000"),
        (["-g", "4", "-o", "-", "--json"], 2, "both write to stdout"),
    ],
)
@pytest.mark.parametrize("command", ["cc", "run"])
def test_invalid_input_is_rejected_before_any_work(
    command: str,
    arguments: list[str],
    status: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("work has started")

    monkeypatch.setattr("gpu_pregel.cli.algorithm._prepare", work)
    monkeypatch.setattr("gpu_pregel.cli._programs.load_program", work)
    monkeypatch.setattr("gpu_pregel.cli._common.load_graph", work)
    (tmp_path / "graph.docx").write_text("0 1\n")
    program = ["program.py:program"] if command == "run" else []
    given = [argument.replace("FOLDER", str(tmp_path)) for argument in arguments]
    assert main([command, *program, *given]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_ctrl_c_ends_with_the_documented_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt() -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpu_pregel.cli.info.collect", interrupt)
    assert main(["info"]) == 130
    assert capsys.readouterr().err == "gpu-pregel: interrupted\n"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "130 after Ctrl-C" in " ".join(capsys.readouterr().out.split())


def test_bad_data_is_reported_with_file_and_line_and_leaves_no_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "bad.el"
    source.write_text("0 1\n1\n")
    assert main(["cc", "-f", str(source), "-o", str(tmp_path / "labels.csv")]) == 1
    assert f"{source}, line 2: " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["bad.el"]


def test_a_closed_pipe_prints_no_traceback(pairs: Path) -> None:
    command = f"{sys.executable} -m gpu_pregel cc -u 16 -o - 2>&1 >&3 | cat; exit ${{PIPESTATUS[0]}}"
    shell = f"exec 3> >(head -n 1 >/dev/null); sleep 0.2; {command}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr


def test_progress_is_only_shown_on_a_terminal() -> None:
    program = "from gpu_pregel.cli._common import show_progress; print(show_progress())"
    master, slave = pty.openpty()
    for stderr, expected in ((slave, "True\n"), (subprocess.PIPE, "False\n")):
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=stderr, text=True, check=True, timeout=60
        )
        assert done.stdout == expected
    os.close(slave)
    os.close(master)


def test_compilation_is_announced_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gpu_pregel", "cc", "-g", "6"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stderr
        for _ in range(2)
    ]
    assert runs[0].count("compiling") == 1
    assert "compiling" not in runs[1]
