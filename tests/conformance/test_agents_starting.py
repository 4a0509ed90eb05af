"""Runs with workers start in all environments: prompts, notebooks with an event loop, closed standard streams."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """\
import gpu_pregel.agents as agents
FACTOR = 3

class Helper:
    base = 14

def helped(x):
    return x * FACTOR

def compute(ctx):
    ctx.value = helped(Helper.base)
    ctx.vote_to_halt()

async def later(ctx):
    import asyncio
    await asyncio.sleep(0)
    compute(ctx)

vertices = [agents.Vertex("a")]
for workers in (0, 2):
    for function in (compute, later):
        print(agents.run(vertices, function, workers=workers).values["a"])

"""
ANSWERS = ["42"] * 4

NOTEBOOK = """
import ast, asyncio, sys, types
main = types.ModuleType("__main__")
sys.modules["__main__"] = main
source = open(sys.argv[1]).read()
source += "print((await agents.arun(vertices, later, workers=2)).values['a'])\\n"
async def cells():
    # As in IPython: each statement is compiled alone, in the namespace of __main__, on a running loop.
    for statement in ast.parse(source).body:
        code = compile(ast.Module([statement], []), "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, main.__dict__)
        if asyncio.iscoroutine(result):
            await result
asyncio.run(cells())
"""
RUNNERS = {
    "prompt": ["-i"],
    "prompt with a loop": ["-m", "asyncio"],
    "exec": ["-c", "import sys; exec(open(sys.argv[1]).read(), {})"],
    "notebook": ["-c", NOTEBOOK],
}


@pytest.mark.parametrize("how", RUNNERS)
def test_workers_start_from(how: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    is_typed = how.startswith("prompt")
    done = run([*RUNNERS[how], *([] if is_typed else [str(program)])], PROGRAM if is_typed else "")
    assert done.returncode == 0
    answers = ANSWERS + ["42"] * (how == "notebook")
    assert [word for word in done.stdout.split() if word.isdecimal()] == answers
    if not is_typed:
        assert done.stderr == ""
    assert "Error" not in done.stderr


def test_workers_start_from_a_folder_and_a_package(tmp_path: Path) -> None:
    """``__main__`` has sibling modules that workers import."""
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "relative.py").write_text("BASE = 14\n\ndef thrice(x):\n    return 3 * x\n")
    (package / "__main__.py").write_text(
        textwrap.dedent(
            """
            import gpu_pregel.agents as agents
            from pack import relative

            def compute(ctx):
                ctx.value = relative.thrice(relative.BASE)
                ctx.vote_to_halt()

            print(agents.run([agents.Vertex("a")], compute, workers=1).values["a"])
            """
        )
    )
    done = run(["-m", "pack"], folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")


LOADED = {
    "run_path": "import runpy, sys; runpy.run_path(sys.argv[1])",
    "by path": """if True:
        import sys
        from importlib.util import module_from_spec, spec_from_file_location
        spec = spec_from_file_location("loaded_by_path", sys.argv[1])
        sys.modules["loaded_by_path"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
    """,
}


@pytest.mark.parametrize("how", LOADED)
def test_a_module_that_workers_cannot_import_is_named(how: str, tmp_path: Path) -> None:
    program = tmp_path / "odd_program.py"
    program.write_text(PROGRAM)
    done = run(["-c", LOADED[how], str(program)])
    assert done.stdout == "42\n42\n"  # in process
    name = {"run_path": "'<run_path>'", "by path": "'loaded_by_path'"}[how]
    *_, last = done.stderr.splitlines()
    assert last.startswith(f"gpu_pregel.errors.AgentError: workers cannot import the module {name}")
    assert str(program) in last
    assert "on sys.path or PYTHONPATH" in last


def test_workers_start_with_closed_standard_streams(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        PROGRAM.replace("print(", "answers.append(").replace("FACTOR = 3", "FACTOR = 3\nanswers = []")
        + "open('answers', 'w').write(repr(answers))\n"
    )
    command = f"exec {sys.executable} program.py <&- >&- 2>&-"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(), check=True, timeout=200)
    assert (tmp_path / "answers").read_text() == "[42, 42, 42, 42]"


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def run(arguments: list[str], text: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        cwd=folder,
        env=environment(),
    )
