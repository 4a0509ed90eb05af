"""``gpu-pregel agents``: serve runs of agents, that is, continue those in a store that no program has."""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from gpu_pregel.cli import _common
from gpu_pregel.cli._wording import in_options
from gpu_pregel.cli.runs import add_schema, open_store

if TYPE_CHECKING:
    from gpu_pregel.agents import Event

_QUIET = ("superstep", "emit", "attempt", "interrupt", "commit", "hold", "end")
"""Events that are only shown with ``--verbose``."""
_FAILED = 1


def named_function(text: str) -> tuple[str, str]:
    """Parse ``MODULE:FUNCTION``; an argparse type."""
    module, _, name = text.partition(":")
    if module.endswith(".py"):
        module_name = module.removesuffix(".py").strip("./").replace("/", ".")
        raise argparse.ArgumentTypeError(f"{text!r} names a file: pass its module, such as {module_name}:{name}")
    if not all(part.isidentifier() for part in (*module.split("."), name)):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form MODULE:FUNCTION, such as orders:compute")
    return module, name


def seconds(text: str) -> float:
    """Parse a number of seconds above 0; an argparse type."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "agents",
        help="serve runs of agents",
        description="Serve runs of agents.",
        epilog=_common.example("agents serve orders:compute --store runs.db"),
    )
    actions = parser.add_subparsers(metavar="{serve}", required=True)
    serve = actions.add_parser(
        "serve",
        help="continue the runs in a store that no program has",
        description="Continue the runs in a store that no program has: those whose program crashed or was stopped, "
        "forks, runs whose timers are due, held runs that have their answers, and runs with messages or a request to "
        "end. Several of these commands may serve one store. SIGTERM and Ctrl-C stop after the current superstep of "
        "each run, with exit status 0; a second signal ends at once, and no run is lost. With --once, the exit "
        "status is 1 if a run failed. Log lines go to stderr, and to stdout with --json.",
        epilog=_common.example("agents serve orders:compute --store runs.db --workers 2"),
    )
    serve.add_argument(
        "function",
        type=named_function,
        metavar="MODULE:FUNCTION",
        help="the compute function, or a dict of arguments of gp.agents.run, in a module of the current folder or on "
        "PYTHONPATH",
    )
    serve.add_argument("--store", required=True, help="path of a SQLite file, or postgresql://…")
    add_schema(serve)
    serve.add_argument(
        "--run", dest="pattern", default="*", metavar="ID", help="serve only runs with this id, or 'orders-*'"
    )
    _add_limits(serve)
    serve.add_argument("--once", action="store_true", help="end when no run can continue, instead of waiting")
    serve.add_argument("--json", action="store_true", help="print events as lines of JSON on stdout")
    serve.add_argument(
        "--record",
        action="store_true",
        help="record attempts and what they emit in the store, for runs watch and --html",
    )
    serve.add_argument("-v", "--verbose", action="store_true", help="also print supersteps, attempts and emissions")
    serve.set_defaults(run=run, option_strings=frozenset(serve._option_string_actions))


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options with numbers, and ``--override``."""
    count = _common.whole_number
    parser.add_argument(
        "--workers", type=count(0), metavar="N", help="worker processes per run (default 0: compute in this process)"
    )
    parser.add_argument(
        "--threads", type=count(0), metavar="N", help="attempts side by side on threads of this process (default 0)"
    )
    parser.add_argument(
        "--concurrency", type=count(1), default=4, metavar="N", help="runs that are computed at once (default 4)"
    )
    parser.add_argument(
        "--interval", type=seconds, default=1.0, metavar="S", help="seconds between searches for runs (default 1)"
    )
    parser.add_argument(
        "--lease",
        dest="lease_seconds",
        type=seconds,
        metavar="S",
        help="seconds after which others may take the runs of a machine that went down (default 60)",
    )
    parser.add_argument(
        "--timeout", type=seconds, metavar="S", help="maximum seconds of an attempt; needs --workers or --threads"
    )
    parser.add_argument(
        "--max-supersteps", type=count(1), metavar="N", help="maximum number of supersteps (default: as started)"
    )
    parser.add_argument(
        "--override",
        action="append",
        metavar="NAME",
        help="let an option differ from that of the run, or with compute its function; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes or, with ``--once``, until no run can continue; return the exit status."""
    from gpu_pregel import agents
    from gpu_pregel.cli._programs import load_agents
    from gpu_pregel.host.agents.options import as_observers

    arguments = load_agents(*options.function)
    names = ("workers", "threads", "lease_seconds", "timeout", "max_supersteps", "override")
    arguments |= {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    log = EventLog(options)
    with open_store(options.store, options.schema, writes=True) as store:
        log.start(store.name)
        arguments["observer"] = [log, *as_observers(arguments.get("observer", ()))]
        if options.record:
            arguments["observer"].append(agents.Timeline(store))
        with redirect_stdout(sys.stderr):
            left = agents.serve(
                store,
                **arguments,
                run=options.pattern,
                interval=options.interval,
                concurrency=options.concurrency,
                once=options.once,
                stop=log.closed,
            )
    log.end(left)
    has_failed = options.once and left.keys() & {"failed", "error"}
    return _FAILED if has_failed or log.closed.is_set() else 0


class EventLog:
    """Prints the events of a supervisor: as text on stderr, or as lines of JSON on stdout.

    Attributes
    ----------
    closed : threading.Event
        Set once nobody reads the output any more.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.closed = threading.Event()
        self._options = options
        self._out = sys.stdout

    def start(self, store: str) -> None:
        """Print what is served."""
        function, most = ":".join(self._options.function), self._options.concurrency
        self._print({"kind": "start", "function": function, "store": store, "concurrency": most})

    def __call__(self, event: Event) -> None:
        """Print an event."""
        if event.kind in _QUIET and not self._options.verbose:
            return
        record: dict[str, Any] = {"kind": event.kind}
        if event.run:
            record |= {"run": event.run, "superstep": event.superstep}
        if event.vertex is not None:
            record["vertex"] = event.vertex if isinstance(event.vertex, (str, int)) else repr(event.vertex)
        if event.attempt is not None:
            record["attempt"] = event.attempt
        facts = {name: fact for name, fact in event.facts.items() if name not in record}
        if isinstance(text := facts.get("text"), str):
            facts["text"] = in_options(text, self._options)
        if "payload" in facts:
            from gpu_pregel.host.agents.previews import whole_text

            facts["payload"] = whole_text(facts["payload"])
        self._print(record | facts)

    def end(self, left: dict[str, int]) -> None:
        """Print how many runs were left in each status."""
        self._print({"kind": "end", "left": left})

    def _print(self, record: dict[str, Any]) -> None:
        if self.closed.is_set():
            return
        now = time.time()
        try:
            if self._options.json:
                print(json.dumps({"time": round(now, 3), **record}, default=repr), file=self._out, flush=True)
            else:
                when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
                print(f"{when} {_common.printable(sentence(record))}", file=sys.stderr, flush=True)
        except OSError:  # nobody reads it: stop
            self.closed.set()


def sentence(record: dict[str, Any]) -> str:
    """Return a log line for people."""
    facts = dict(record)
    kind, run_id, superstep = facts.pop("kind"), facts.pop("run", None), facts.pop("superstep", None)
    text, status = facts.get("text", ""), facts.get("status")
    where = "" if run_id is None else f"run {run_id}, superstep {superstep}"
    if "vertex" in facts:
        where += f", vertex {facts.pop('vertex')!r}"
    known = {
        "start": lambda: f"serving {facts['function']} in {facts['store']} (runs at once: {facts['concurrency']})",
        "claim": lambda: f"{where}: continued ({status} before)",
        "release": lambda: f"{where}: {status}",
        "lost": lambda: f"{where}: taken over by another program",
        "postpone": lambda: f"{where}: cannot continue, next attempt in {facts['seconds']:g} s or later: {text}",
        "refuse": lambda: f"{where}: {text}",
        "failure": lambda: f"{where}: failed: {facts['type']}: {text}",
        "outage": lambda: f"store: {text}",
        "stop": lambda: f"stopping after the current superstep (runs: {facts['active']})",
        "end": lambda: f"ended (runs: {_counts(facts.get('left', {}))})",
    }
    if kind in known and (kind != "end" or run_id is None):
        return known[kind]()
    return f"{where}: {kind} {', '.join(f'{name} {fact}' for name, fact in facts.items())}".rstrip()


def _counts(left: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(left.items())) or "none"
