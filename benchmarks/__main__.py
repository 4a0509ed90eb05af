"""Command line of the benchmarks: ``python -m benchmarks SUBCOMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
    agents,
    build,
    cc,
    counts,
    gpu,
    mixed,
    networkx,
    programs,
    read,
    roofline,
    scaling,
    simulate,
    startup,
    traffic,
    workflows,
)
from benchmarks import all as all_algorithms
from gpu_pregel.host.devices.threads import available_threads

SUBCOMMANDS = {
    "all": all_algorithms,
    "cc": cc,
    "programs": programs,
    "build": build,
    "read": read,
    "scaling": scaling,
    "startup": startup,
    "traffic": traffic,
    "counts": counts,
    "workflows": workflows,
    "gpu": gpu,
    "roofline": roofline,
    "simulate": simulate,
    "agents": agents,
    "mixed": mixed,
    "networkx": networkx,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status: 0, 1 for a wrong or failed result, 2 for a usage error."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Benchmarks of gpu_pregel and its peers.")
    subparsers = parser.add_subparsers(dest="subcommand", required=True)
    for name, module in SUBCOMMANDS.items():
        subparser = subparsers.add_parser(name, help=module.HELP, description=(module.__doc__ or "").replace("``", ""))
        module.add_arguments(subparser)
        subparser.add_argument(
            "--threads", type=_positive, default=available_threads(), help="number of threads (default: all processors)"
        )
        subparser.add_argument("-o", "--output", type=Path, help="JSON file for the report")
    parsed = parser.parse_args(arguments)
    try:
        return int(SUBCOMMANDS[parsed.subcommand].run(parsed))
    except ValueError as error:
        print(f"python -m benchmarks: {error}", file=sys.stderr)
        return 2


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
