"""Wall time of the whole command line and of ``import gpu_pregel``, in fresh processes."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from benchmarks._measure import Summary, format_seconds, in_turn, machine, run_program, table, timed, write_json

HELP = "wall time of the whole command line and of the import"
_BARE, _IMPORT, _COMMAND = "python -c pass", "python -c 'import gpu_pregel'", "gpu-pregel cc -g"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--scale", type=int, default=16, help="scale of the generated graph (default: 16)")
    parser.add_argument("--trials", type=int, default=9, help="processes per command (default: 9)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 0."""
    command = f"{_COMMAND} {arguments.scale}"
    commands: dict[str, list[str | Path]] = {
        _BARE: [sys.executable, "-c", "pass"],
        _IMPORT: [sys.executable, "-c", "import gpu_pregel"],
        command: [_console_script(), "cc", "-g", str(arguments.scale)],
    }
    trials: dict[str, list[float]] = {name: [] for name in commands}
    for words in commands.values():
        run_program(words)  # fills the caches of bytecode, kernels and pages

    def trial(name: str) -> None:
        trials[name].append(timed(run_program, commands[name])[1])

    in_turn(list(commands), arguments.trials, trial)
    summaries = {name: Summary.of(seconds) for name, seconds in trials.items()}
    import_seconds = summaries[_IMPORT].median - summaries[_BARE].median
    report = {
        "benchmark": "startup",
        "machine": machine(),
        "parameters": {"scale": arguments.scale, "trials": arguments.trials},
        "commands": {
            name: {"trials": each.trials, "median": each.median, "minimum": each.minimum, "quartiles": each.quartiles}
            for name, each in summaries.items()
        },
        "command_seconds": summaries[command].median,
        "import_seconds": import_seconds,
    }
    rows = [[name, format_seconds(each.median), f"{100 * each.spread:.0f}%"] for name, each in summaries.items()]
    print(table(["", "median", "spread"], rows))
    print(f"the import itself: {format_seconds(max(import_seconds, 0))}")
    write_json(arguments.output, report)
    return 0


def _console_script() -> Path:
    """Return the command installed with this interpreter, or else the first on the search path."""
    beside = Path(sys.executable).parent / "gpu-pregel"
    found = beside if beside.exists() else shutil.which("gpu-pregel")
    if found is None:
        raise ValueError("gpu-pregel is not installed: pip install -e .")
    return Path(found)
