"""Random programs on random graphs have the results of an independent simulator, with workers, threads or neither."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.host.agents.codec import encode
from tests.adversary.programs import random_program, result_of, simulate, summary
from tests.agents import PROCESSES, rows
from tests.devices import EXHAUSTIVE


def details(result: gp.agents.AgentResult) -> bytes:
    """Return what runs of a program have in common, besides what its simulation has."""
    failed = sorted([(vertex, one.type, one.text) for vertex, one in result.failed.items()], key=repr)
    trace = [[row[name] for name in ("computed", "messages", "failed", "retries")] for row in result.trace]
    return encode((list(result.vertices), failed, trace, rows(result)))


@settings(max_examples=40)
@given(chance=st.randoms(use_true_random=False), base_every=st.sampled_from([1, 2, 3, 50]), leaves=st.booleans())
def test_random_programs_are_as_simulated(chance: random.Random, base_every: int, leaves: bool) -> None:
    """A store does not change results, even if each superstep runs in another program."""
    program = random_program(chance)
    expected = simulate(program)
    plain = result_of(program)
    assert summary(plain) == expected
    with gp.MemoryStore() as store:
        assert summary(result_of(program, leaves, store=store, base_every=base_every)) == expected
        assert summary(gp.agents.state_at(store, "one")) == expected
        assert details(replace(gp.agents.state_at(store, "one"), trace=plain.trace)) == details(plain)


@PROCESSES
@pytest.mark.parametrize("seed", range(40 if EXHAUSTIVE else 3))
def test_random_programs_in_worker_processes_are_as_simulated(seed: int, workers: int) -> None:
    program = random_program(random.Random(f"workers {seed}"))
    result = result_of(program, workers=workers)
    assert summary(result) == simulate(program)
    assert details(result) == details(result_of(program))


@pytest.mark.parametrize("seed", range(200 if EXHAUSTIVE else 30))
def test_random_programs_on_threads_are_as_simulated(seed: int) -> None:
    program = random_program(random.Random(f"threads {seed}"))
    result = result_of(program, threads=3)
    assert summary(result) == simulate(program)
    assert details(result) == details(result_of(program))


def test_random_programs_have_all_kinds_of_ends() -> None:
    """The programs do not avoid what is difficult."""
    results = [result_of(random_program(random.Random(f"kinds {seed}"))) for seed in range(60)]
    kinds: set[Any] = {result.status for result in results}
    kinds |= {one.kind for result in results for one in result.failed.values()}
    assert kinds >= {"completed", "partial", "halted", "exception", "request"}
