"""Kill masters, workers and servers again and again, and check that nothing is lost, twice or forgotten.

    python -m tests.adversary                               the whole table: about an hour on one quiet core
    python -m tests.adversary --only kills-sqlite --count 20
    python -m tests.adversary --only calls-sqlite --seed 17 --count 1    one failure again, as far as times repeat
    python -m tests.adversary --only networkx               one odd call of each function of NetworkX, 200 times
    python -m tests.adversary --only weights --only partitions    algorithms and vertex programs, which no kill disturbs

The exit status is 1 if anything is found. Campaigns that need PostgreSQL or a newer kernel are skipped without it.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from pathlib import Path

from tests.adversary.campaigns import CAMPAIGNS, Report, Request, server
from tests.adversary.evidence import BOUND, worst

_COLUMNS = ("campaign", "done", "runs", "lost", "twice", "forgotten", "errors", "repeated", "oldest unsaved", "seconds")


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    names = [campaign.name for campaign in CAMPAIGNS]
    parser = argparse.ArgumentParser(prog="python -m tests.adversary", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=names, help="a campaign; may be repeated")
    parser.add_argument("--count", type=int, help="kills, fights, programs, sweeps or graphs of each campaign")
    parser.add_argument("--seed", type=int, help="seed of the first run of each campaign (default random)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further run after this time")
    parser.add_argument(
        "--margin", type=float, default=0.25, help="seconds by which a busy machine may be late (default 0.25)"
    )
    parser.add_argument("--json", type=Path, help="file for the results")
    options = parser.parse_args(arguments)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    request = Request(options.count, seed, time.monotonic() + 60 * options.minutes, options.margin)
    chosen = tuple(campaign for campaign in CAMPAIGNS if options.only is None or campaign.name in options.only)
    print(f"seed {seed}", flush=True)
    reports = []
    with server(chosen) as cluster:
        for campaign in chosen:
            if why := campaign.why_skipped():
                reports.append(Report(campaign.name, campaign.unit, skipped=why))
            else:
                reports.append(campaign.run(request, cluster, tell))
    print(table(reports))
    if options.json is not None:
        options.json.write_text(
            json.dumps({"seed": seed, "reports": [report.as_data() for report in reports]}, indent=1)
        )
    return 1 if any(report.found.problems for report in reports) else 0


def tell(line: str) -> None:
    """Show progress, on one line if it goes to a terminal."""
    is_progress = " of " in line and sys.stderr.isatty()
    print(line, end="\r" if is_progress else "\n", file=sys.stderr, flush=True)


def table(reports: list[Report]) -> str:
    """Return a table of the results."""
    rows = [_COLUMNS, *map(_row, reports)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for report in reports:
        late = sum(age > BOUND["master"] for age in report.found.ages)
        if report.skipped:
            lines.append(f"{report.name} was skipped: {report.skipped}")
        if report.notes or late:
            counts = ", ".join(f"{name} {count}" for name, count in report.notes.most_common())
            lines.append(f"{report.name}: {counts}; unsaved for more than {BOUND['master'] * 1e3:.0f} ms: {late}")
    return "\n".join(lines)


def _row(report: Report) -> tuple[str, ...]:
    found = report.found
    lists = (found.lost, found.twice, found.forgotten, found.errors)
    return (
        report.name,
        f"{report.done} {report.unit}",
        str(report.runs),
        *(str(len(one)) for one in lists),
        str(found.repeated),
        worst(found.ages),
        f"{report.seconds:.0f}",
    )


if __name__ == "__main__":
    sys.exit(main())
