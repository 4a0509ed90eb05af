"""What a user gives for a run of agents: vertices, aggregators, and the arguments of a run, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.combiners import Folding
from gpu_pregel.host.agents.context import Context, Edge, Limits, as_edges, copied
from gpu_pregel.host.agents.mutations import ConflictError, Resolve
from gpu_pregel.host.agents.observers.events import Observer
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.records import Vertex as Loaded
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.rules import Aggregate, MasterContext, Rules
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.workers.executor import Job, is_async
from gpu_pregel.host.arguments import check_choice, check_flag, check_integer, check_seconds
from gpu_pregel.host.stores.rows import DURABILITIES

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

Compute = Callable[[Context], Any]
_DEFAULT_CONCURRENCY = 64


@dataclass(frozen=True)
class Vertex:
    """A vertex as a user gives it.

    Parameters
    ----------
    id : str, int, bytes or tuple of such
    value : data
    edges : iterable
        Out-edges: targets, or :class:`Edge` objects, which have a weight; others have the weight 1.
    halted : bool
        Whether it waits for a first message.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.agents.Vertex("a", 1, ["b", "c"]).id
    'a'
    """

    id: Any
    value: Any = None
    edges: Iterable[Any] = ()
    halted: bool = False


@dataclass(frozen=True)
class Aggregator:
    """A figure that vertices contribute to, and all see in the next superstep.

    Parameters
    ----------
    combine : str, TopK or callable
        "sum", "min", "max", "count", "first", "last", "list", "and", "or", ``TopK(k)`` or a function of two values.
    initial : data, optional
        What it is before anything was contributed.
    persistent : bool
        Whether it carries over from superstep to superstep; else it begins anew in each.
    """

    combine: Any
    initial: Any = None
    persistent: bool = False

    def __post_init__(self) -> None:
        check_flag("Aggregator's persistent", self.persistent)


@dataclass
class Call:
    """The arguments of a run, checked."""

    compute: Compute | None
    workers: int = 0
    combiner: Any = None
    aggregators: Mapping[str, Any] | None = None
    master: Callable[[MasterContext], Any] | None = None
    functions: Mapping[str, Compute] | None = None
    retry: RetryPolicy | None = None
    on_failure: Any = "raise"
    on_missing: str = "error"
    resolve: Callable[..., Any] | None = None
    timeout: float | None = None
    max_supersteps: int = 100
    max_concurrency: int | None = None
    max_message: int | None = None
    max_outbox: int | None = None
    max_record: int | None = None
    max_memory: int | None = None
    observer: Observer | Sequence[Observer] = ()
    run_id: str | None = None
    store: Store | None = None
    durability: str = "machine"
    lease_seconds: float = 60.0
    base_every: int = 50
    observers: list[Observer] = field(init=False)

    def __post_init__(self) -> None:
        check_integer("workers", self.workers, 0, 1 << 10)
        check_integer("max_supersteps", self.max_supersteps, 1, 1 << 62)
        check_choice("on_missing", self.on_missing, ("error", "create", "drop"))
        for name in ("max_concurrency", "max_message", "max_outbox", "max_record", "max_memory"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1, 1 << 62)
        if self.max_memory is not None and self.workers == 0:
            raise ArgumentError("max_memory limits worker processes, and there are none: pass workers=1 or more")
        if not callable(self.on_failure):
            check_choice("on_failure", self.on_failure, ("raise", "continue"))
        if self.retry is not None and not isinstance(self.retry, RetryPolicy):
            raise ArgumentTypeError(f"retry must be a RetryPolicy, not {self.retry!r}")
        for name in ("master", "resolve"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ArgumentTypeError(f"{name} must be a function, not {getattr(self, name)!r}")
        self._check_store()
        if self.run_id is not None:
            if not isinstance(self.run_id, str):
                raise ArgumentTypeError(f"run_id must be a string, not {self.run_id!r}")
            encode(self.run_id, name="run_id")
        self.observers = _observers(self.observer)
        self.aggregators = _by_name("aggregators", self.aggregators)
        self.functions = _by_name("functions", self.functions)
        self._check_functions()
        self._check_timeout()

    def _check_store(self) -> None:
        if self.store is not None:
            check_store(self.store)
        check_choice("durability", self.durability, DURABILITIES)
        check_integer("base_every", self.base_every, 1, 1 << 62)
        check_seconds("lease_seconds", self.lease_seconds)

    def _check_functions(self) -> None:
        given = dict(self.functions or {})
        if self.compute is not None:
            given["compute"] = self.compute
        if not given:
            raise ArgumentError("there is no compute function: pass compute=, or functions= by name")
        for name, function in given.items():
            if not callable(function):
                raise ArgumentTypeError(f"compute function {name!r} must be a function of (ctx), not {function!r}")
        self.functions = given

    def _check_timeout(self) -> None:
        timeout: Any = self.timeout
        if timeout is None:
            return
        try:
            seconds = math.nan if isinstance(timeout, bool) or not isinstance(timeout, Real) else float(timeout)
        except OverflowError:
            seconds = math.inf
        if not 0 < seconds < math.inf:
            raise ArgumentError(f"timeout must be a number of seconds above 0, not {timeout!r:.80}")
        self.timeout = timeout if isinstance(timeout, (int, float)) else seconds
        ordinary = [name for name, function in (self.functions or {}).items() if not is_async(function)]
        if self.workers == 0 and ordinary:
            raise ArgumentError(
                f"timeout={timeout} cannot be kept with workers=0, as nobody can end function {ordinary[0]!r}: "
                f"pass workers=1, or make it async"
            )

    def job(self, run_id: str, branch: int = 0) -> Job:
        """What partitions must know."""
        return Job(
            functions=dict(self.functions or {}),
            combine=None if self.combiner is None else Folding.of("combiner", self.combiner),
            limits=Limits(self.max_message, self.max_outbox),
            retry=self.retry or RetryPolicy(),
            run=run_id,
            branch=branch,
            timeout=self.timeout,
            max_concurrency=self.max_concurrency or _DEFAULT_CONCURRENCY,
            max_record=self.max_record,
            max_memory=self.max_memory,
        )

    def rules(self) -> Rules:
        """How the run goes on."""
        return Rules(
            aggregates={name: _aggregate(name, one) for name, one in (self.aggregators or {}).items()},
            master=self.master,
            on_failure=self.on_failure,
            on_missing=self.on_missing,
            resolve=None if self.resolve is None else _resolver(self.resolve),
        )

    def load(self, vertices: Iterable[Vertex]) -> State:
        """The vertices as data, checked: ids are different, and edges lead somewhere."""
        if not isinstance(vertices, Iterable):
            raise ArgumentTypeError(f"vertices must be a sequence of gp.agents.Vertex objects, not {vertices!r}")
        loaded: dict[Id, Loaded] = {}
        for one in vertices:
            vertex_id, vertex = _load(one)
            if vertex_id in loaded:
                raise ArgumentError(f"vertex {one.id!r} is there twice: give each vertex an id of its own")
            loaded[vertex_id] = vertex
        if self.on_missing == "error":
            for vertex_id, vertex in loaded.items():
                for target, _ in vertex.edges:
                    if target not in loaded:
                        raise ArgumentError(
                            f"vertex {decode(vertex_id)!r} has an edge to {decode(target)!r}, which is not there: "
                            f"add it, or pass on_missing='create' or 'drop'"
                        )
        functions = self.functions or {}
        function = "compute" if "compute" in functions else next(iter(functions))
        return State(loaded, {}, self.first_aggregates(), function)

    def check_fits(self, state: State) -> None:
        """Refuse a saved state for which this call has no compute function; aggregators may be others."""
        functions = self.functions or {}
        if state.function not in functions:
            raise ArgumentError(
                f"the run goes on with compute function {state.function!r}, which is not given: there are "
                f"{', '.join(map(repr, functions))}"
            )
        first = self.first_aggregates()
        state.aggregates = {name: state.aggregates.get(name, value) for name, value in first.items()}

    def first_aggregates(self) -> dict[str, bytes]:
        """What aggregates are before anything was contributed."""
        first = {}
        for name, one in self.rules().aggregates.items():
            try:
                first[name] = encode(one.initial)
            except CodecError as error:
                raise CodecError(f"what aggregator {name!r} is at first: {error}") from None
        return first


def check_store(store: Any) -> Store:
    """Return ``store``, which is one."""
    from gpu_pregel.host.stores.store import Store

    if not isinstance(store, Store):
        raise ArgumentTypeError(f"store must be a gp.SQLiteStore or another store, not {store!r}")
    return store


def new_run_id() -> str:
    """An id that no other run has."""
    from uuid import uuid4

    return uuid4().hex


def _load(one: object) -> tuple[Id, Loaded]:
    if not isinstance(one, Vertex):
        raise ArgumentTypeError(f"vertices must be gp.agents.Vertex objects, not {one!r}")
    vertex_id = _id_of(one.id, "a vertex's id")
    try:
        value = encode(one.value)
        edges = [_edge_of(*pair) for pair in as_edges(one.edges)]
        return vertex_id, Loaded(value, edges, check_flag("halted", one.halted))
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"vertex {one.id!r}: {error}") from None
    except CodecError as error:
        raise CodecError(f"vertex {one.id!r}: {error}") from None


def _resolver(resolve: Callable[..., Any]) -> Resolve:
    """A user's ``resolve``, which knows nothing of bytes."""

    def show(vertex_id: Id, vertex: Loaded) -> Vertex:
        edges = [Edge(decode(target), copied(weight)) for target, weight in vertex.edges]
        return Vertex(decode(vertex_id), decode(vertex.value), edges, vertex.halted)

    def call(vertex_id: Id, existing: Loaded | None, wanted: list[Loaded], messages: list[bytes]) -> Loaded | None:
        name = decode(vertex_id)
        there = None if existing is None else show(vertex_id, existing)
        chosen = resolve(name, there, [show(vertex_id, one) for one in wanted], [decode(one) for one in messages])
        if chosen is None:
            return None
        problem = f"resolve returned {chosen!r}"
        if isinstance(chosen, Vertex):
            try:
                chosen_id, vertex = _load(chosen)
                if chosen_id == vertex_id:
                    return vertex
            except (ArgumentTypeError, CodecError) as error:
                problem = f"resolve returned what makes no vertex: {error}"
        raise ConflictError(vertex_id, f"cannot be added: {problem}: return a Vertex of that id, or None")

    return call


