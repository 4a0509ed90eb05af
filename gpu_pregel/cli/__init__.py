# PYTHON_ARGCOMPLETE_OK
"""The command line ``gpu-pregel``: a command per algorithm, and those of ``_COMMANDS``.

Messages and times go to stderr, data to stdout. The exit status is 0 on success, 1 on failure, 2 on a usage error,
and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from gpu_pregel import __version__
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.cli import algorithm
from gpu_pregel.cli._common import example, printable
from gpu_pregel.cli._completion import complete
from gpu_pregel.cli._wording import in_options
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, DeviceError, GpuPregelError

_COMMANDS = ("algorithms", "run", "agents", "runs", "stats", "generate", "convert", "examples", "warm", "info")
"""Each is a module of this package."""
_FAILED, _USAGE_ERROR, _INTERRUPTED = 1, 2, 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors quote arguments with their control characters escaped."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = _Parser(
        prog="gpu-pregel",
        description="Process graphs with Pregel supersteps. Messages and times go to stderr, data to stdout.",
        epilog=f"{example('cc -g 20 -v')}. Every command shows its options with --help. Exit status: 0 on success, "
        "1 on failure, 2 on a usage error, 130 after Ctrl-C. Tab completion needs argcomplete (pip install "
        'gpu-pregel[completion]) and, in the shell\'s start file: eval "$(register-python-argcomplete gpu-pregel)"',
    )
    parser.add_argument("--version", action="version", version=f"gpu-pregel {__version__}")
    names = [entry.command for entry in ALGORITHMS] + list(_COMMANDS)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{" + ",".join(names) + "}")
    for entry in ALGORITHMS:
        algorithm.add_parser(commands, entry)
    for name in _COMMANDS:
        import_module(f"gpu_pregel.cli.{name}").add_parser(commands)
    for command in commands.choices.values():
        command.set_defaults(option_strings=frozenset(command._option_string_actions))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    _open_closed_streams()
    parser = make_parser()
    complete(parser)
    options = parser.parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
    except (ArgumentError, ArgumentTypeError, DeviceError) as error:
        return _fail(error, options, _USAGE_ERROR)
    except (GpuPregelError, MemoryError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader of stdout has closed it: fail silently, also when Python flushes stdout at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _FAILED
        return _fail(error, options, _FAILED)
    except KeyboardInterrupt:
        print("gpu-pregel: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return int(status or 0)


def _open_closed_streams() -> None:
    """Replace closed standard streams, for which Python has None; print would write to stdout in place of stderr."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - stays open until the process ends


def _fail(error: BaseException, options: argparse.Namespace, status: int) -> int:
    text = in_options(str(error), options) or type(error).__name__
    print(f"gpu-pregel: {printable(text)}", file=sys.stderr)
    return status
