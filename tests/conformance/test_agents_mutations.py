"""Mutations of vertices and edges with any number of workers, with the semantics of Giraph."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Edge, Vertex
from gpu_pregel.errors import AgentsFailedError
from tests.agents import MORE_WORKERS, ONCE, WORKERS, check, values


def scripted(script: dict[Any, list[tuple[Any, ...]]], keep: Any = None) -> Any:
    """In superstep 0 vertices make the requests of a script; in superstep 1 each stores what it finds."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            for name, *arguments in script.get(ctx.vertex_id, ()):
                getattr(ctx, name)(*arguments)
            if ctx.vertex_id in script:
                return
        else:
            ctx.value = (ctx.value, ctx.num_vertices, ctx.messages)
        ctx.vote_to_halt()

    return compute


@MORE_WORKERS
def test_order_of_mutations(workers: int) -> None:
    """Edges are removed, vertices are removed, vertices are added, edges are added, in any order of requests."""
    script: dict[Any, list[tuple[Any, ...]]] = {
        "a": [
            ("add_edge", "a", "c", 2.5),  # remains: removals come first
            ("add_edge", "new", "a", "first"),  # from a vertex that another one adds
            ("add_vertex", "b", "b again", ["a"]),  # which another vertex removes
            ("remove_edge", "a", "b"),
            ("send", "new", "hello"),
        ],
        "c": [
            ("remove_vertex", "b"),
            ("remove_edge", "a", "c"),
            ("add_vertex", "new", 1, [Edge("c", {"w": 1})]),
            ("add_edge", "new", "a", "second"),
            ("send", "b", "to any vertex of this id"),
        ],
    }
    vertices = [
        Vertex("a", 0, ["b", Edge("c", 1), "b"]),
        Vertex("b", "old", ["a", "c"], halted=True),
        Vertex("c", 0),
    ]
    result = agents.run(vertices, scripted(script), workers=workers)
    check(
        result,
        ("a", (0, 4, []), [("c", 2.5)], True),
        ("b", ("b again", 4, ["to any vertex of this id"]), [("a", 1)], True),
        ("c", (0, 4, []), [], True),
        ("new", (1, 4, ["hello"]), [("c", {"w": 1}), ("a", "first"), ("a", "second")], True),
    )


@WORKERS
def test_removing_missing_vertices_and_edges_is_no_error(workers: int) -> None:
    script: dict[Any, list[tuple[Any, ...]]] = {
        "a": [
            ("remove_vertex", "missing"),
            ("remove_edge", "missing", "a"),
            ("remove_edge", "a", "missing"),
            ("remove_vertex", "b"),
        ],
        "b": [("remove_vertex", "b"), ("add_vertex", "c", 7), ("add_edge", "a", "b")],
        "d": [("add_vertex", "c", 7)],  # equal requests count as one
    }
    vertices = [Vertex("a", 0, ["b"]), Vertex("b", 0), Vertex("d", 0)]
    result = agents.run(vertices, scripted(script), workers=workers)
    check(
        result,
        ("a", (0, 3, []), [("b", 1), ("b", 1)], True),
        ("c", (7, 3, []), [], True),
        ("d", (0, 3, []), [], True),
    )


