"""The state in which a run starts: from vertices that a user has passed, or from a stored one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.records import Id, VertexData
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.stored_options import adopt_options, describe_options
from gpu_pregel.host.agents.vertices import Vertex, encode_vertices
from gpu_pregel.host.agents.workers.garbage_collection import FEW, relaxed_gc


def initial_state(vertices: Iterable[Vertex], options: RunOptions) -> State:
    """Encode vertices; refuse duplicate ids and edges to missing vertices."""
    if options.override:
        raise ArgumentError("override= changes the options of a stored run, but this one begins: omit it")
    if not isinstance(vertices, Iterable):
        raise ArgumentTypeError(f"vertices must be a sequence of gp.agents.Vertex objects, not {vertices!r}")
    known: dict[Any, Id] = {}
    if isinstance(vertices, (list, tuple)) and len(vertices) < FEW:
        encoded = encode_vertices(vertices, known)
    else:
        with relaxed_gc(beside_users_code=False):
            encoded = encode_vertices(vertices, known)
    if options.on_missing == "error" and len(known) > len(encoded):
        _check_edges(encoded)
    options.check_vertices(map(decode, encoded))
    functions = options.functions_by_name
    function = "compute" if "compute" in functions else next(iter(functions))
    return State(encoded, {}, _initial_aggregates(options), function, {}, describe_options(options))


def adapt_state(state: State, options: RunOptions, where: str, superstep: int) -> None:
    """Give ``options`` the stored options of a run, and its state their aggregators; refuse other options.

    Parameters
    ----------
    state : State
    options : RunOptions
    where : str
        The name of the run.
    superstep : int
        The next one.
    """
    adopt_options(options, state.options, where, superstep)
    options.check_vertices(map(decode, state.vertices))
    state.options = describe_options(options)
    functions = options.functions_by_name
    if state.function not in functions:
        raise ArgumentError(
            f"the run needs the compute function {state.function!r}, which was not passed; available: "
            f"{', '.join(map(repr, functions))}"
        )
    initial = _initial_aggregates(options)
    state.aggregates = {name: state.aggregates.get(name, value) for name, value in initial.items()}


def _check_edges(vertices: dict[Id, VertexData]) -> None:
    for vertex_id, vertex in vertices.items():
        for target in vertex.targets:
            if target not in vertices:
                raise ArgumentError(
                    f"vertex {decode(vertex_id)!r} has an edge to {decode(target)!r}, which does not exist: "
                    f"add that vertex, or pass on_missing='create' or 'drop'"
                )


def _initial_aggregates(options: RunOptions) -> dict[str, bytes]:
    initial = {}
    for name, aggregator in options.aggregators_by_name.items():
        try:
            initial[name] = encode(aggregator.initial)
        except CodecError as error:
            raise CodecError(f"initial value of aggregator {name!r}: {error}") from None
    return initial
