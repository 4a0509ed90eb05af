"""Agent runs in all stores: options that change results are stored; others are refused or recorded."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Aggregator, RetryPolicy, TopK, Vertex
from gpu_pregel.errors import ArgumentError, CheckpointError
from gpu_pregel.host.agents import formats, recovery
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.stores.store import Store
from tests.agents import values
from tests.stores import Open

VERTICES = [Vertex(name, 0) for name in "abc"]


def collecting(ctx: Any) -> None:
    """In each superstep vertices send and contribute 1, 2 and 3; "a" adds what arrives."""
    mine = "abc".index(ctx.vertex_id) + 1
    if ctx.vertex_id == "a":
        ctx.value += sum(ctx.messages) + ctx.aggregated("most")
    ctx.send("a", mine)
    ctx.aggregate("most", mine)


def begin(store: Store, compute: Any = collecting, **options: Any) -> None:
    """Run superstep 0."""
    options = {"aggregators": {"most": Aggregator("max", initial=0)}, **options}
    options |= {"max_supersteps": 1, "on_limit": "return", "store": store, "run_id": "run"}
    gp.agents.run(VERTICES, compute, **options)


def proceed(opened: Open, supersteps: int, compute: Any = collecting, **options: Any) -> int:
    """Resume the run until this number of supersteps; return the value of "a"."""
    options = {"max_supersteps": supersteps, "on_limit": "return", **options}
    return int(gp.agents.resume(opened(), "run", compute, **options).values["a"])


def test_options_need_not_be_repeated(opened: Open) -> None:
    """Without its combiner a run would add 6 in each superstep, and without its aggregator it would fail."""
    begin(opened(), combiner="max")
    assert [proceed(opened, supersteps) for supersteps in (2, 3)] == [6, 12]


def test_a_fork_and_checkpoint_data_keep_the_options(opened: Open) -> None:
    begin(opened(), combiner=TopK(2))
    gp.agents.fork(opened(), "run", 0, "fork")

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "a":
            ctx.value = ctx.messages

    options: dict[str, Any] = {"max_supersteps": 2, "on_limit": "return"}
    with gp.agents.reopen(opened(), "fork", compute, **options) as run:
        data = run.checkpoint_data()
    for result in (gp.agents.resume(opened(), "fork", compute, **options), gp.agents.run(data, compute, **options)):
        values(result, {"a": [[3, 2]], "b": 0, "c": 0})
    with pytest.raises(CheckpointError, match=r"checkpoint_data: was started with combiner=TopK\(k=2\), but combiner"):
        gp.agents.run(data, compute, combiner="max")
    assert gp.agents.run(data, compute, combiner="max", override="combiner", **options).values["a"] == [3]


def first(m: Any) -> None:
    m.aggregated("most")


def second(m: Any) -> None:
    m.use("compute")


def capped(most: int, a: int, b: int) -> int:
    return min(most, a + b)


def named(name: str, function: Any) -> Any:
    """Return the function under another name."""
    function.__qualname__ = name
    return function


CHANGES: list[Any] = [
    ("combiner", "max", "min", "combiner='max', but combiner='min'"),
    ("combiner", None, "min", "combiner=None, but combiner='min'"),
    ("combiner", TopK(1), TopK(2), r"combiner=TopK\(k=1\), but combiner=TopK\(k=2\)"),
    ("combiner", "max", named("theirs", lambda a, b: a), "combiner='max', but combiner=theirs"),
    ("aggregators", {"most": "max"}, {"most": "min"}, r"aggregators\['most'\]=.*'max'.*but.*'min'"),
    ("aggregators", {"most": "max", "n": "sum"}, {"most": "max"}, r"aggregators\['n'\]=.*but no aggregator 'n'"),
    ("aggregators", {"most": Aggregator("max", initial=1)}, {"most": "max"}, "initial=1, .* but .*initial=None"),
    ("aggregators", {"most": Aggregator("max", persistent=True)}, {"most": "max"}, "persistent=True.*persistent=False"),
    ("master", first, second, "master=first, but master=second"),
    ("master", first, named("first", lambda m: None), "master=first, but another function was passed"),
    ("combiner", partial(capped, 4), partial(capped, 5), "combiner=partial, but another function was passed"),
    ("combiner", partial(pow, mod=4), partial(pow, mod=5), "combiner=partial, but another function was passed"),
    ("resolve", None, lambda *_: None, "resolve=None, but resolve=.*lambda"),
    ("on_missing", "drop", "create", "on_missing='drop', but on_missing='create'"),
    ("on_failure", "continue", "raise", "on_failure='continue', but on_failure='raise'"),
    ("retry", RetryPolicy(attempts=2), RetryPolicy(), r"attempts=2, exceptions=\(Exception\)\), but .*attempts=3"),
    ("retry", RetryPolicy(), RetryPolicy(exceptions=(OSError,)), r"Exception\)\), but .*\(OSError\)"),
    ("max_message", 100, None, "max_message=100, but max_message=None"),
    ("max_outbox", 100, 200, "max_outbox=100, but max_outbox=200"),
    ("max_record", 1000, 100, "max_record=1000, but max_record=100"),
]


@pytest.mark.parametrize(("name", "before", "now", "error"), CHANGES)
def test_another_option_is_refused_unless_it_overrides(name: str, before: Any, now: Any, error: str) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += 1

    with gp.MemoryStore() as store:
        begin(store, compute, **{"base_every": 2, name: before})
        proceeds: Any = lambda supersteps, **options: proceed(lambda: store, supersteps, compute, **options)
        with pytest.raises(
            CheckpointError, match=f"run 'run': was started with .*{error}.*override='{name}'.*step 1 on"
        ):
            proceeds(2, **{name: now})
        assert proceeds(2, **{name: before}) == 2
        changed: dict[str, Any] = {name: now, "override": name}
        assert proceeds(3, **changed, base_every=2) == 3
        for supersteps in (4, 5):  # before and after a base
            with pytest.raises(CheckpointError, match=f"was started with .*{name}"):
                proceeds(supersteps, **{name: before})
            assert proceeds(supersteps, **{name: now}, base_every=1) == supersteps
            store.prune("run", keep=1)


def test_functions_must_be_passed_again(opened: Open) -> None:
    total: Any = named("total", lambda a, b: a + b)
    begin(opened(), combiner=total, aggregators={"most": Aggregator(total, initial=0)}, master=first)
    given: dict[str, Any] = {"combiner": total, "aggregators": {"most": Aggregator(total, initial=0)}, "master": first}
    for name, shown in (
        ("combiner", "combiner=total"),
        ("aggregators", r"aggregators\['most'\]=total"),
        ("master", ""),
    ):
        others = {one: value for one, value in given.items() if one != name}
        error = f"was started with {shown}.*functions.* are not stored: pass {name} again, or override='{name}' to cont"
        with pytest.raises(CheckpointError, match=error):
            proceed(opened, 2, **others)
    assert proceed(opened, 2, **given) == 12
    del given["master"]
    assert proceed(opened, 3, **given, override=["master"]) == 24
    assert proceed(opened, 4, **given) == 36


def test_code_is_compared_in_the_same_version_of_python(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(store, master=named("master", lambda m: None))
    changed = named("master", lambda m: m.superstep)
    with pytest.raises(CheckpointError, match="master=master, but another function was passed"):
        gp.agents.reopen(store, "run", collecting, master=changed)
    monkeypatch.setattr("gpu_pregel.host.agents.stored_options.sys.version_info", (3, 99, 0))
    with gp.agents.reopen(store, "run", collecting, master=changed):
        pass


def test_a_run_of_an_older_release_opens_and_keeps_its_options_from_then_on(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(state: State) -> bytes:
        """Encode a state as versions up to 3 did, without options."""
        vertices, inbox = list(state.vertices.values()), state.inbox
        pairs = [pair for one in vertices for pair in one.edge_pairs]
        columns = (
            list(state.vertices),
            [bytes(one.value) for one in vertices],
            bytes(one.halted for one in vertices),
            [len(one.targets) for one in vertices],
            [target for target, _ in pairs],
            [weight for _, weight in pairs],
            list(inbox),
            [len(messages) for messages in inbox.values()],
            [message for messages in inbox.values() for message in messages],
        )
        return encode((*columns, state.aggregates, state.function, []))

    with monkeypatch.context() as patch:
        for module in (formats, recovery):
            patch.setattr(module, "pack_state", pack)
        begin(opened(), combiner="max", base_every=1)
    assert gp.agents.state_at(opened(), "run").values == {"a": 0, "b": 0, "c": 0}
    assert proceed(opened, 2, combiner="min", aggregators={"most": Aggregator("max", initial=0)}) == 1 + 3
    assert proceed(opened, 3) == 2 * (1 + 3)
    with pytest.raises(CheckpointError, match="combiner='min', but combiner='max'"):
        proceed(opened, 4, combiner="max")


def test_a_refused_run_is_released(store: Store) -> None:
    begin(store)
    with pytest.raises(CheckpointError):
        gp.agents.resume(store, "run", collecting, combiner="max")
    assert store.run("run").lease == 0


def test_invalid_overrides_are_refused(store: Store) -> None:
    with pytest.raises(ArgumentError, match="override= changes the options of a stored run"):
        gp.agents.run(VERTICES, collecting, override="combiner")
    begin(store)
    with pytest.raises(ArgumentError, match=r"override must be 'combiner', .* or 'max_record', not 'workers'"):
        gp.agents.resume(store, "run", collecting, override=["workers"])


def test_options_change_without_a_superstep(store: Store) -> None:
    begin(store)
    for _ in range(2):
        assert proceed(lambda: store, 1, combiner="max", override="combiner") == 0
    row = store.run("run")
    assert (row.status, row.head) == ("max_supersteps", 0)
    assert gp.agents.state_at(store, "run").status == "max_supersteps"
    assert proceed(lambda: store, 2) == 6
