"""Plant each fault in a copy of the code and run the test that must find it.

    python -m tests.mutants              all faults: about twenty minutes on two cores
    python -m tests.mutants --quick      those that CI plants
    python -m tests.mutants fences rows  those with one of these words in their name or file

The exit status is 1 if a test fails without a fault, or does not notice one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from tests.mutants.fault import ROOT, Fault
from tests.mutants.faults import FAULTS, QUICK

COPIED = ("conftest.py", "examples", "gpu_pregel", "host", "kernels", "pyproject.toml", "tests")
TEST_SECONDS, TIMEOUT = 100, 400
"""The time limit of a test with a fault, and of the process that runs it; longer is as good as a failure."""
TOO_LONG = 124
FOUND = {1: "found", 2: "found at import", -signal.SIGABRT: "aborted", -signal.SIGSEGV: "crashed", TOO_LONG: "too long"}
"""The exit statuses of pytest that mean that a fault was found; others say that the named test was not run."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="plant faults with one of these words in their name or file")
    parser.add_argument("--quick", action="store_true", help="plant only the faults that CI plants")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="faults planted at once")
    options = parser.parse_args(arguments)
    faults = [fault for fault in FAULTS if is_chosen(fault, options.words, quick=options.quick)]
    problems = [problem for fault in faults if (problem := fault.problem())]
    if problems or not faults:
        print("\n".join(problems) or "no fault has one of these words in its name or file")
        return 1
    planted = [fault for fault in faults if fault.test]
    print(f"{len(planted)} faults to plant, {len(faults) - len(planted)} proven equivalent", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trees = [copy_tree(Path(folder, str(k))) for k in range(max(1, options.jobs))]
        # CI has run these tests.
        if not options.quick and (failures := failures_without_faults(trees[0], planted)):
            print(f"these fail without a fault:\n{failures}")
            return 1
        missed = plant_all(trees, planted)
    for fault in missed:
        print(f"not found: {fault.name} ({fault.file}): {fault.test}")
    print(f"{len(planted) - len(missed)} of {len(planted)} faults were found")
    return 1 if missed else 0


def is_chosen(fault: Fault, words: list[str], *, quick: bool) -> bool:
    """Whether a fault is among those asked for."""
    return (fault.name in QUICK or not quick) and (
        not words or any(word in f"{fault.name} {fault.file}" for word in words)
    )


def copy_tree(target: Path) -> Path:
    """Copy the code and the tests."""
    target.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return target


def failures_without_faults(tree: Path, faults: list[Fault]) -> str:
    """Run the tests of all faults on the code as it is; return pytest's summary if any fails or is skipped."""
    tests = sorted({test for fault in faults for test in fault.tests})
    status, output = run_tests(tree, tests, "-n", "auto", timeout=None)
    return "" if status == 0 and "SKIPPED" not in output else output


def plant_all(trees: list[Path], faults: list[Fault]) -> list[Fault]:
    """Plant every fault in one of the copies; return those that no test found."""
    free: Queue[Path] = Queue()
    for tree in trees:
        free.put(tree)

    def check(fault: Fault) -> bool:
        tree = free.get()
        try:
            begin = time.monotonic()
            with planted(fault, tree):
                limits = ("--time-limit", str(TEST_SECONDS))
                status, _ = run_tests(tree, fault.tests, "-n", "0", "-x", *limits, timeout=TIMEOUT)
            found = FOUND.get(status, f"NOT FOUND, exit status {status}")
            print(f"{found:9} {time.monotonic() - begin:4.0f} s  {fault.name}", flush=True)
            return status in FOUND
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        results = list(pool.map(check, faults))
    return [fault for fault, found in zip(faults, results, strict=True) if not found]


@contextmanager
def planted(fault: Fault, tree: Path) -> Iterator[None]:
    """Change the code of a copy for a while."""
    file = tree / fault.file
    text = file.read_text()
    file.write_text(text.replace(fault.old, fault.new))
    try:
        yield
    finally:
        file.write_text(text)


def run_tests(tree: Path, tests: list[str], *options: str, timeout: float | None) -> tuple[int, str]:
    """Run pytest in a copy of the code; return its exit status, 124 if it took too long, and its summary."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        *options,
        *tests,
    ]
    data = os.environ.get("GPU_PREGEL_DATA", str(ROOT.parent / "shared" / "data"))
    # Plugins of other packages take longer to import than most tests run.
    only = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **only, "GPU_PREGEL_TESTS": "all", "PYTHONPATH": str(tree), "GPU_PREGEL_DATA": data}
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return TOO_LONG, ""
    return process.returncode, output


if __name__ == "__main__":
    sys.exit(main())
