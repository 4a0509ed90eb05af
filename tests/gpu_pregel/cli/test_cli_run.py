"""Tests of ``gpu-pregel run``: loading programs, messages, output files, exit status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main

PROGRAMS = """
import numpy as np

import gpu_pregel as gp

labels = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
both = gp.VertexProgram(
    value=(np.int32, np.float64),
    init=lambda ctx: (ctx.vertex, 0.5),
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: (min(value[0], incoming[0]), value[1]),
)
moved = gp.VertexProgram(
    value={"far": np.float64, "label": np.int64},
    parameters={"source": np.int64, "scale": 1.0, "back": False},
    init=lambda ctx: (ctx.parameters.scale * ctx.vertex, -1 if ctx.parameters.back else ctx.parameters.source),
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: value,
)
wrong = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: 0.5,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: incoming,
)
number = 3
"""


@pytest.fixture
def programs(tmp_path: Path) -> str:
    path = tmp_path / "programs.py"
    path.write_text(PROGRAMS)
    return str(path)


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    path = tmp_path / "pairs.el"
    path.write_text("0 1\n2 3\n3 4\n")
    return str(path)


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Write a file with these lines, run its ``program``, and return the status, the path and the output."""

    def call(*lines: str, name: str = "mine.py", capture: Any = None) -> tuple[int, str, str]:
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        status = main(["run", f"{path}:program", "-g", "4"])
        out, err = capture.readouterr() if capture else ("", "")
        return status, str(path), out + err

    return call


