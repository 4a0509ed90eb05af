"""Tests of the planted faults: that they fit the code as it is. ``python -m tests.mutants`` plants them."""

from __future__ import annotations

from tests.mutants.__main__ import run_tests
from tests.mutants.fault import ROOT
from tests.mutants.faults import FAULTS, QUICK


def test_all_faults_can_be_planted() -> None:
    assert [problem for fault in FAULTS if (problem := fault.problem())] == []
    assert len(FAULTS) >= 150
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.name for fault in FAULTS} > QUICK
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)


def test_their_tests_exist() -> None:
    names = sorted({name for fault in FAULTS for name in fault.tests})
    status, output = run_tests(ROOT, names, "--collect-only", "-n", "0", timeout=None)
    assert status == 0, output[-1000:]
