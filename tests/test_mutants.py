"""Tests of the planted faults and of the list of long cases: that they fit the code and the tests as they are.

``python -m tests.mutants`` plants the faults.
"""

from __future__ import annotations

from tests import long
from tests.mutants.__main__ import run_tests
from tests.mutants.fault import ROOT
from tests.mutants.faults import FAULTS, QUICK


def test_all_faults_can_be_planted() -> None:
    assert [problem for fault in FAULTS if (problem := fault.problem())] == []
    assert len(FAULTS) >= 150
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.name for fault in FAULTS} > QUICK
    assert len({(fault.file, fault.old, fault.new) for fault in FAULTS}) == len(FAULTS)


def test_their_tests_and_the_long_cases_exist() -> None:
    names = sorted({name for fault in FAULTS for name in fault.tests} | {*long.NAMES})
    status, output = run_tests(ROOT, names, "--collect-only", "-n", "0", timeout=None)
    assert status == 0, output[-1000:]


def test_the_list_of_long_cases_is_sorted_and_has_each_name_once() -> None:
    assert sorted(set(long.NAMES)) == long.NAMES
