"""The options of a run of agents; their fields also define the signatures of ``run`` and similar functions."""

from __future__ import annotations

import inspect
import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.combiners import Reduction, SuperstepFold
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.master_context import MasterContext
from gpu_pregel.host.agents.observers.events import Observer
from gpu_pregel.host.agents.partition_options import PartitionOptions, is_async
from gpu_pregel.host.agents.retry import DEFAULT_RETRY, RetryPolicy
from gpu_pregel.host.agents.vertex_options import (
    RetryOfVertex,
    TimeoutOfVertex,
    refuse_timeout,
    retry_of,
    timeout_of,
)
from gpu_pregel.host.agents.vertices import Vertex
from gpu_pregel.host.arguments import check_choice, check_integer, check_seconds
from gpu_pregel.host.stores.rows import DURABILITIES, MAX_SECONDS
from gpu_pregel.host.superstep.aggregators import Aggregator, InternalAggregator, MasterAggregator

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned", covariant=True)
Function = TypeVar("Function", bound=Callable[..., Any])
Compute = Callable[[Context], Any]
_DEFAULT_CONCURRENCY = 64
STORED = (
    "combiner",
    "aggregators",
    "master",
    "resolve",
    "on_missing",
    "on_failure",
    "retry",
    "max_message",
    "max_outbox",
    "max_record",
)
"""The options that change results; a store keeps them."""


