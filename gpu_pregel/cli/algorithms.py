"""``gpu-pregel algorithms``: list the algorithms of the registry."""

from __future__ import annotations

import argparse
from typing import Any

from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.cli import _common


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "algorithms",
        help="list the algorithms",
        description="List the algorithms: command, Python function, purpose, cost, required kind of graph and paper.",
        epilog=_common.example("algorithms --json"),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the list to stdout."""
    rows = [facts(entry) for entry in ALGORITHMS]
    if options.json:
        _common.print_json({"algorithms": rows})
        return
    for row in rows:
        requires = f"; requires {', '.join(row['requires'])}" if row["requires"] else ""
        print(f"{row['command']:<24}{row['function']}: {row['finds']}\n{'':<24}{row['cost']}{requires}; {row['paper']}")


def facts(entry: Algorithm) -> dict[str, Any]:
    """Return what a reader needs to know of an algorithm as JSON data."""
    return {
        "command": f"gpu-pregel {entry.command}",
        "function": f"gp.{entry.name}",
        "result": f"gp.{entry.result}",
        "finds": entry.purpose + (f" ({entry.note})" if entry.note else ""),
        "requires": list(entry.requires),
        "options": {option.argument: option.help for option in entry.options},
        "cost": entry.cost,
        "devices": list(entry.devices),
        "paper": entry.paper,
    }
