"""What NetworkX calls: the functions by name, the conversions, and whether a call can and should be run here."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import FrameType, GeneratorType
from typing import Any, NamedTuple

from gpu_pregel.networkx.argument_nodes import keeps_arguments, with_argument_nodes
from gpu_pregel.networkx.function import Condition, Function
from gpu_pregel.networkx.hand_over import hands_over
from gpu_pregel.networkx.registry import FUNCTIONS

_GRAPHS = ("G", "B")
"""What NetworkX calls the graph that is a function's first parameter; generators have none."""
_named: dict[int, bool] = {}
"""Of the places where NetworkX asks whether the backend can run a call, whether such calls name the backend."""
_DISPATCHES = "_call_if_any_backends_installed"
"""The method of NetworkX that decides on a call; in NetworkX's own tests, another one sends all calls to a backend."""


class Backend:
    """The object behind the entry point ``networkx.backends``; its attributes are the functions by name."""

    def __init__(self) -> None:
        # Set here, not found by __getattr__: NetworkX looks for one at each call, before it asks anything else.
        for name in FUNCTIONS:
            setattr(self, name, _load_when_called(name))

    @staticmethod
    def convert_from_nx(graph: Any, **options: Any) -> Any:
        """Convert a NetworkX graph; see ``conversion``."""
        from gpu_pregel.networkx.conversion import convert_from_nx

        return convert_from_nx(graph, **options)

    @staticmethod
    def convert_to_nx(value: Any, **options: Any) -> Any:
        """Convert the graphs of this backend; see ``conversion``."""
        from gpu_pregel.networkx.conversion import convert_to_nx

        return convert_to_nx(value, **options)

    @staticmethod
    def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why this call is left to NetworkX."""
        if name not in FUNCTIONS:
            return f"gpu_pregel does not implement {name}"
        parameters = _parameters(name)
        if parameters.graph:
            graph = args[0] if args else kwargs.get(parameters.graph)
            # NetworkX converts its own graphs only, and passes any other object as it is.
            if not hasattr(graph, "__networkx_cache__"):
                return "the first argument is no graph of NetworkX"
            if hasattr(graph, "_adj") and _is_called_by_networkx():
                return "it is called by a function that is left to NetworkX"
        if not parameters.conditions:
            return True
        try:
            values = _bind(name, args, kwargs)
        except TypeError as error:
            return str(error)
        for condition in parameters.conditions:
            if (reason := condition(values)) is not None:
                return reason
        return True

    @staticmethod
    def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why NetworkX is expected to be faster; or that it is to say what is wrong."""
        if kwargs and not kwargs.keys() <= _parameters(name).names:
            return "there is an unknown argument"
        return hands_over(name, args, kwargs) or True


def _load_when_called(name: str) -> Callable[..., Any]:
    """Return a function that imports its module, and with it Numba, when it is called; NetworkX only asks for it."""
    function, keeps = FUNCTIONS[name], keeps_arguments(name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if keeps:
            args, kwargs = with_argument_nodes(name, args, kwargs)
        try:
            result = function.implementation()(*args, **kwargs)
        except NotImplementedError:
            raise
        except Exception as error:
            if not inspect.isgeneratorfunction(function.original().orig_func) or not _fits(function, args, kwargs):
                raise
            # So does a generator of NetworkX.
            return _failing(error)
        # NetworkX's callers may close a generator.
        return _begun(result) if isinstance(result, GeneratorType) else _each(result) if type(result) is zip else result

    return call


def _fits(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether a function has the parameters for these arguments."""
    try:
        inspect.signature(function.implementation()).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _each(items: Iterator[Any]) -> Iterator[Any]:
    yield from items


def _begun(items: Iterator[Any]) -> Iterator[Any]:
    """Compute the first item of a generator now: NetworkX takes a call back only before it has returned."""
    try:
        return _continued(next(items), items)
    except StopIteration:
        return items
    except NotImplementedError:
        raise
    except Exception as error:
        return _failing(error)


def _continued(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    """Yield the first item, then the others; a generator, as NetworkX's callers may close it."""
    yield first
    yield from others


def _failing(error: Exception) -> Iterator[Any]:
    """Raise an error when the first item is read."""
    yield from ()
    raise error


def _is_called_by_networkx() -> bool:
    """Return whether a function of NetworkX makes this call that this backend has, but that was left to NetworkX.

    What it calls is left to NetworkX, too. That is asked before anything else, as some call others for each node, and
    answered from the frames of the call, in half a microsecond.
    """
    dispatching = sys._getframe(2).f_back
    if dispatching is None or dispatching.f_code.co_name != _DISPATCHES:
        return False
    codes, frame = _codes(), dispatching.f_back
    while frame is not None:
        if id(frame.f_code) in codes:
            return not _asks_by_name(dispatching)
        module = frame.f_globals.get("__name__")
        if not isinstance(module, str) or not module.startswith("networkx."):
            return False
        frame = frame.f_back
    return False


def _asks_by_name(dispatching: FrameType) -> bool:
    """Return whether the backend has been named in the call, as by a callback that is not written in Python.

    NetworkX asks about such calls at places of their own in its method, so that one look at each is enough: the locals
    of a frame take as long as all else.
    """
    place = dispatching.f_lasti
    if place not in _named:
        _named[place] = dispatching.f_locals.get("backend") is not None
    return _named[place]


@cache
def _codes() -> frozenset[int]:
    """Return what identifies the code of each of NetworkX's functions that this backend has."""
    return frozenset(id(inspect.unwrap(function.original().orig_func).__code__) for function in FUNCTIONS.values())


class _Parameters(NamedTuple):
    """What is known of a function's parameters."""

    graph: str
    """The name of the graph that is the first one; "" if it is none."""
    positional: tuple[str, ...]
    """Those that may be given by position."""
    required: int
    """How many of these have no default."""
    defaults: dict[str, Any]
    names: frozenset[str]
    conditions: tuple[Condition, ...]


def _bind(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by name, in a fraction of the time that ``inspect`` takes.

    Raises
    ------
    TypeError
        The function does not have these parameters.
    """
    parameters = _parameters(name)
    positional, count = parameters.positional, len(args)
    values = parameters.defaults.copy()
    values.update(zip(positional, args, strict=False))
    if count <= len(positional):
        if not kwargs and count >= parameters.required:
            return values
        values.update(kwargs)
        if values.keys() == parameters.names and kwargs.keys().isdisjoint(positional[:count]):
            return values
    bound = _signature(name).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments


@cache
def _parameters(name: str) -> _Parameters:
    found = _signature(name).parameters.values()
    first = next(iter(found)).name
    # NetworkX takes these two for itself.
    named = [one for one in found if one.name not in ("backend", "backend_kwargs")]
    positional = [one for one in named if one.kind is one.POSITIONAL_OR_KEYWORD]
    return _Parameters(
        graph=first if first in _GRAPHS else "",
        positional=tuple(one.name for one in positional),
        required=sum(one.default is one.empty for one in positional),
        defaults={one.name: one.default for one in named if one.default is not one.empty},
        names=frozenset(one.name for one in named),
        conditions=FUNCTIONS[name].conditions,
    )


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(FUNCTIONS[name].original())


backend = Backend()
