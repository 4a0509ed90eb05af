"""``gpu-pregel examples``: list the example programs that the package contains, and print or copy them."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import gpu_pregel
from gpu_pregel.cli import _common
from gpu_pregel.errors import WriteError

FOLDER = Path(gpu_pregel.__file__).parent / "examples"


def example_names() -> list[str]:
    """Return the names of the examples."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "examples",
        help="list, print or copy the example programs",
        description="List the example programs, print one to stdout, or copy them to a folder.",
        epilog=_common.example("examples bfs > bfs.py && gpu-pregel run bfs.py:hops -g 16"),
    )
    parser.add_argument("name", nargs="?", choices=example_names(), metavar="NAME", help="the example (default: all)")
    parser.add_argument("--copy", metavar="DIR", help="copy the example, or all of them, to DIR")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """List, print or copy examples."""
    names = example_names() if options.name is None else [options.name]
    if options.copy is not None:
        _copy(names, Path(options.copy))
    elif options.name is not None:
        sys.stdout.write((FOLDER / f"{options.name}.py").read_text(encoding="utf-8"))
    else:
        width = max(map(len, names)) + 2
        for name in names:
            print(f"{name:<{width}}{_title(FOLDER / f'{name}.py')}")


def _title(path: Path) -> str:
    """Return the first line of the docstring of a file, as plain text."""
    import ast

    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n")[0].rstrip(".").replace("`", "")


def _copy(names: list[str], folder: Path) -> None:
    """Copy examples to a folder, created if necessary; no file is overwritten."""
    import shutil

    targets = [folder / f"{name}.py" for name in names]
    for target in targets:
        if target.exists():
            raise WriteError(f"{target} exists: delete it, or choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, target in zip(names, targets, strict=True):
            shutil.copyfile(FOLDER / f"{name}.py", target)
    except OSError as error:
        raise WriteError(f"{folder}: the examples cannot be copied: {os.strerror(error.errno or 0)}") from error
    for target in targets:
        print(_common.printable(target))
