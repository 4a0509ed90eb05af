"""``gpu-pregel runs``: list, show, watch, fork, retry, cancel, prune, delete and expire the runs in a store."""

from __future__ import annotations

import argparse
import ast
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gpu_pregel.cli import _common, _page, _watch
from gpu_pregel.errors import ArgumentError, ClaimedError, CodecError

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import RunRow
    from gpu_pregel.host.stores.store import Store


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "runs",
        help="list, show, watch, fork, retry, cancel, prune, delete and expire runs in a store",
        description="List, show, watch, fork, retry, cancel, prune, delete and expire the runs in a store.",
        epilog=f"Without an action, list the runs. {_common.example('runs runs.db show tuesday --values')}",
    )
    parser.add_argument("store", help="path of a SQLite file, or postgresql://…")
    add_schema(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run, action=_list, writes=False)
    actions = parser.add_subparsers(metavar="{list,show,watch,fork,retry,cancel,prune,delete,expire}")
    _add(actions, "list --json", _list, "list the runs")
    text = "show the history of a run, its vertices with --values, or everything on a page with --html"
    show = _add(actions, "show tuesday --at 7 --values", _show, text, "run_id")
    show.add_argument(
        "--at", type=int, metavar="SUPERSTEP", help="superstep of --values (default: the last committed one)"
    )
    show.add_argument(
        "--values",
        action="store_true",
        help="also print aggregates (the state of a state graph), values, failures, interrupts and timers",
    )
    _page.add_options(show)
    text = "follow a run until it ends or no program has it; exit status 0 if it has completed, otherwise 1"
    watch = _add(actions, "watch tuesday", _watch.watch, text, "run_id")
    watch.add_argument("--all", action="store_true", help="begin with the oldest superstep, not with the next one")
    text = "start a new run from a superstep of another one"
    fork = _add(actions, "fork tuesday --at 7 --set a=50", _fork, text, "run_id", writes=True)
    fork.add_argument(
        "--at", type=int, metavar="SUPERSTEP", help="superstep to fork from (default: the last committed one)"
    )
    fork.add_argument("--id", dest="new_id", help="id of the new run (default: a new unique id)")
    fork.add_argument(
        "--set",
        type=_assignment,
        action="append",
        default=[],
        metavar="ID=JSON",
        help="new value of a vertex, which is active in the first superstep of the new run; may be repeated",
    )
    text = "give the failed vertices of a held run new attempts, which resuming or serving it computes"
    _add(actions, "retry tuesday", _retry, text, "run_id", writes=True)
    text = "end a run, after the current superstep if a program is computing one"
    _add(actions, "cancel tuesday", _cancel, text, "run_id", writes=True)
    text = "remove old supersteps of a run"
    prune = _add(actions, "prune tuesday --keep 10", _prune, text, "run_id", writes=True)
    which = prune.add_mutually_exclusive_group(required=True)
    which.add_argument("--keep", type=int, metavar="COUNT", help="keep at least this many of the newest supersteps")
    which.add_argument("--before", type=int, metavar="SUPERSTEP", help="keep this superstep and later ones")
    delete = _add(actions, "delete tuesday --force", _delete, "delete a run", "run_id", writes=True)
    text = "delete runs that have ended and have not changed for a time"
    expire = _add(actions, "expire --older-than 30d --dry-run", _expire, text, writes=True)
    expire.add_argument(
        "--older-than",
        type=_seconds,
        required=True,
        metavar="TIME",
        help="time since the last change: 90s, 15m, 12h, 30d",
    )
    expire.add_argument("--status", action="append", help="their status (default: all of ended runs); may be repeated")
    expire.add_argument("--dry-run", action="store_true", help="only list the runs that would be deleted")
    delete.add_argument("--force", action="store_true", help="delete the run even while a program has claimed it")


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the schema of a store in PostgreSQL."""
    parser.add_argument("--schema", metavar="NAME", help="schema of the store in PostgreSQL (default gpu_pregel)")


def _add(actions: Any, example: str, action: Any, text: str, *positionals: str, writes: bool = False) -> Any:
    """Add an action; the first word of the example is its name."""
    parser = actions.add_parser(
        example.split()[0],
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_common.example(f"runs runs.db {example}"),
    )
    for positional in positionals:
        parser.add_argument(positional, help="id of the run")
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")
    parser.set_defaults(action=action, writes=writes)
    return parser


def run(options: argparse.Namespace) -> int:
    """Run the command and print its result to stdout; return the exit status."""
    with open_store(options.store, options.schema, writes=options.writes) as store:
        return options.action(store, options) or 0


def open_store(name: str, schema: str | None, *, writes: bool) -> Store:
    """Open an existing store, in PostgreSQL in a schema; read-only unless the action writes."""
    if name.startswith(("postgresql://", "postgres://")):
        from gpu_pregel.host.stores.postgres import PostgresStore

        return PostgresStore(name, schema="gpu_pregel" if schema is None else schema, create=False)
    if schema is not None:
        raise ArgumentError(f"--schema is that of a store in PostgreSQL, and {name!r} is a file: omit it")
    from gpu_pregel.host.stores.sqlite import SQLiteStore

    return SQLiteStore(name, create=False, read_only=not writes)


def _list(store: Store, options: argparse.Namespace) -> None:
    rows = store.runs()
    if options.json:
        _common.print_json({"runs": [_facts(row) for row in rows]})
        return
    table = [["run", "kind", "superstep", "status", "changed", "from"]]
    for row in rows:
        parent = "" if row.parent is None else _place(*row.parent)
        table.append([row.id, row.kind, str(row.head), row.status, _when(row.changed), parent])
    _print(table)


def _show(store: Store, options: argparse.Namespace) -> None:
    if options.at is not None and not options.values:
        raise ArgumentError("--at selects the superstep of --values: pass --values as well")
    _page.check_options(options)
    if options.html is not None:
        _page.write_page(store, options)
        return
    row, history = store.run(options.run_id), store.history(options.run_id)
    facts = _facts(row)
    facts["supersteps"] = [
        {"superstep": commit.step, "status": commit.status, "time": _when(commit.time), "bytes": commit.size}
        for commit in history
    ]
    if options.values:
        facts |= _state(store, row, options.at)
    if options.json:
        _common.print_json(facts)
        return
    for name in ("run", "kind", "status", "superstep", "owner", "claimed until", "created", "changed", "from"):
        if facts[name] is not None:
            print(f"{name:<14}{_common.printable(facts[name])}")
    _print(
        [
            ["superstep", "status", "time", "bytes"],
            *([str(one) for one in step.values()] for step in facts["supersteps"]),
        ]
    )
    lines = [f"{name} = {value}" for name, value in facts.get("aggregates", {}).items()]
    lines += [f"{vertex}: {value}" for vertex, value in facts.get("vertices", {}).items()]
    lines += [f"{vertex} failed: {failure}" for vertex, failure in facts.get("failed", {}).items()]
    lines += [f"{vertex} waits for an answer to {what}" for vertex, what in facts.get("interrupts", {}).items()]
    lines += [f"{vertex} waits until {time}" for vertex, time in facts.get("timers", {}).items()]
    lines += [f"numeric vertices, {name}: {what}" for name, what in facts.get("arrays", {}).items()]
    for line in lines:
        print(_common.printable(line))


def _state(store: Store, row: RunRow, superstep: int | None) -> dict[str, dict[str, str]]:
    if row.kind == "numeric":
        raise ArgumentError(f"run {row.id!r} has {row.kind} vertices: use gp.run(…, resume=True) to read its values")
    from gpu_pregel import agents
    from gpu_pregel.host.agents.previews import whole_text
    from gpu_pregel.host.agents.recovery import read_run
    from gpu_pregel.workflows.page.state_keys import state_keys, unwrap_value

    result = agents.state_at(store, row.id, superstep)

    def show(vertex: Any) -> str:
        try:
            return whole_text(result.vertices[vertex].value)
        except CodecError as error:  # of a type of the program, which this command does not import
            return f"<unreadable: {error}>"

    keys = state_keys(read_run(store, row.id, superstep).state)
    return {
        "aggregates": {
            name: whole_text(unwrap_value(value) if name in keys else value)
            for name, value in result.aggregates.items()
        },
        "vertices": {repr(vertex): show(vertex) for vertex in result.vertices},
        "failed": {repr(vertex): f"{why.type}: {why.text}" for vertex, why in result.failed.items()},
        "interrupts": {repr(vertex): whole_text(question) for vertex, question in result.interrupts.items()},
        "timers": {repr(vertex): _when(seconds) for vertex, seconds in result.timers.items()},
        "arrays": {name: _range(array) for name, array in result.arrays.items()},
    }


def _range(array: Any) -> str:
    """Describe the values of numeric vertices."""
    count = f"{len(array):,} of {array.dtype}"
    return f"{count}, from {array.min()} to {array.max()}" if len(array) else count


def _fork(store: Store, options: argparse.Namespace) -> None:
    from gpu_pregel import agents
    from gpu_pregel.host.agents.options import new_run_id

    row = store.run(options.run_id)
    superstep = row.head if options.at is None else options.at
    if row.kind != "numeric":
        values = _new_values(store, row, superstep, options.set) if options.set else None
        new_id = agents.fork(store, row.id, superstep, options.new_id, values=values)
    elif options.set:
        raise ArgumentError(f"run {row.id!r} has {row.kind} vertices: --set changes values of agents")
    else:
        saved = store.load(row.id, superstep)
        if saved.base_step != superstep:
            raise ArgumentError(
                f"run {row.id!r} has no checkpoint of superstep {superstep}: the previous one is {saved.base_step}"
            )
        new_id = new_run_id() if options.new_id is None else options.new_id
        store.fork(row.id, superstep, new_id, saved.base(), blobs={name: saved.blob(name) for name in saved.blobs})
    _common.print_json({"run": new_id}) if options.json else print(new_id)


def _assignment(text: str) -> tuple[str, Any]:
    """Parse ``ID=JSON``; an argparse type."""
    vertex, separator, value = text.partition("=")
    try:
        if separator:
            return vertex, json.loads(value)
    except ValueError as error:
        problem = f"{value!r} is not JSON ({error}): write text in double quotes, such as 'a=\"text\"'"
        raise argparse.ArgumentTypeError(problem) from None
    raise argparse.ArgumentTypeError(f"{text!r} is not of the form ID=JSON, such as a=50")


def _new_values(store: Store, row: RunRow, superstep: int, given: list[tuple[str, Any]]) -> dict[Any, Any]:
    """Return the given values by id, which is written as in Python, or as text without quotes."""
    from gpu_pregel import agents

    known, values = set(agents.state_at(store, row.id, superstep).vertices), {}
    for text, value in given:
        vertex: Any = text
        with suppress(ValueError, SyntaxError, TypeError):
            written = ast.literal_eval(text)
            vertex = written if type(written) in (str, int, bytes, tuple) and written in known else text
        if vertex not in known:
            raise ArgumentError(
                f"run {row.id!r} has no vertex {text} after superstep {superstep}: "
                f"write its id as runs show --values does"
            )
        if vertex in values:
            raise ArgumentError(f"--set was given twice for vertex {vertex!r}")
        values[vertex] = value
    return values


def _retry(store: Store, options: argparse.Namespace) -> None:
    from gpu_pregel import agents

    vertices = [repr(vertex) for vertex in agents.retry(store, options.run_id)]
    if options.json:
        _common.print_json({"run": options.run_id, "vertices": vertices})
    else:
        print(f"run {options.run_id!r} retries {', '.join(map(_common.printable, vertices))}")


def _cancel(store: Store, options: argparse.Namespace) -> None:
    from gpu_pregel import agents

    is_owned = agents.cancel(store, options.run_id)
    if options.json:
        _common.print_json({"run": options.run_id, "cancelled": not is_owned})
    elif is_owned:
        print(f"run {options.run_id!r} ends after the superstep that its program is computing")
    else:
        print(f"cancelled run {options.run_id!r}")


def _prune(store: Store, options: argparse.Namespace) -> None:
    first = store.prune(options.run_id, keep=options.keep, before=options.before)
    _common.print_json({"first": first}) if options.json else print(f"superstep {first} is now the oldest")


def _delete(store: Store, options: argparse.Namespace) -> None:
    try:
        store.delete(options.run_id, force=options.force)
    except ClaimedError as error:
        raise ClaimedError(error.run, error.owner, error.until, "--force") from None
    _common.print_json({"deleted": options.run_id}) if options.json else print(f"deleted run {options.run_id!r}")


def _seconds(text: str) -> float:
    """Parse a time with a unit."""
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:])
    if unit is None or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no time: pass a whole number with a unit, such as 90s or 30d")
    return int(text[:-1]) * float(unit)


def _expire(store: Store, options: argparse.Namespace) -> None:
    from gpu_pregel.host.stores.rows import ENDED_STATUSES

    statuses = options.status or ENDED_STATUSES
    runs = store.expire(options.older_than, statuses=statuses, dry_run=options.dry_run)
    if options.json:
        _common.print_json({"runs": runs, "deleted": not options.dry_run})
        return
    for run_id in runs:
        print(f"{'would delete' if options.dry_run else 'deleted'} run {_common.printable(repr(run_id))}")


def _facts(row: RunRow) -> dict[str, Any]:
    return {
        "run": row.id,
        "kind": row.kind,
        "status": row.status,
        "superstep": row.head,
        "owner": row.owner,
        "claimed until": _when(row.lease) if row.lease > time.time() else None,
        "created": _when(row.created),
        "changed": _when(row.changed),
        "from": None if row.parent is None else _place(*row.parent),
    }


def _place(run_id: str, superstep: int) -> str:
    return f"{run_id}, superstep {superstep}"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def _print(table: list[list[str]]) -> None:
    shown = [list(map(_common.printable, row)) for row in table]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        print("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
