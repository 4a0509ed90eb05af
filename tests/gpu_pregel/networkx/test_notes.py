"""The notes on limits in README's table and in NetworkX's docstrings."""

from __future__ import annotations

import re

import networkx as nx
import pytest

from gpu_pregel.networkx import FUNCTIONS


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.note])
def test_note_says_with_what_or_without_what_a_call_is_taken(name: str) -> None:
    assert re.fullmatch(r"(for|with|without|by) [^.;]*", FUNCTIONS[name].note)


def test_docstrings_of_networkx_say_what_is_left_to_it() -> None:
    text = " ".join((nx.bridges.__doc__ or "").split())
    assert text.endswith("Calls without root; others are left to NetworkX.")
    assert "left to NetworkX" not in (nx.pagerank.__doc__ or "")
