# PYTHON_ARGCOMPLETE_OK
"""Tab completion of the command line, by the package argcomplete (extra ``completion``).

``eval "$(register-python-argcomplete gpu-pregel)"`` in the shell's start file enables it.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

DEVICES = ("auto", "cpu", "cuda", "emulated", "python")


def complete(parser: argparse.ArgumentParser) -> None:
    """Print completions and exit if a shell asks for them; otherwise, do nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    try:
        import argcomplete
    except ImportError:
        return
    completers = {
        "device": argcomplete.completers.ChoicesCompleter(DEVICES),
        "format": _formats,
        "to": _formats,
        "program": argcomplete.completers.FilesCompleter(("py",)),
        "run_id": _run_ids,
        "pattern": _run_ids,
        "copy": argcomplete.completers.DirectoriesCompleter(),
    }
    for action in _actions(parser):
        if action.dest in completers:
            action.completer = completers[action.dest]  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)


def _formats(**_: Any) -> list[str]:
    from gpu_pregel.io._formats import FORMATS

    return list(FORMATS)


def _run_ids(*, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Return the ids of the runs in the store that the command line names."""
    from gpu_pregel.cli.runs import open_store
    from gpu_pregel.errors import GpuPregelError

    with suppress(GpuPregelError), open_store(parsed_args.store, parsed_args.schema, writes=False) as store:
        return [row.id for row in store.runs()]
    return []