@pytest.mark.parametrize("missing", ["create", "drop"])
def test_edges_of_missing_vertices(missing: str) -> None:
    """As messages to them: they create the vertex, or are dropped."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == "a":
            ctx.remove_vertex("b")
            ctx.add_edge("b", "a", 2)
            ctx.add_edge("new", "a", 3)
            ctx.add_edge("new", "nowhere")
        ctx.value = ctx.superstep
        ctx.vote_to_halt()

    result = agents.run([Vertex("a"), Vertex("b", edges=["a"])], compute, on_missing=missing)
    created = [("b", 1, [("a", 2)], True), ("new", 1, [("a", 3), ("nowhere", 1)], True)]
    check(result, ("a", 0, [], True), *(created if missing == "create" else []))


@WORKERS
def test_an_edge_to_a_missing_vertex_is_allowed_until_a_message_follows_it(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.add_edge("a", "nowhere")
        elif ctx.superstep == 2:
            ctx.send_to_neighbors(1)

    with agents.start([Vertex("a")], compute, workers=workers, retry=ONCE) as run:
        assert run.step()
        assert run.step()
        assert not run.step()
        assert run.result().failed["a"].text.startswith("sent a message to 'nowhere'")


@pytest.mark.parametrize("workers", [0, 2])  # computed in the master
@pytest.mark.parametrize("answer", ["first", "last", "existing", "none", "own"])
def test_resolve(answer: str, workers: int) -> None:
    calls: list[Any] = []

    def resolve(vertex: Any, existing: Any, requested: list[Any], messages: list[Any]) -> Any:
        calls.append((vertex, existing and existing.value, [one.value for one in requested], messages))
        if vertex == "other":
            assert [(edge.target, edge.weight) for edge in requested[0].edges] == [("a", [1])]
            return requested[0]
        own = Vertex(vertex, "own", ["a", Edge("b", (2, 3))], halted=True)
        return {"first": requested[0], "last": requested[-1], "existing": existing, "none": None, "own": own}[answer]

    script: dict[Any, list[tuple[Any, ...]]] = {
        "a": [("add_vertex", "n", "of a"), ("send", "n", 1), ("send", "n", 2)],
        "b": [("add_vertex", "n", "of b"), ("send", "n", 3), ("add_vertex", "other", 0, [Edge("a", [1])])],
        "c": [("add_vertex", "n", "of c")],
    }
    vertices = [*(Vertex(name, 0) for name in "abc"), Vertex("n", "old", ["b"], halted=True)]
    result = agents.run(vertices, scripted(script), workers=workers, resolve=resolve, on_missing="drop")
    assert sorted(calls, key=str) == [
        ("n", "old", ["of a", "of b", "of c"], [1, 2, 3]),
        ("other", None, [0], []),
    ]
    chosen: dict[str, tuple[Any, list[tuple[Any, Any]]]] = {
        "first": ("of a", []),
        "last": ("of c", []),
        "existing": ("old", [("b", 1)]),
        "own": ("own", [("a", 1), ("b", (2, 3))]),
    }
    count = 4 if answer == "none" else 5
    expected: list[Any] = [(name, (0, count, []), [], True) for name in "abc"]
    expected.append(("other", (0, count, []), [("a", [1])], True))
    if answer != "none":
        value, edges = chosen[answer]
        expected.append(("n", (value, count, [1, 2, 3]), edges, True))
    check(result, *expected)


@pytest.mark.parametrize(
    ("nonsense", "error"),
    [
        (lambda *_: 5, "resolve returned 5"),
        (lambda *_: Vertex("x"), "resolve returned Vertex\\(id='x'"),
        (lambda *_: Vertex("n", object()), "resolve returned an invalid vertex: .* value is of type object"),
        (lambda *_: Vertex("n", 0, [1.5]), "resolve returned an invalid vertex: vertex 'n': edge to: .* float"),
    ],
)
def test_invalid_results_of_resolve(nonsense: Any, error: str) -> None:
    script = {"a": [("add_vertex", "n", 1)]}
    with pytest.raises(AgentsFailedError, match=rf"vertex 'n' cannot be added: {error}.*return a Vertex"):
        agents.run([Vertex("a", 0)], scripted(script), resolve=nonsense, retry=ONCE)


@WORKERS
@pytest.mark.parametrize("missing", ["create", "drop"])
def test_messages_to_missing_vertices(missing: str, workers: int) -> None:
    """One never existed, the other is removed while messages to it are pending."""
    script: dict[Any, list[tuple[Any, ...]]] = {
        "a": [("send", "n", 1), ("send", "gone", 2), ("send", "a", 3)],
        "b": [("send", "n", 4), ("remove_vertex", "gone"), ("send", "n", 5)],
    }
    vertices = [Vertex("a", 0), Vertex("b", 0), Vertex("gone", "old", ["a"], halted=True)]
    result = agents.run(vertices, scripted(script), workers=workers, on_missing=missing)
    count = 4 if missing == "create" else 2
    expected: list[Any] = [("a", (0, count, [3]), [], True), ("b", (0, count, []), [], True)]
    if missing == "create":
        expected += [("n", (None, count, [1, 4, 5]), [], True), ("gone", (None, count, [2]), [], True)]
    check(result, *expected)


@WORKERS
def test_the_last_messages_of_removed_vertices_arrive(workers: int) -> None:
    """Vertices that have messages remove themselves; their last messages arrive."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == 0:
            ctx.send_to_neighbors("go")
        elif ctx.messages == ["go"]:
            ctx.remove_vertex(ctx.vertex_id)
            ctx.send(0, (ctx.vertex_id, ctx.num_vertices))
            return
        else:
            ctx.value = (ctx.num_vertices, ctx.messages)
        ctx.vote_to_halt()

    vertices = [Vertex(0, None, [1, 2, 3]), *(Vertex(k, None, [0], halted=True) for k in (1, 2, 3))]
    result = agents.run(vertices, compute, workers=workers)
    check(result, (0, (1, [(1, 4), (2, 4), (3, 4)]), [(1, 1), (2, 1), (3, 1)], True))
    assert (result.status, result.superstep) == ("completed", 3)


@MORE_WORKERS
def test_all_vertices_are_removed(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.remove_vertex(ctx.vertex_id)

    result = agents.run([Vertex(k) for k in range(5)], compute, workers=workers)
    assert (result.status, result.superstep) == ("completed", 1)
    check(result)


@WORKERS
def test_a_vertex_that_is_added_again_is_new(workers: int) -> None:
    """A vertex is removed in superstep 0, added by a request in 1, removed in 2 and created by a message in 3."""

    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "guest":
            ctx.value = [*(ctx.value or []), ctx.superstep]
            return
        if ctx.superstep in (0, 2):
            ctx.remove_vertex("guest")
        elif ctx.superstep == 1:
            ctx.add_vertex("guest", ["requested"], ["host"])
        elif ctx.superstep == 3:
            ctx.send("guest", None)
        elif ctx.superstep == 5:
            ctx.remove_edge("guest", "host")
            ctx.vote_to_halt()
        ctx.value = [*ctx.value, ctx.num_vertices]

    vertices = [Vertex("host", []), Vertex("guest", ["first"])]
    result = agents.run(vertices, compute, workers=workers, on_missing="create", max_supersteps=6, on_limit="return")
    check(result, ("host", [2, 1, 2, 1, 2, 2], [], True), ("guest", [4, 5], [], False))


@WORKERS
def test_a_failed_vertex_is_removed_by_another(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "bad" and ctx.superstep == 0:
            ctx.add_vertex("never", 1)
            ctx.remove_vertex("good")
            raise ValueError("on purpose")
        if ctx.superstep == 1:
            ctx.remove_vertex("bad")
            ctx.vote_to_halt()
        ctx.value = ctx.num_vertices

    result = agents.run([Vertex("good"), Vertex("bad")], compute, workers=workers, retry=ONCE, on_failure="continue")
    assert list(result.failed) == ["bad"]
    values(result, {"good": 2})
