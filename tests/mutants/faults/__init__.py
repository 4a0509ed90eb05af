"""The faults, by the part of the code in which they are."""

from __future__ import annotations

from tests.mutants.faults import graphs, operators, programs

FAULTS = (*programs.FAULTS, *operators.FAULTS, *graphs.FAULTS)
