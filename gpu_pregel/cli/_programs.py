"""Loads a vertex program by name from a Python file, and the functions of agents from a module."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib import import_module
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ProgramFileError

if TYPE_CHECKING:
    from gpu_pregel.host.programs.program import VertexProgram


def load_program(path: str, name: str) -> VertexProgram:
    """Run a Python file and return the vertex program with this name.

    Raises
    ------
    MissingFileError, NotAFileError, UnreadableFileError
        The file cannot be read.
    ProgramFileError
        The file raises an exception, or it defines no vertex program with this name.
    """
    from gpu_pregel.host.programs.program import VertexProgram

    names = vars(load_module(path))
    program = names.get(name)
    if isinstance(program, VertexProgram):
        return program
    listed = ", ".join(key for key, value in names.items() if isinstance(value, VertexProgram))
    remedy = f"name one of its vertex programs: {listed}" if listed else "it defines no gp.VertexProgram"
    if name not in names:
        raise ProgramFileError(f"{path} does not define {name}: {remedy}")
    raise ProgramFileError(f"{name} in {path} is not a gp.VertexProgram but of type {type(program).__name__}: {remedy}")


def load_agents(module: str, name: str) -> dict[str, Any]:
    """Import a module, also from the current folder, and return the arguments of ``gp.agents.run`` that a name gives.

    The name is that of a compute function, or of a mapping of arguments such as ``compute`` and ``master``.

    Raises
    ------
    ProgramFileError
        There is no such module, it raises an exception, or it defines no such function or mapping.
    """
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        with redirect_stdout(sys.stderr):
            names = vars(import_module(module))
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise ProgramFileError(
                f"there is no module {error.name}: pass the name of one in the current folder, or on PYTHONPATH"
            ) from error
        raise ProgramFileError(_blame(module, error)) from error
    if name not in names:
        listed = ", ".join(key for key, value in names.items() if getattr(value, "__module__", None) == module)
        raise ProgramFileError(f"{module} does not define {name}; it defines {listed or 'no functions'}")
    found = names[name]
    if isinstance(found, Mapping):
        return dict(found)
    if hasattr(found, "as_agent"):
        raise ProgramFileError(
            f"{name} in {module} is a state graph, whose threads its own invoke(None, config) continues: name a "
            f"compute function, such as one that its as_agent(...) returns"
        )
    if callable(found):
        return {"compute": found}
    raise ProgramFileError(
        f"{name} in {module} is of type {type(found).__name__}: name a compute function, or a dict of arguments"
    )


def load_module(path: str) -> ModuleType:
    """Run a Python file as a module; like ``python FILE``, it can import modules from its folder.

    Its output goes to stderr, because stdout is reserved for the command's data.
    """
    from gpu_pregel.io._files import open_file

    with open_file(path) as file:
        source = file.read()
    # A distinct name keeps a program in math.py or numpy.py from replacing that library.
    module = ModuleType(f"program_file_{os.path.splitext(os.path.basename(path))[0]}")
    module.__file__ = os.path.abspath(path)
    folder = os.path.dirname(module.__file__)
    sys.modules[module.__name__] = module
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        raise ProgramFileError(_blame(path, error)) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
    return module


def _blame(path: str, error: BaseException) -> str:
    """Name the line of the file that raised the error and, if the error occurred in another file, that place."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    lines = [frame.lineno for frame in frames if frame.filename == path]
    place = f"{path}, line {lines[-1]}" if lines else path
    if lines and frames[-1].filename != path:
        what += f" (raised at {frames[-1].filename}, line {frames[-1].lineno})"
    return f"{place}: {what}"
