"""``gpu-pregel runs STORE show RUN --html FILE``: write the page of a run, once or until the run is over."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from gpu_pregel.cli._common import check_before_work, print_line
from gpu_pregel.errors import ArgumentError

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the page."""
    parser.add_argument("--html", metavar="FILE", help="write a page that shows the run, to be opened in a browser")
    parser.add_argument(
        "--refresh",
        type=_seconds,
        metavar="SECONDS",
        help="write the page again and again until the run is over; an open page loads itself as often",
    )


def _seconds(text: str) -> float:
    """Parse a number of seconds from 0.2; an argparse type."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.2 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.2 to 86400")
    return value


def check_options(options: argparse.Namespace) -> None:
    """Raise, before any work begins, if the page cannot be written, or another output was asked for, too."""
    if options.html is None:
        if options.refresh is not None:
            raise ArgumentError("--refresh is how often the page is written: pass --html FILE as well")
        return
    for name in ("json", "values"):
        if getattr(options, name):
            raise ArgumentError(f"--{name} prints, and --html writes a page: pass one of them")
    from gpu_pregel.io._files import check_target

    check_before_work(check_target, options.html)


def write_page(store: Store, options: argparse.Namespace) -> None:
    """Write the page of a run; with ``--refresh``, until the run is over or Ctrl-C."""
    from gpu_pregel.host.stores.rows import ENDED_STATUSES
    from gpu_pregel.workflows.page.run_data import is_live

    try:
        while options.refresh is not None:
            row = store.run(options.run_id)
            if row.status in ENDED_STATUSES or not is_live(row):
                break
            _write(store, options, options.refresh)
            time.sleep(options.refresh)
    except KeyboardInterrupt:
        _write(store, options, None)
        raise
    _write(store, options, None)
    print_line("write", options.html)


def _write(store: Store, options: argparse.Namespace, refresh: float | None) -> None:
    from gpu_pregel.io._files import atomic_file
    from gpu_pregel.workflows.page import page_of

    page = page_of(store, options.run_id, refresh=refresh)
    with atomic_file(options.html) as file:
        file.write(page.encode("utf-8", "backslashreplace"))
