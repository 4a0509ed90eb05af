"""The calls with which each function of the backend is compared with NetworkX, a module for each family."""

from __future__ import annotations

from importlib import import_module

from gpu_pregel.networkx import FUNCTIONS
from tests.gpu_pregel.networkx.comparison import Case

CASES: dict[str, list[Case]] = {}
for family in sorted({function.module for function in FUNCTIONS.values()}):
    CASES |= import_module(f"{__name__}.{family}").CASES
