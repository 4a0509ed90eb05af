"""The command line: ``gpu-pregel cc``, ``run``, ``runs``, ``generate``, ``convert`` and ``info``.

Answers and times for people go to stderr, data to stdout. The exit status is 0, 1 if the work failed, 2 if the
call was wrong, or 130 if Ctrl-C ended it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from gpu_pregel import __version__
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, DeviceError, GpuPregelError

_COMMANDS = ("cc", "run", "runs", "generate", "convert", "info")
_WORK_FAILED, _WRONG_CALL, _INTERRUPTED = 1, 2, 130


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="gpu-pregel",
        description="Graph processing on one superstep clock.",
        epilog="exit status: 0; 1 if the work failed, 2 if wrongly called, 130 by Ctrl-C",
    )
    parser.add_argument("--version", action="version", version=f"gpu-pregel {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="{" + ",".join(_COMMANDS) + "}")
    for name in _COMMANDS:
        import_module(f"gpu_pregel.cli.{name}").add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    _open_closed_streams()
    options = make_parser().parse_args(arguments)
    try:
        status = options.run(options)
        sys.stdout.flush()
    except (ArgumentError, ArgumentTypeError, DeviceError) as error:
        return _fail(error, _WRONG_CALL)
    except (GpuPregelError, MemoryError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            # Nobody reads stdout any more: stay silent, also when Python flushes it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _WORK_FAILED
        return _fail(error, _WORK_FAILED)
    except KeyboardInterrupt:
        print("gpu-pregel: interrupted", file=sys.stderr)
        return _INTERRUPTED
    return int(status or 0)


def _open_closed_streams() -> None:
    """Where the caller closed stdout or stderr Python has None, and would print what is for stderr on stdout."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open as long as the process lives


def _fail(error: BaseException, status: int) -> int:
    print(f"gpu-pregel: {str(error) or type(error).__name__}", file=sys.stderr)
    return status
