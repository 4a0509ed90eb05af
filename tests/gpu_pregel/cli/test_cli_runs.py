"""``gpu-pregel runs``: list, show, fork, cancel, prune, delete and expire runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.host.agents.codec import types
from gpu_pregel.workflows import START, StateGraph

Vertex = gp.agents.Vertex


@dataclass
class Painted:
    color: str

    def __repr__(self) -> str:
        return f"\x1b[{self.color}"


def count(ctx: Any) -> None:
    ctx.value += 1


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with an agent run and a numeric run."""
    path = tmp_path / "runs.db"
    with gp.SQLiteStore(path) as opened:
        agents: dict[str, Any] = {
            "store": opened,
            "run_id": "counting",
            "max_supersteps": 6,
            "on_limit": "return",
            "base_every": 2,
        }
        gp.agents.run([Vertex("a", 0), Vertex(("b", 1), 10)], count, **agents)
    ranks = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + 1,
        active="always",
    )
    checkpoint = gp.Checkpoint(path, "numeric", every=2)
    gp.run(gp.Graph.from_edgelist([0], [1]), ranks, max_supersteps=5, device="cpu", checkpoint=checkpoint)
    return str(path)


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Run a command and return its output, parsed if it is JSON."""
    assert main(["runs", *arguments]) == 0
    out = capsys.readouterr().out
    return json.loads(out) if "--json" in arguments else out


def test_list_runs(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = call(capsys, store).splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["run", "kind", "superstep", "status"],
        ["counting", "agents", "5", "max_supersteps"],
        ["numeric", "numeric", "4", "max_supersteps"],
    ]
    assert call(capsys, store, "list") == "\n".join(lines) + "\n"
    assert [run["run"] for run in call(capsys, store, "--json")["runs"]] == ["counting", "numeric"]


def test_show_history_and_values(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = call(capsys, store, "show", "counting", "--json", "--values", "--at", "2")
    assert shown["vertices"] == {"'a'": "3", "('b', 1)": "13"}
    assert [step["superstep"] for step in shown["supersteps"]] == list(range(6))
    assert shown["status"] == "max_supersteps"
    assert shown["claimed until"] is None
    text = call(capsys, store, "show", "counting", "--values")
    assert text.startswith("run           counting\n")
    assert text.endswith("'a': 6\n('b', 1): 16\n")


def test_show_the_state_of_a_state_graph_and_aggregates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class State(TypedDict):
        city: str
        notes: list[str]
        days: int

    path = str(tmp_path / "runs.db")
    with gp.SQLiteStore(path) as store:
        graph = StateGraph(State).add_node("look", lambda state: {"notes": ["sunny"]}).add_edge(START, "look")
        graph.compile(store=store).invoke({"city": "Oslo"}, {"configurable": {"thread_id": "trip"}})
        count = gp.agents.Aggregator("sum", persistent=True)

        def contribute(ctx: Any) -> None:
            ctx.contribute("total", 3)
            ctx.vote_to_halt()

        gp.agents.run([Vertex("a")], contribute, aggregators={"total": count}, store=store, run_id="counted")
    text = call(capsys, path, "show", "trip", "--values")
    assert "\ncity = 'Oslo'\nnotes = ['sunny']\ndays = None\n'__start__': " in text
    begun = call(capsys, path, "show", "trip", "--values", "--at", "-1", "--json")
    assert begun["aggregates"] == {"city": "'Oslo'", "notes": "None", "days": "None"}
    assert call(capsys, path, "show", "counted", "--values", "--json")["aggregates"] == {"total": "3"}


def test_show_failures_and_interrupts_of_a_held_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "asks":
            ctx.value = ctx.interrupt({"which": 2})
        elif ctx.vertex_id == "fails":
            raise OSError("no such place")
        ctx.vote_to_halt()

    path, names = str(tmp_path / "runs.db"), ["asks", "fails", "good"]
    with gp.SQLiteStore(path) as opened, pytest.raises(AgentsFailedError):
        gp.agents.run([Vertex(name, 0) for name in names], compute, store=opened, run_id="held")
    shown = call(capsys, path, "show", "held", "--json", "--values")
    assert (shown["status"], shown["superstep"]) == ("failed", -1)
    assert shown["vertices"] == {repr(name): "0" for name in names}
    assert shown["failed"] == {"'fails'": "OSError: no such place"}
    assert shown["interrupts"] == {"'asks'": "{'which': 2}"}
    assert call(capsys, path, "show", "held", "--values").splitlines()[-2:] == [
        "'fails' failed: OSError: no such place",
        "'asks' waits for an answer to {'which': 2}",
    ]
    assert call(capsys, path, "retry", "held") == "run 'held' retries 'fails'\n"
    assert call(capsys, path, "show", "held", "--values").splitlines()[-1].startswith("'asks'")
    assert main(["runs", path, "retry", "held"]) == 2
    assert "run 'held' has no failed vertices in a held superstep" in capsys.readouterr().err


def test_values_of_types_that_the_command_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "runs.db")
    gp.agents.register(Painted, "painted")
    vertices = [Vertex("a", [Painted("red")]), Vertex("b", 1)]
    with gp.SQLiteStore(path) as opened:
        gp.agents.run(vertices, lambda ctx: ctx.interrupt(ctx.value), store=opened, run_id="run")
    types._remove(types.by_name["painted"])
    lines = call(capsys, path, "show", "run", "--values").splitlines()[-4:]
    assert lines[0].startswith("'a': <unreadable: value[0] has the type 'painted', which is not registered")
    assert lines[1] == "'b': 1"
    assert lines[2].startswith("'a' waits for an answer to b'")
    assert lines[3] == "'b' waits for an answer to 1"


def test_timers_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def compute(ctx: Any) -> None:
        ctx.wake_at(4_000_000_000)
        ctx.vote_to_halt()

    path = str(tmp_path / "runs.db")
    with gp.SQLiteStore(path) as opened:
        gp.agents.run([Vertex("a", 0)], compute, store=opened, run_id="run", on_waiting="return")
    assert call(capsys, path, "show", "run", "--values").splitlines()[-1] == "'a' waits until 2096-10-02 07:06:40 UTC"


def test_control_characters_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a failure's text, and of the representation of a value of a user's type."""

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "fails":
            raise OSError("\x1b[2Jcleared\n\x07'forged': 1\u202e\u00e9")
        ctx.interrupt(Painted("red"))

    path = str(tmp_path / "runs.db")
    gp.agents.register(Painted, "painted")
    vertices = [Vertex("a", Painted("blue")), Vertex("fails", 0)]
    with gp.SQLiteStore(path) as opened, pytest.raises(AgentsFailedError):
        gp.agents.run(vertices, compute, store=opened, run_id="held", retry=gp.agents.RetryPolicy(attempts=1))
    shown = call(capsys, path, "show", "held", "--values")
    assert all(line.isprintable() for line in shown.splitlines())
    assert shown.splitlines()[-4:] == [
        r"'a': \x1b[blue",
        "'fails': 0",
        r"'fails' failed: OSError: \x1b[2Jcleared\n\x07'forged': 1\u202eé",
        r"'a' waits for an answer to \x1b[red",
    ]