def _aggregate(name: str, given: Any) -> Aggregate:
    one = given if isinstance(given, Aggregator) else Aggregator(given)
    folding = Folding.of(f"aggregator {name!r}", one.combine)
    return Aggregate(folding, folding.identity if one.initial is None else one.initial, one.persistent)


def _id_of(given: Any, what: str) -> Id:
    try:
        return id_key(given)
    except CodecError as error:
        raise ArgumentTypeError(f"{what}: {error}") from None


def _edge_of(target: Any, weight: Any) -> tuple[Id, Any]:
    """An edge with a weight of its own."""
    return _id_of(target, "edge to"), copied(weight, f"weight of the edge to {target!r}")


def _observers(given: Any) -> list[Observer]:
    """One observer, or several."""
    observers = [given] if callable(given) or not isinstance(given, Iterable) or isinstance(given, str) else list(given)
    for one in observers:
        if not callable(one):
            raise ArgumentTypeError(f"observer must be a function of (event), or a sequence of such, not {one!r}")
    return observers


def _by_name(role: str, given: object) -> dict[str, Any]:
    """A copy of a mapping from names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"{role} must be a mapping from names, not {given!r}")
    for name in given:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{role} must have names that are strings, not {name!r}")
    named = {str.__str__(name): one for name, one in given.items()}  # members of enumerations are strings of their own
    encode(list(named), name=role)
    return named