@dataclass
class RunOptions:
    """The options of a run, checked and normalized; see :func:`run` for their meaning.

    Attributes
    ----------
    given : frozenset of str
        Names of the options that the user has passed.
    functions_by_name : dict of str to callable
        All compute functions.
    aggregators_by_name : dict of str to Aggregator
    folds : dict of str to SuperstepFold
        Those of aggregators of a layer on top of the runtime.
    reductions : dict of str to Reduction
        The reductions of all other aggregators.
    traced : list of str
        The aggregators that are columns of the trace.
    unsent : set of str
        Those that partitions do not get.
    observers : list of callables
    quick : set of Id
        Vertices whose last attempts took little time; runs with copies of the options learn from each other.
    described : dict, optional
        The stored form of the options, once it is known.
    """

    compute: Compute | None = None
    _: KW_ONLY
    workers: int = 0
    threads: int = 0
    combiner: Any = None
    aggregators: Mapping[str, Any] | None = None
    master: Callable[[MasterContext], Any] | None = None
    functions: Mapping[str, Compute] | None = None
    retry: RetryPolicy | RetryOfVertex | None = None
    on_failure: Any = "raise"
    on_missing: str = "error"
    resolve: Callable[..., Any] | None = None
    timeout: float | TimeoutOfVertex | None = None
    max_supersteps: int | None = 100
    on_limit: str = "raise"
    on_waiting: str = "wait"
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
    override: str | Iterable[str] = ()
    given: frozenset[str] = field(init=False, default=frozenset())
    functions_by_name: dict[str, Compute] = field(init=False)
    aggregators_by_name: dict[str, Aggregator] = field(init=False)
    folds: dict[str, SuperstepFold] = field(init=False)
    reductions: dict[str, Reduction] = field(init=False)
    traced: list[str] = field(init=False)
    unsent: set[str] = field(init=False)
    observers: list[Observer] = field(init=False)
    quick: set[bytes] = field(init=False, default_factory=set, repr=False, compare=False)
    described: dict[str, Any] | None = field(init=False, default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.described = None
        check_integer("workers", self.workers, 0, 1 << 10)
        check_integer("threads", self.threads, 0, 1 << 10)
        if self.workers and self.threads:
            raise ArgumentError(
                f"threads={self.threads} are threads of this process, but workers={self.workers} compute in others: "
                f"pass one of them"
            )
        if self.max_supersteps is not None:
            check_integer("max_supersteps", self.max_supersteps, 1, 1 << 62)
        check_choice("on_limit", self.on_limit, ("raise", "return"))
        check_choice("on_waiting", self.on_waiting, ("wait", "return"))
        check_choice("on_missing", self.on_missing, ("error", "create", "drop"))
        if not callable(self.on_failure):
            check_choice("on_failure", self.on_failure, ("raise", "continue", "abort"))
        if self.retry is not None and not isinstance(self.retry, RetryPolicy) and not callable(self.retry):
            raise ArgumentTypeError(f"retry must be a RetryPolicy, or a function of a vertex's id, not {self.retry!r}")
        for name in ("master", "resolve"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ArgumentTypeError(f"{name} must be a function, not {getattr(self, name)!r}")
        self._check_limits()
        self._check_store()
        self._check_override()
        self.observers = as_observers(self.observer)
        self.functions_by_name = self._functions()
        self._check_timeout()
        self.aggregators_by_name, self.folds, self.reductions, self.traced = {}, {}, {}, []
        self.unsent = set()
        for name, aggregator in _by_name("aggregators", self.aggregators).items():
            self._add_aggregator(name, aggregator)

    def _check_limits(self) -> None:
        for name in ("max_concurrency", "max_message", "max_outbox", "max_record", "max_memory"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1, 1 << 62)
        if self.max_memory is not None and self.workers == 0:
            raise ArgumentError("max_memory limits worker processes, but workers=0: pass workers=1 or more")

    def _check_store(self) -> None:
        if self.store is not None:
            check_store(self.store)
        check_choice("durability", self.durability, DURABILITIES)
        check_integer("base_every", self.base_every, 1, 1 << 62)
        check_seconds("lease_seconds", self.lease_seconds, MAX_SECONDS)
        if self.run_id is not None:
            if not isinstance(self.run_id, str):
                raise ArgumentTypeError(f"run_id must be a string, not {self.run_id!r}")
            encode(self.run_id, name="run_id")  # refuses surrogates

    def _check_override(self) -> None:
        if not isinstance(self.override, Iterable):
            raise ArgumentTypeError(f"override must be names of options, not {self.override!r:.80}")
        self.override = [self.override] if isinstance(self.override, str) else list(self.override)
        for name in self.override:
            check_choice("override", name, STORED)

    def copy(self) -> RunOptions:
        """Return a copy for another run, which may be given other observers and limits."""
        other = object.__new__(RunOptions)
        other.__dict__.update(self.__dict__)
        return other

    def adopt(self, values: Mapping[str, Any]) -> None:
        """Replace options by those of a stored run."""
        if not values:
            return
        for name, value in values.items():
            setattr(self, name, value)
        self.__post_init__()

    def _functions(self) -> dict[str, Compute]:
        functions = _by_name("functions", self.functions)
        if self.compute is not None:
            functions["compute"] = self.compute
        if not functions:
            raise ArgumentError("no compute function: pass compute=, or functions= by name")
        for name, function in functions.items():
            if not callable(function):
                raise ArgumentTypeError(f"compute function {name!r} must be a function of (ctx), not {function!r}")
        return functions

    def _check_timeout(self) -> None:
        if self.timeout is None or callable(self.timeout):
            return
        timeout: Any = self.timeout
        seconds = check_seconds("timeout", timeout)
        self.timeout = timeout if isinstance(timeout, (int, float)) else seconds
        if (blocking := self._uninterruptible()) is not None:
            raise refuse_timeout(f"timeout={self.timeout}", blocking)

    def _uninterruptible(self) -> str | None:
        """Return the name of a function that may have no timeout."""
        if self.workers or self.threads:
            return None
        return next((name for name, function in self.functions_by_name.items() if not is_async(function)), None)

    def check_vertices(self, ids: Iterable[Any]) -> None:
        """Check the options that depend on the vertex, if there are any, for the vertices with which a run starts."""
        retry, timeout = self.retry, self.timeout
        if not callable(retry) and not callable(timeout):
            return
        blocking = self._uninterruptible()
        for vertex_id in ids:
            if callable(retry):
                retry_of(retry, vertex_id)
            if callable(timeout) and (seconds := timeout_of(timeout, vertex_id)) is not None and blocking is not None:
                raise refuse_timeout(f"timeout({vertex_id!r:.80})={seconds}", blocking)

    def _add_aggregator(self, name: str, given: Any) -> None:
        aggregator = given if isinstance(given, Aggregator) else Aggregator(given)
        if aggregator.function is not None or aggregator.dtype is not None:
            raise ArgumentError(
                f"aggregator {name!r} of a run of agents cannot have a function or a dtype: agents contribute with "
                f"ctx.aggregate({name!r}, value)"
            )
        reduction = Reduction.of(f"aggregator {name!r}", aggregator.combine)
        if aggregator.initial is None:
            aggregator = replace(aggregator, initial=reduction.identity)
        self.aggregators_by_name[name] = aggregator
        if isinstance(aggregator, MasterAggregator):
            self.unsent.add(name)
        if isinstance(aggregator.combine, SuperstepFold):
            self.folds[name] = aggregator.combine
        else:
            self.reductions[name] = reduction
            if not isinstance(aggregator, InternalAggregator):
                self.traced.append(name)

    def for_partitions(self, run_id: str, branch: int = 0) -> PartitionOptions:
        """Return the options that partitions need."""
        return PartitionOptions(
            functions=self.functions_by_name,
            combiner=None if self.combiner is None else Reduction.of("combiner", self.combiner),
            retry=self.retry or DEFAULT_RETRY,
            run_id=run_id,
            branch=branch,
            timeout=self.timeout,
            max_concurrency=self.max_concurrency or _DEFAULT_CONCURRENCY,
            max_message=self.max_message,
            max_outbox=self.max_outbox,
            max_record=self.max_record,
            max_memory=self.max_memory,
            is_observed=bool(self.observers),
            can_time_out=bool(self.workers or self.threads),
            is_timed=bool(self.observers) and any(getattr(one, "wants_times", False) for one in self.observers),
        )


_NAMES = frozenset(one.name for one in fields(RunOptions) if one.init)


def make_options(caller: str, compute: Compute | None, options: Mapping[str, Any]) -> RunOptions:
    """Return the checked options that were passed to a public function."""
    unknown = options.keys() - _NAMES
    if unknown:
        raise ArgumentTypeError(f"{caller} has no parameter {', '.join(sorted(unknown))}")
    checked = RunOptions(compute, **options)
    checked.given = frozenset(options)
    return checked


class OptionsFunction(Protocol[Parameters, Returned]):
    """The type of a function of vertices and the fields of ``RunOptions``."""

    @overload
    def __call__(
        self, vertices: Iterable[Vertex] | bytes, /, *args: Parameters.args, **options: Parameters.kwargs
    ) -> Returned: ...
    @overload
    def __call__(self, *, vertices: Iterable[Vertex] | bytes, **options: Any) -> Returned: ...


def show_options(function: Function) -> Function:
    """Replace ``**options`` in the signature of a function with the fields of ``RunOptions`` that it does not list."""
    signature = inspect.signature(function)
    listed = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    names = [one.name for one in listed]
    added = [one for name, one in inspect.signature(RunOptions).parameters.items() if name not in names]
    function.__signature__ = signature.replace(parameters=[*listed, *added])  # type: ignore[attr-defined]
    return function


def takes_options(
    constructor: Callable[Parameters, RunOptions],  # noqa: ARG001
) -> Callable[[Callable[..., Returned]], OptionsFunction[Parameters, Returned]]:
    """Apply ``show_options`` to a function of vertices and options, and show the fields to type checkers as well."""
    return show_options


def check_store(store: Any) -> Store:
    """Return ``store``, or raise unless it is a store."""
    from gpu_pregel.host.stores.store import Store

    if not isinstance(store, Store):
        raise ArgumentTypeError(f"store must be a gp.SQLiteStore or another store, not {store!r}")
    return store


def new_run_id() -> str:
    """Return a unique run id: random digits of the process, and a number."""
    return f"{_random_part[0]}{next(_run_numbers):06x}"


_run_numbers = itertools.count(1)
_random_part: list[str] = []


def _choose_random_part() -> None:
    """Choose the digits of this process, also in one that was forked."""
    _random_part[:] = [os.urandom(13).hex()]


_choose_random_part()
os.register_at_fork(after_in_child=_choose_random_part)


def as_observers(given: Any) -> list[Observer]:
    """Return a list of the observers, given one or several."""
    observers = [given] if callable(given) or not isinstance(given, Iterable) or isinstance(given, str) else list(given)
    for observer in observers:
        if not callable(observer):
            raise ArgumentTypeError(
                f"observer must be a function of (event), or a sequence of such functions, not {observer!r}"
            )
    return observers


def _by_name(role: str, given: object) -> dict[str, Any]:
    """Return a copy of a mapping whose keys must be strings."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"{role} must be a mapping from names, not {given!r}")
    for name in given:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{role} must have names that are strings, not {name!r}")
    named = {str.__str__(name): one for name, one in given.items()}  # a member of a str enumeration has its own __str__
    encode(list(named), name=role)
    return named
