"""The data of a page: what it has of runs of each kind, its bounds, and text that is safe in a script element."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest

import gpu_pregel as gp
import gpu_pregel.agents as agents
from gpu_pregel.agents import RetryPolicy, Timeline, Vertex
from gpu_pregel.errors import AgentsFailedError, UnknownRunError
from gpu_pregel.workflows.page import page_of, run_data
from gpu_pregel.workflows.page.document import to_json
from gpu_pregel.workflows.page.page_size import limit_size
from gpu_pregel.workflows.page.run_data import read_page_data
from tests.gpu_pregel.workflows.page.runs_to_show import EVIL, make_finished, make_held
from tests.stores import STORES

MOST_BYTES = 5 << 20


@pytest.fixture
def store() -> gp.MemoryStore:
    return gp.MemoryStore()


def named(data: dict[str, Any], vertices: list[int]) -> list[str]:
    return [data["labels"][vertex] for vertex in vertices]


def test_everything_of_a_finished_run(store: gp.MemoryStore) -> None:
    make_finished(store)
    data = read_page_data(store, "finished")
    assert (data["run"]["status"], data["run"]["head"], data["notes"]) == ("completed", 3, [])
    plan, search, ask, end = data["steps"]
    assert [named(data, step["active"]) for step in data["steps"]] == [
        ["plan"],
        ["search 1", "search 2"],
        ["ask"],
        ["plan"],
    ]
    assert all(step["status"] == "committed" and step["began"] <= step["ended"] for step in data["steps"])
    # What changed, deep.
    ((vertex, kind, differences, more),) = end["vertices"]
    assert (data["labels"][vertex], kind, more) == ("plan", "changed", 0)
    assert differences == [
        [["open", "0"], "removed", ["str", "search"], None],
        [["open", "1"], "removed", ["str", "ask"], None],
    ]
    assert search["aggregates"] == [
        ["state", [[[name], "added", None, ["int", "3"]] for name in ("search 1", "search 2")], 0]
    ]
    assert plan["aggregates"] == []
    # Messages, failures, questions.
    sent = [(*named(data, message[:2]), message[2]) for message in plan["messages"]]
    assert sent[0] == ("plan", "search 1", ["dict", "1", [["query", ["str", EVIL]]], 0])
    assert (len(sent), plan["messagesMore"]) == (2, 0)
    ((failed, attempts, name, text, traceback, again),) = search["failures"]
    assert (data["labels"][failed], attempts, name, text, again) == (
        "search 2",
        1,
        "OSError",
        f"no answer {EVIL}",
        True,
    )
    assert "raise OSError" in traceback
    ((asking, question, answer),) = ask["questions"]
    assert (data["labels"][asking], question[2][0][0], answer) == ("ask", "question", ["str", "yes"])
    # Attempts and emissions.
    assert sorted((one[0], data["labels"][one[1]], one[2], one[3]) for one in data["attempts"]) == [
        (0, "plan", 1, "completed"),
        (1, "search 1", 1, "completed"),
        (1, "search 2", 1, "failed"),
        (1, "search 2", 2, "completed"),
        (2, "ask", 1, "completed"),
        (2, "ask", 1, "interrupted"),
        (3, "plan", 1, "completed"),
    ]
    assert [one[-1] for one in data["emissions"]] == [f"first {EVIL}"] * 2
    # The graph and the state.
    assert [node[:2] for node in data["graph"]["nodes"]] == [["plan", 1], ["search 1", 1], ["search 2", 1], ["ask", 1]]
    assert [edge[:4] for edge in data["graph"]["edges"] if not edge[2]] == [[3, 0, 0, 1]]  # only a message
    assert [(data["labels"][vertex], halted) for vertex, _, halted in data["values"]] == [
        (name, True) for name in ("plan", "search 1", "search 2", "ask")
    ]
    assert data["failed"] == data["asking"] == []


def test_a_held_run(store: gp.MemoryStore) -> None:
    make_held(store)
    data = read_page_data(store, "held")
    assert [step["status"] for step in data["steps"]] == ["committed", "committed", "interrupted"]
    ((vertex, payload),) = data["asking"]
    assert (data["labels"][vertex], payload[1]) == ("ask", "1")
    assert data["steps"][2]["questions"][0][2] is None
    agents.answer(store, "held", "ask", "later")
    assert read_page_data(store, "held")["steps"][2]["questions"][0][2] == ["str", "later"]


def test_a_failed_run_has_the_traceback_and_the_input(store: gp.MemoryStore) -> None:
    def fail(ctx: Any) -> None:
        if ctx.superstep == 1:
            raise KeyError("missing")
        ctx.send(ctx.vertex_id, "input")

    with pytest.raises(AgentsFailedError):
        agents.run([Vertex("a")], fail, store=store, run_id="run", retry=RetryPolicy(attempts=1))
    data = read_page_data(store, "run")
    ((_, step, kind, name, text, traceback, given),) = data["failed"]
    assert (step, kind, name, text, given) == (1, "exception", "KeyError", "'missing'", [["str", "input"]])
    assert 'raise KeyError("missing")' in traceback
    assert data["steps"][-1]["status"] == "failed"
    assert "Timeline" in data["notes"][0]


def test_a_run_that_continued_without_its_failed_vertices(store: gp.MemoryStore) -> None:
    def fail(ctx: Any) -> None:
        if ctx.messages and ctx.vertex_id == 2:
            raise ValueError("cannot")
        ctx.value = len(ctx.messages)
        if ctx.superstep < 3:
            ctx.send_to_neighbors("go")
        ctx.vote_to_halt()

    options: dict[str, Any] = {"on_failure": "continue", "retry": RetryPolicy(attempts=1), "base_every": 100}
    agents.run([Vertex(1, None, [1, 2]), Vertex(2)], fail, store=store, run_id="run", **options)
    data = read_page_data(store, "run")
    assert data["run"]["status"] == "partial"
    assert [len(step["failures"]) for step in data["steps"]] == [0, 1, 1, 1]
    assert [step["row"]["failed"] for step in data["steps"]] == [0, 1, 1, 1]
    ((vertex, step, *_, given),) = data["failed"]
    assert (named(data, [vertex]), step, given) == (["2"], 3, [["str", "go"]])


def test_a_running_run(store: gp.MemoryStore) -> None:
    data: list[Any] = []

    def look(ctx: Any) -> None:
        if ctx.superstep == 1:
            timeline.flush()
            data.append(read_page_data(store, "run"))
        ctx.send(ctx.vertex_id, 1) if ctx.superstep == 0 else None
        ctx.vote_to_halt()

    timeline = Timeline(store)
    agents.run([Vertex("a")], look, store=store, run_id="run", observer=timeline)
    assert [(step["superstep"], step["status"]) for step in data[0]["steps"]] == [(0, "committed"), (1, "running")]
    assert data[0]["run"]["owner"].startswith("process")
    assert read_page_data(store, "run")["run"]["owner"] is None


@pytest.mark.parametrize("kind", STORES)
def test_the_same_page_from_every_store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store: Any = gp.MemoryStore() if kind == "memory" else None
    if kind == "sqlite":
        store = gp.SQLiteStore(tmp_path / "runs.db")
    elif kind == "postgres":
        store = gp.PostgresStore(request.getfixturevalue("postgres"), schema="page")
    with store:
        make_finished(store)
        data = read_page_data(store, "finished")
    steps = [[step["superstep"], step["vertices"], step["messages"], step["aggregates"]] for step in data["steps"]]
    with gp.MemoryStore() as other:
        make_finished(other)
        expected = read_page_data(other, "finished")
    assert steps == [
        [step["superstep"], step["vertices"], step["messages"], step["aggregates"]] for step in expected["steps"]
    ]
    assert (data["graph"], data["values"]) == (expected["graph"], expected["values"])


def count(ctx: Any) -> None:
    ctx.value += 1
    ctx.send((ctx.vertex_id + 1) % ctx.num_vertices, "x" * 50)


def test_pruned_forked_and_long_runs(store: gp.MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"store": store, "base_every": 4, "on_limit": "return"}
    agents.run([Vertex(0, 0), Vertex(1, 0)], count, run_id="run", max_supersteps=20, **given)
    whole = read_page_data(store, "run")
    assert [len(step["vertices"]) for step in whole["steps"]] == [2] * 20
    store.prune("run", keep=6)
    data = read_page_data(store, "run")
    first = data["steps"][0]["superstep"]
    assert 10 < first <= 14
    assert [step.get("computed") for step in data["steps"]] == [None, *[2] * (19 - first)]
    assert data["steps"][1:] == whole["steps"][first + 1 :]
    agents.fork(store, "run", 16, "fork")
    assert read_page_data(store, "fork")["steps"] == []
    agents.resume(store, "fork", count, max_supersteps=18, on_limit="return")
    data = read_page_data(store, "fork")
    assert [step["superstep"] for step in data["steps"]] == [17]
    assert data["run"]["parent"] == ["run", 16]
    monkeypatch.setattr(run_data, "_DETAILED", 3)
    data = read_page_data(store, "run")
    assert ["vertices" in step for step in data["steps"]] == [False] * (len(data["steps"]) - 3) + [True] * 3
    assert data["steps"][-3:] == whole["steps"][-3:]
    assert any("except for the trace" in note for note in data["notes"])


def test_large_runs_are_summarised(store: gp.MemoryStore) -> None:
    def talk(ctx: Any) -> None:
        ctx.value = ["y" * 1000] * 5
        ctx.emit("z" * 500)
        ctx.send(("page", (ctx.vertex_id[1] + 7) % 2000), "x" * 3000)
        if ctx.vertex_id == ("page", 7) and ctx.superstep == 3:
            raise ValueError("e" * 100_000)

    vertices = [Vertex(("page", k)) for k in range(2000)] + [Vertex(("tool", 0))]
    options: dict[str, Any] = {"observer": Timeline(store), "retry": RetryPolicy(attempts=1), "durability": "process"}
    with pytest.raises(AgentsFailedError):
        agents.run(vertices, talk, store=store, run_id="run", **options)
    data = read_page_data(store, "run")
    nodes = {name: number for name, number, *_ in data["graph"]["nodes"]}
    assert nodes == {"(page, #)": 1999, "(tool, #)": 1, "('page', 7)": 1}
    assert data["graph"]["isGrouped"]
    assert data["steps"][0]["verticesMore"] == 2001 - len(data["steps"][0]["vertices"])
    (note,) = data["notes"]
    assert "4,004 × attempt completed" in note  # beyond the first thousand of each superstep
    assert len(to_json(data).encode()) < MOST_BYTES


def test_many_supersteps_stay_small(store: gp.MemoryStore) -> None:
    def grow(ctx: Any) -> None:
        ctx.value = [f"{ctx.superstep} {'x' * 300}"] * 20
        ctx.emit("token " * 100)

    options: dict[str, Any] = {"observer": Timeline(store), "max_supersteps": 320, "on_limit": "return"}
    agents.run([Vertex(k) for k in range(2)], grow, store=store, run_id="run", durability="process", **options)
    data = read_page_data(store, "run")
    assert [step["superstep"] for step in data["steps"]] == list(range(320))
    assert len(to_json(data).encode()) < MOST_BYTES


def test_too_large_data_lose_what_is_oldest() -> None:
    details = {"active": [], "messages": ["x" * 1000]}
    steps = [{"superstep": k, "status": "committed", "row": {"seconds": k}, **details} for k in range(16)]
    emissions = [[k, 0, 1, 0.0, "y" * 1000] for k in range(64)]
    data = limit_size({"steps": list(steps), "emissions": emissions, "notes": []}, 20_000)
    assert [one[0] for one in data["emissions"]] == list(range(56, 64))
    assert data["steps"][8:] == steps[8:]
    assert data["steps"][:8] == [{"superstep": k, "status": "committed", "row": {"seconds": k}} for k in range(8)]
    assert len(data["notes"]) == 1
    assert len(json.dumps(data)) <= 20_200
    hopeless = limit_size({"steps": list(steps), "emissions": [], "notes": [], "labels": ["z" * 10_000]}, 10)
    assert not any("messages" in step for step in hopeless["steps"])
    small = {"steps": steps, "emissions": emissions, "notes": []}
    assert limit_size(small) == {"steps": steps, "emissions": emissions, "notes": []}


def test_numeric_runs(tmp_path: Path) -> None:
    smallest = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    )
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3])
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        found = gp.run(graph, smallest, device="python", checkpoint=gp.Checkpoint(store, every=2))
        data = read_page_data(store, "run")
    assert [step["row"]["active_vertices"] for step in data["steps"]] == [row["active_vertices"] for row in found.trace]
    assert data["numericGraph"] == {"vertices": 4, "edges": 6, "directed": False}
    assert data["arrays"][0] == ["value0", "int64", 4, "0", "0", "0"]


def test_runs_of_both_kinds() -> None:
    spread = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value + 1,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )

    def note(ctx: Any) -> None:
        ctx.state = [one.content for one in ctx.messages]

    path, store = gp.Graph.from_edgelist(range(5), range(1, 6), directed=True), gp.MemoryStore()
    observed = gp.Agents(note, vertices=[3], observer=Timeline(store))
    found = gp.run(path, spread, device="python", agents=observed, checkpoint=gp.Checkpoint(store, every=2))
    data = read_page_data(store, "run")
    assert [step["row"]["superstep"] for step in data["steps"]] == [row["superstep"] for row in found.trace]
    assert [step["row"]["active_vertices"] for step in data["steps"]] == [row["active_vertices"] for row in found.trace]
    assert any(step.get("computed") for step in data["steps"])
    assert [one[:3] for one in data["arrays"]] == [["value", "int64", 6]]
    assert len(data["attempts"]) == sum(row["computed"] for row in found.trace)


class Notes(TypedDict):
    topic: str
    notes: Annotated[list[str], agents.append]


def test_state_graphs_show_the_values_of_their_keys(store: gp.MemoryStore) -> None:
    graph = agents.StateGraph(Notes)
    graph.add_node("plan", lambda state: {"notes": ["planned"]})
    graph.add_node("read", lambda state: {"notes": [state["topic"]]})
    graph.add_edge(agents.START, "plan")
    graph.add_conditional_edges("plan", lambda _: [agents.Send("read", {"topic": str(k)}) for k in (1, 2)], ["read"])
    graph.add_edge("read", agents.END)
    thread = {"configurable": {"thread_id": "thread"}}
    found = graph.compile(store=store).invoke({"topic": "graphs", "notes": ["asked"]}, thread)
    assert found["notes"] == ["asked", "planned", "1", "2"]
    data = read_page_data(store, "thread")
    items = [[str(k), ["str", text]] for k, text in enumerate(found["notes"])]
    assert data["aggregates"] == [["topic", ["str", "graphs"]], ["notes", ["list", "4", items, 0]]]
    assert [step["aggregates"] for step in data["steps"]] == [
        [["notes", [[["1"], "added", None, ["str", "planned"]]], 0]],
        [["notes", [[[str(k + 1)], "added", None, ["str", str(k)]] for k in (1, 2)], 0]],
    ]
    nodes = [node[0] for node in data["graph"]["nodes"]]
    sent = [(nodes[source], nodes[target]) for source, target, *_ in data["graph"]["edges"]]
    assert sent == [("plan", name) for name in nodes if name.startswith("read:")]
    assert len(sent) == 2


def test_unknown_runs_are_refused(store: gp.MemoryStore) -> None:
    with pytest.raises(UnknownRunError, match="no run 'nobody'"):
        page_of(store, "nobody")


# The document


def test_the_document_is_self_contained_and_nothing_of_a_run_is_markup(store: gp.MemoryStore) -> None:
    name = 'a<b>&"run"'
    make_finished(store, name)
    page = page_of(store, name, refresh=2)
    assert "<title>a&lt;b&gt;&amp;&quot;run&quot; · completed</title>" in page
    assert page.count("<script") == page.count("</script>") == 2
    before, data_of_page = page.split('id="data">')
    assert "leak.invalid" in data_of_page
    assert "leak.invalid" not in before
    assert not re.search(r"""(src|href)\s*=|@import|url\((?!#)""", before)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert (data["run"]["id"], data["refresh"]) == (name, 2)


@pytest.mark.parametrize(
    "text", ["</script>", "</SCRIPT >", "<!--<script>", "<Script", "<", "a < b", "&lt;", "\u2028", "a\0b", "\ud800"]
)
def test_json_in_the_document_is_what_it_was(text: str) -> None:
    found = to_json([text, float("inf"), {"a": float("nan")}])
    assert not re.search("<[/!]|<script", found, re.IGNORECASE)
    assert json.loads(found) == [text, None, {"a": None}]


# The graph


def draw(edges: dict[Any, list[Any]]) -> dict[str, Any]:
    """The graph of a run with these vertices and edges."""
    store = gp.MemoryStore()
    vertices = [Vertex(name, None, out) for name, out in edges.items()]
    agents.run(vertices, lambda ctx: ctx.vote_to_halt(), store=store, run_id="run")
    graph: dict[str, Any] = read_page_data(store, "run")["graph"]
    return graph


def rows(graph: dict[str, Any]) -> list[list[str]]:
    """The names of the nodes in each row, from the top."""
    heights = sorted({node[3] for node in graph["nodes"]})
    return [[node[0] for node in sorted(graph["nodes"], key=lambda node: node[2]) if node[3] == y] for y in heights]


def test_rows_of_nodes() -> None:
    graph = draw({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["a", "d"]})
    assert [sorted(row) for row in rows(graph)] == [["a"], ["b", "c"], ["d"]]
    assert [edge[:4] for edge in graph["edges"]] == [
        *([0, 1, 1, 0], [0, 2, 1, 0], [1, 3, 1, 0], [2, 3, 1, 0], [3, 0, 1, 0], [3, 3, 1, 0])
    ]
    assert all(edge[4] for edge in graph["edges"])


def test_wide_layers_are_folded() -> None:
    star = draw({"hub": [f"leaf {k}" for k in range(40)], **{f"leaf {k}": ["end"] for k in range(40)}, "end": []})
    assert [len(row) for row in rows(star)] == [1, 9, 9, 9, 9, 4, 1]
    assert max(map(len, rows(draw({k: [] for k in range(60)})))) == 9
    for graph in (star, draw({k: [(7 * k + 3) % 60, (5 * k + 1) % 60] for k in range(60)})):
        boxes = sorted(graph["nodes"], key=lambda node: (node[3], node[2]))
        for left, right in pairwise(boxes):  # none covers another
            assert left[3] != right[3] or left[2] + left[4] / 2 < right[2] - right[4] / 2


def test_vertices_of_many_kinds_become_a_bounded_number_of_nodes() -> None:
    graph = draw({f"{'x' * (k % 80)} {k}": [] for k in range(400)})
    assert len(graph["nodes"]) == 60
    assert sum(node[1] for node in graph["nodes"]) == 400
    assert ("others", True) in [(node[0], node[1] > 100) for node in graph["nodes"]]
