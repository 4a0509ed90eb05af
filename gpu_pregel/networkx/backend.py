"""What NetworkX calls: the functions by name, the conversions, and whether a call can and should be run here."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import FrameType, GeneratorType
from typing import Any, NamedTuple

from gpu_pregel.networkx.function import Condition
from gpu_pregel.networkx.hand_over import hands_over
from gpu_pregel.networkx.registry import FUNCTIONS

_GRAPHS = ("G", "B")
"""What NetworkX calls the graph that is a function's first parameter; generators have none."""
_DISPATCHER, _FOR_TESTS = "networkx.utils.backends", "_convert_and_call_for_tests"
"""The module of NetworkX that asks, and its function for NetworkX's own tests, which send all calls to a backend."""


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
        """Return True, or why NetworkX is expected to be faster."""
        return hands_over(name, args, kwargs) or True


def _load_when_called(name: str) -> Callable[..., Any]:
    """Return a function that imports its module, and with it Numba, when it is called; NetworkX only asks for it."""
    function = FUNCTIONS[name]

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            result = function.implementation()(*args, **kwargs)
        except NotImplementedError:
            raise
        except Exception as error:
            if not inspect.isgeneratorfunction(function.original().orig_func):
                raise
            # So does a generator of NetworkX.
            return _failing(error)
        # NetworkX's callers may close a generator.
        return _begun(result) if isinstance(result, GeneratorType) else _each(result) if type(result) is zip else result

    return call


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
    """Return whether a function of NetworkX makes the call in question that this backend has, but has not been given.

    As it is faster there, so are those that it calls. It is asked before anything else, as some call others for each
    node, and answered from the frames of the call, in half a microsecond.
    """
    asking = sys._getframe(2)
    if asking.f_globals.get("__name__") != _DISPATCHER or asking.f_back is None:
        return False
    if asking.f_back.f_code.co_name == _FOR_TESTS:
        return False
    frame: FrameType | None = asking.f_back
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != _DISPATCHER:
            if not isinstance(module, str) or not module.startswith("networkx.") or ".tests" in module:
                return False
            if frame.f_code.co_name in FUNCTIONS:
                return True
        frame = frame.f_back
    return False


class _Parameters(NamedTuple):
    """What is known of a function's parameters."""

    graph: str
    """The name of the graph that is the first one; "" if it is none."""
    positional: tuple[str, ...]
    """Those that may be given by position."""
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
    _, positional, defaults, names, _ = _parameters(name)
    values = defaults.copy()
    values.update(zip(positional, args, strict=False))
    if kwargs:
        values.update(kwargs)
    if (
        values.keys() == names
        and len(args) <= len(positional)
        and (not kwargs or kwargs.keys().isdisjoint(positional[: len(args)]))
    ):
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
    return _Parameters(
        graph=first if first in _GRAPHS else "",
        positional=tuple(one.name for one in named if one.kind is one.POSITIONAL_OR_KEYWORD),
        defaults={one.name: one.default for one in named if one.default is not one.empty},
        names=frozenset(one.name for one in named),
        conditions=FUNCTIONS[name].conditions,
    )


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(FUNCTIONS[name].original())


backend = Backend()