def test_integers_of_thousands_of_digits_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By their size, as Python does not convert them to decimal digits."""

    def compute(ctx: Any) -> None:
        ctx.aggregate("total", ctx.value)
        ctx.interrupt([ctx.value])

    path, values = str(tmp_path / "runs.db"), [10**4299, 10**4300, -(10**5000)]
    vertices = [Vertex(number, value) for number, value in enumerate(values)]
    total = {"total": gp.agents.Aggregator("sum", persistent=True)}
    with gp.SQLiteStore(path) as opened:
        gp.agents.run(vertices, compute, store=opened, run_id="run", aggregators=total, on_waiting="return")
    shown = call(capsys, path, "show", "run", "--values", "--json")
    large = [f"an integer of {value.bit_length():,} bits" for value in values[1:]]
    assert shown["vertices"] == {"0": str(values[0]), "1": large[0], "2": large[1]}
    assert shown["interrupts"] == {"0": str(values[:1]), "1": f"[{large[0]}]", "2": f"[{large[1]}]"}


def test_fork_continues_from_its_superstep(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, store, "fork", "counting", "--at", "1", "--id", "other") == "other\n"
    with gp.SQLiteStore(store) as opened:
        result = gp.agents.resume(opened, "other", count, max_supersteps=3, on_limit="return")
        assert (result.superstep, result.values) == (3, {"a": 3, ("b", 1): 13})
    new, another = (call(capsys, store, "fork", "numeric", "--at", "3", "--json")["run"] for _ in range(2))
    assert new != another
    listed = call(capsys, store, "--json")["runs"]
    assert [run["from"] for run in listed] == [None, None, "counting, superstep 1", *["numeric, superstep 3"] * 2]
    assert [run["run"] for run in listed[3:]] == [new, another]


def test_fork_with_other_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids are written as in Python; text may do without quotes, unless another id is written so."""

    def double(ctx: Any) -> None:
        ctx.value = [ctx.value] * 2
        ctx.vote_to_halt()

    path = str(tmp_path / "runs.db")
    ids = ["a", "7", 7, b"b", ("c", 1), "a b=", "(", "True", "[]"]
    given = {
        "a": {"x": [1, None]},
        "7": 1,
        "'7'": 2.5,
        "b'b'": "text",
        "('c', 1)": True,
        "(": "=",
        "True": "yes",
        "[]": 3,
    }
    with gp.SQLiteStore(path) as opened:
        gp.agents.run([Vertex(one, 0) for one in ids], double, store=opened, run_id="first")
        options = [f"--set={vertex}={json.dumps(value)}" for vertex, value in given.items()]
        new = call(capsys, path, "fork", "first", "--json", *options)["run"]
        result = gp.agents.resume(opened, new, double)
    expected = {"a": {"x": [1, None]}, 7: 1, "7": 2.5, b"b": "text", ("c", 1): True, "(": "=", "True": "yes", "[]": 3}
    assert result.values == {"a b=": [0, 0], **{one: [value] * 2 for one, value in expected.items()}}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["a"], "'a' is not of the form ID=JSON, such as a=50"),
        (["a=text"], "'text' is not JSON"),
        (["b=1"], "run 'counting' has no vertex b after superstep 5: write its id as runs show --values does"),
        (["('b', [])=1"], "no vertex ('b', [])"),
        (["a=1", "'a'=2"], "--set was given twice for vertex 'a'"),
    ],
)
def test_values_that_cannot_be_set(
    store: str, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: Any = main(["runs", store, "fork", "counting", *(f"--set={one}" for one in options)])
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    assert problem in capsys.readouterr().err
    assert len(call(capsys, store, "--json")["runs"]) == 2


def test_cancel_a_run_that_nobody_has_and_one_that_has_an_owner(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with gp.SQLiteStore(store) as opened:
        for name in ("first", "second"):
            gp.agents.start([Vertex("a", 0)], count, store=opened, run_id=name).stop()
        assert call(capsys, store, "cancel", "first") == "cancelled run 'first'\n"
        assert opened.run("first").status == "cancelled"
        with gp.agents.reopen(opened, "second", count) as agents:
            shown = call(capsys, store, "cancel", "second")
            assert shown == "run 'second' ends after the superstep that its program is computing\n"
            assert call(capsys, store, "cancel", "second", "--json") == {"run": "second", "cancelled": False}
            agents.step()
            assert (agents.status, agents.result().values) == ("cancelled", {"a": 0})


def test_expire_deletes_old_runs_that_have_ended(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, store, "expire", "--older-than", "1h") == ""
    assert call(capsys, store, "expire", "--older-than", "0s", "--status", "completed") == ""
    shown = call(capsys, store, "expire", "--older-than", "0s", "--dry-run")
    assert shown == "would delete run 'counting'\nwould delete run 'numeric'\n"
    found = call(capsys, store, "expire", "--older-than", "0m", "--json")
    assert found == {"runs": ["counting", "numeric"], "deleted": True}
    assert call(capsys, store, "--json") == {"runs": []}
    with pytest.raises(SystemExit):
        main(["runs", store, "expire", "--older-than", "30"])
    assert "'30' is no time: pass a whole number with a unit" in capsys.readouterr().err


def test_prune_and_delete(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, store, "prune", "counting", "--keep", "2") == "superstep 3 is now the oldest\n"
    shown = call(capsys, store, "show", "counting", "--json")
    assert [step["superstep"] for step in shown["supersteps"]][-2:] == [4, 5]
    assert call(capsys, store, "delete", "counting") == "deleted run 'counting'\n"
    assert [run["run"] for run in call(capsys, store, "--json")["runs"]] == ["numeric"]


@pytest.mark.parametrize(
    "arguments, status, problem",
    [
        (["nowhere.db"], 1, "nowhere.db"),
        (["STORE", "show", "nobody"], 2, "nobody"),
        (["STORE", "show", "numeric", "--values"], 2, "numeric"),
        (["STORE", "show", "counting", "--at", "1"], 2, "pass --values as well"),
        (["STORE", "fork", "numeric", "--id", ""], 2, "new_id must have from 1 to 200 printable characters"),
        (["STORE", "fork", "counting", "--at", "77"], 2, "no superstep 77"),
        (["STORE", "fork", "numeric", "--at", "0"], 2, "superstep 0"),
        (
            ["STORE", "fork", "numeric", "--set", "0=1"],
            2,
            "run 'numeric' has numeric vertices: --set changes values of agents",
        ),
        (["STORE", "fork", "counting", "--id", "numeric"], 2, "run 'numeric' already exists"),
        (["STORE", "delete", "nobody"], 2, "nobody"),
    ],
)
def test_errors(
    store: str, arguments: list[str], status: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(store).read_bytes()
    assert main(["runs", *(store if one == "STORE" else one for one in arguments)]) == status
    told = capsys.readouterr()
    assert told.out == ""
    assert problem in told.err
    assert Path(store).read_bytes() == before
    assert not Path("nowhere.db").exists()


def test_claimed_run_is_not_deleted(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    with gp.SQLiteStore(store) as opened, gp.agents.start([Vertex(1, 0)], count, store=opened, run_id="held"):
        assert main(["runs", store, "delete", "held"]) == 1
        told = capsys.readouterr().err
        assert "claimed by process" in told
        assert "pass --force if that program has ended" in told
        assert call(capsys, store, "show", "held", "--json")["claimed until"] is not None
        call(capsys, store, "delete", "held", "--force")