def test_the_table_of_supersteps_goes_to_stderr_and_nothing_to_stdout(
    programs: str, pairs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", f"{programs}:labels", "-f", pairs, "-n", "3"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    runs = [line for line in lines if line.startswith("run ")]
    assert len(runs) == 3
    assert runs[0].endswith("(4 supersteps, completed)")
    assert "of 3 trials" in err
    assert [line.split()[1] for line in lines[-5:-1]] == ["init", "pull", "pull", "pull"]
    assert lines[-6].startswith("superstep  direction  rule  active vertices")
    assert lines[-1].split()[0] == "total"


def test_json_contains_the_trace(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = [
        "run",
        f"{programs}:labels",
        "-g",
        "8",
        "-k",
        "4",
        "--seed",
        "3",
        "--device",
        "cpu",
        "--threads",
        "1",
        "-n",
        "2",
        "--json",
    ]
    assert main([*call, "--partitions", "3"]) == 0
    answer = json.loads(capsys.readouterr().out)
    graph = gp.kronecker(8, 4, seed=3)
    assert (answer["num_vertices"], answer["num_stored_edges"]) == (256, graph.num_stored_edges)
    assert (answer["graph"], answer["program"]) == ("kronecker 8", f"{programs}:labels")
    assert (answer["device"], answer["threads"], answer["partitions"]) == ("cpu", 1, 3)
    assert answer["status"] == "completed"
    assert answer["supersteps"] == len(answer["trace"]) > 2
    assert answer["trace"][0]["active_edges"] == graph.num_stored_edges
    assert len(answer["seconds"]["trials"]) == 2


def test_values_are_written_in_every_format(programs: str, pairs: str, tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "npy"):
        assert main(["run", f"{programs}:labels", "-f", pairs, "-o", str(tmp_path / f"out.{suffix}")]) == 0
    expected = {"vertex": [0, 1, 2, 3, 4], "value": [0, 0, 2, 2, 2]}
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pydict() == expected
    assert (tmp_path / "out.csv").read_text() == '"vertex","value"\n0,0\n1,0\n2,2\n3,2\n4,2\n'
    assert np.load(tmp_path / "out.npy").tolist() == expected["value"]


def test_tuple_values_have_one_column_per_field(programs: str, pairs: str, tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "npy"):
        assert main(["run", f"{programs}:both", "-f", pairs, "-o", str(tmp_path / f"out.{suffix}")]) == 0
    table = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert table.to_pydict() == {"vertex": [0, 1, 2, 3, 4], "value0": [0, 0, 2, 2, 2], "value1": 5 * [0.5]}
    assert [str(field.type) for field in table.schema][1:] == ["int32", "double"]
    assert (tmp_path / "out.csv").read_text().splitlines()[:2] == ['"vertex","value0","value1"', "0,0,0.5"]
    array = np.load(tmp_path / "out.npy")
    assert array.dtype == [("value0", "i4"), ("value1", "f8")]
    assert array["value0"].tolist() == [0, 0, 2, 2, 2]


def test_parameters_are_passed_by_name(
    programs: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", f"{programs}:moved", "-f", pairs]
    out = tmp_path / "out.csv"
    assert main([*command, "--parameter", "source=7", "--parameter", "scale=0.5", "-o", str(out)]) == 0
    assert out.read_text().splitlines() == ['"vertex","far","label"', "0,0,7", "1,0.5,7", "2,1,7", "3,1.5,7", "4,2,7"]
    assert main([*command, "--parameter", "source=7", "--parameter", "back=true", "-o", str(out)]) == 0
    assert out.read_text().splitlines()[1] == "0,0,-1"
    for given, message in [
        ([], "parameter 'source' has no value"),
        (["--parameter", "sauce=7"], "unknown parameter 'sauce'; parameters of the program: source (int64), scale ("),
        (["--parameter", "source=0.5"], "parameter 'source' must be a whole number, not 0.5"),
        (["--parameter", "source"], "'source' is not of the form NAME=NUMBER, such as source=5"),
        (["--parameter", "source=x"], "'source=x' is not of the form NAME=NUMBER, such as source=5"),
    ]:
        capsys.readouterr()
        try:
            status: Any = main([*command, *given])
        except SystemExit as end:
            status = end.code
        assert status != 0
        assert message in capsys.readouterr().err


def test_vertices_are_passed_by_id(programs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, edges = tmp_path / "v.npy", tmp_path / "edges.csv"
    command = ["run", f"{programs}:moved", "-f", str(edges), "-o", str(out), "--device", "cpu", "--threads", "1"]
    for rows, given, number in [
        ("ann,bob\nbob,eve\n", "eve", 2),
        ("10,30\n30,20\n", "20", 1),
        ("0,1\n1,2\n", "2", 2),
        ("ann,7\nbob,007\n", "7", 1),
    ]:
        edges.write_text("source,target\n" + rows)
        assert main([*command, "--vertex", f"source={given}"]) == 0
        assert np.load(out)["label"].max() == number
    capsys.readouterr()
    for arguments, message in [
        (["source=zoe"], "--vertex source=zoe: no vertex of the graph has this id"),
        (["sauce=7"], "unknown parameter 'sauce'"),
        (["source"], "'source' is not of the form NAME=ID, such as source=ann"),
    ]:
        with suppress(SystemExit):
            assert main([*command, "--vertex", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_tuple_values_are_converted(programs: str, pairs: str) -> None:
    from gpu_pregel.cli._programs import load_program

    result = gp.run(gp.read_graph(pairs), load_program(programs, "both"))
    assert result.to_dict()[3] == (2, 0.5)
    assert result.to_pandas().columns.tolist() == ["vertex", "value0", "value1"]
    assert result.to_arrow().column_names == ["vertex", "value0", "value1"]
    assert result.to_numpy()["value0"].tolist() == [0, 0, 2, 2, 2]


def test_dash_writes_only_csv_to_stdout(programs: str, pairs: str) -> None:
    Path(programs).write_text("print('hello')\n" + PROGRAMS)
    command = [sys.executable, "-m", "gpu_pregel", "run", f"{programs}:labels", "-f", pairs, "-n", "2", "-o", "-"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    assert done.stdout == b'"vertex","value"\n0,0\n1,0\n2,2\n3,2\n4,2\n'
    assert done.stderr.startswith(b"hello\n")


def test_the_limit_fails_with_the_table_or_keeps_the_values(
    programs: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["run", f"{programs}:labels", "-f", pairs, "--max-supersteps", "2", "-o", str(tmp_path / "out.csv")]
    assert main(call) == 1
    err = capsys.readouterr().err
    assert "still active after 2 supersteps: increase --max-supersteps, or pass --on-limit return" in err
    assert "superstep  direction" in err
    assert not (tmp_path / "out.csv").exists()
    assert main([*call, "--on-limit", "return"]) == 0
    assert "(2 supersteps, max_supersteps)" in capsys.readouterr().err
    # The smallest label has moved along one edge.
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["0,0", "1,0", "2,2", "3,2", "4,3"]


def test_a_file_can_import_modules_from_its_folder(
    programs: str, load: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    before = list(sys.path)
    assert load("from programs import labels as program", capture=capsys)[0] == 0
    assert sys.path == before
    sys.modules.pop("programs")


def test_the_cache_distinguishes_a_file_from_a_library_of_the_same_name(tmp_path: Path) -> None:
    from gpu_pregel.cli._programs import load_program
    from gpu_pregel.kernels.library.fingerprint import Fingerprint

    path, digests = tmp_path / "numpy.py", set()
    for start in (5, 7):
        text = PROGRAMS.split("both =")[0].replace("import numpy as np\n", "").replace("np.uint32", '"uint32"')
        path.write_text(text.replace("init=lambda ctx: ctx.vertex,", f"init=lambda ctx: {start},"))
        fingerprint = Fingerprint()
        fingerprint.add(load_program(str(path), "labels").init)
        digests.add(fingerprint.hexdigest())
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        (["x = 1", "raise ValueError('too bad')"], 2, "ValueError: too bad"),
        (["def f():", "    return 1 / 0", "", "f()"], 2, "ZeroDivisionError: division by zero"),
        (["import nothing_of_this_name"], 1, "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        (["x = 1", "def (:"], 2, "SyntaxError: "),
        (["import sys", "", "sys.exit(3)"], 3, "SystemExit: 3"),
        (["import json", "json.loads('{')"], 2, "JSONDecodeError: "),
        (["import gpu_pregel as gp", "gp.Combiner(3, 0)"], 2, "ArgumentTypeError: Combiner's function must be"),
    ],
)
def test_an_exception_in_a_file_is_reported_with_its_line(
    lines: list[str], line: int, message: str, load: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    status, path, text = load(*lines, capture=capsys)
    assert status == 1
    assert f"gpu-pregel: {path}, line {line}: {message}" in text
    assert "Traceback" not in text


def test_an_exception_in_a_helper_is_reported_with_both_files(
    tmp_path: Path, load: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    helper = tmp_path / "a_helper_that_raises.py"
    helper.write_text("\n\nraise RuntimeError('deep')\n")
    status, path, text = load("", "import a_helper_that_raises", capture=capsys)
    assert status == 1
    assert f"{path}, line 2: RuntimeError: deep (raised at {helper}, line 3)" in text


def test_a_compilation_error_names_the_line(programs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{programs}:wrong", "-g", "4"]) == 1
    err = capsys.readouterr().err
    assert "init returns float64, but int64 is declared" in err
    assert f"{programs}, line {PROGRAMS.splitlines().index('    init=lambda ctx: 0.5,') + 1}" in err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["FILE:nothing", "-g", "4"],
            1,
            "does not define nothing: name one of its vertex programs: labels, both, moved, wrong",
        ),
        (["FILE:number", "-g", "4"], 1, "is not a gp.VertexProgram but of type int: name one of its vertex programs"),
        (["EMPTY:labels", "-g", "4"], 1, "does not define labels: it defines no gp.VertexProgram"),
        (["nowhere.py:labels", "-g", "4"], 1, "nowhere.py: no such file"),
        (["FOLDER:labels", "-g", "4"], 1, "is a folder"),
        (["FILE:labels", "-f", "nowhere.el"], 1, "nowhere.el: no such file"),
        (["FILE", "-g", "4"], 2, "is not of the form FILE.py:PROGRAM"),
        (["FILE:", "-g", "4"], 2, "is not of the form FILE.py:PROGRAM"),
        ([":labels", "-g", "4"], 2, "is not of the form FILE.py:PROGRAM"),
        (["FILE:labels"], 2, "one of the arguments -g -u --grid -f is required"),
        (["FILE:labels", "-g", "4", "--mode", "both"], 2, "invalid choice: 'both'"),
        (["FILE:labels", "-g", "4", "--partitions", "0"], 2, "0 is below 1"),
        (["FILE:labels", "-g", "4", "--partitions", "99999"], 2, "partitions must be from 1 to 65,536"),
        (["FILE:labels", "-g", "4", "--max-supersteps", "0"], 2, "0 is below 1"),
        (["FILE:labels", "-g", "4", "--on-limit", "stop"], 2, "invalid choice: 'stop'"),
        (["FILE:labels", "-g", "4", "--device", "abacus"], 2, "unknown device 'abacus'"),
        (["FILE:labels", "-g", "4", "-o", "values.xls"], 2, "values.xls"),
        (["FILE:both", "-g", "4", "--mode", "push"], 2, "--mode push is not possible: messages are tuples"),
    ],
)
def test_exit_status_and_message(
    arguments: list[str], status: int, message: str, programs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(programs).parent
    (folder / "empty.py").write_text("")
    names = {"FILE": programs, "EMPTY": str(folder / "empty.py"), "FOLDER": str(folder)}
    file, colon, name = arguments[0].partition(":")
    try:
        result = main(["run", names.get(file, file) + colon + name, *arguments[1:]])
    except SystemExit as error:
        result = cast(int, error.code)
    assert result == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize("partitions", ["1", "3"])
def test_kernels_are_compiled_before_the_first_trial(
    partitions: str, programs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpu_pregel.cli import run
    from gpu_pregel.cli._programs import load_program
    from gpu_pregel.host.programs.compiler import compile_program

    def signatures() -> list[Any]:
        compiled = compile_program(load_program(programs, "labels"), weight=None)
        kernels = [compiled.init, compiled.signal, compiled.pull, compiled.push, compiled.apply]
        return [list(kernel.signatures) for kernel in kernels]

    seen = []
    plain = run._run

    def spy(*call: Any) -> Any:
        seen.append(signatures())
        return plain(*call)

    monkeypatch.setattr(run, "_run", spy)
    call = ["run", f"{programs}:labels", "-g", "9", "-k", "2", "--partitions", partitions]
    assert main(call) == 0
    assert all(seen[0])
    assert signatures() == seen[0]
