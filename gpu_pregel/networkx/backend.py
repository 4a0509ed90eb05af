"""What NetworkX calls: the functions by name, the conversions, and whether a call can and should be run here."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import FrameType, GeneratorType
from typing import Any

from gpu_pregel.networkx.argument_nodes import with_argument_nodes
from gpu_pregel.networkx.function import Function
from gpu_pregel.networkx.hand_over import hands_over
from gpu_pregel.networkx.registry import FUNCTIONS

_named: dict[int, bool] = {}
"""Of the places where NetworkX asks whether the backend can run a call, whether such calls name the backend."""
_DISPATCHES = "_call_if_any_backends_installed"
"""The method of NetworkX that decides on a call; in NetworkX's own tests, another one sends all calls to a backend."""


class Backend:
    """The object behind the entry point ``networkx.backends``; its attributes are the functions by name."""

    def __init__(self) -> None:
        # Set here, not found by __getattr__: NetworkX looks for one at each call, before it asks anything else.
        for name, function in FUNCTIONS.items():
            setattr(self, name, _load_when_called(function))

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
        if (function := FUNCTIONS.get(name)) is None:
            return f"gpu_pregel does not implement {name}"
        if parameter := function.parameters.graph:
            graph = args[0] if args else kwargs.get(parameter)
            # NetworkX converts its own graphs only, and passes any other object as it is.
            if not hasattr(graph, "__networkx_cache__"):
                return "the first argument is no graph of NetworkX"
            if hasattr(graph, "_adj") and _is_called_by_networkx():
                return "it is called by a function that is left to NetworkX"
        if not function.conditions:
            return True
        try:
            values = function.bind(args, kwargs)
        except TypeError as error:
            return str(error)
        for condition in function.conditions:
            if (reason := condition(values)) is not None:
                return reason
        return True

    @staticmethod
    def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
        """Return True, or why NetworkX is expected to be faster; or that it is to say what is wrong."""
        function = FUNCTIONS[name]
        if kwargs and not kwargs.keys() <= function.parameters.names:
            return "there is an unknown argument"
        return hands_over(function, args, kwargs) or True


def _load_when_called(function: Function) -> Callable[..., Any]:
    """Return a function that imports its module, and with it Numba, when it is called; NetworkX only asks for it."""
    keeps = bool(function.keeps or function.mixes)

    def call(*args: Any, **kwargs: Any) -> Any:
        if keeps:
            args, kwargs = with_argument_nodes(function, args, kwargs)
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


backend = Backend()
