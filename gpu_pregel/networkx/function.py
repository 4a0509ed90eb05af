"""The entry of a function of NetworkX in the registry. Importing it imports neither NumPy nor NetworkX."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

Condition = Callable[[Mapping[str, Any]], str | None]
"""Takes all arguments of a call by name, and returns why this backend cannot run it, or None."""
_GRAPHS = ("G", "B")
"""What NetworkX calls the graph that is a function's first parameter; generators have none."""


class Reads(NamedTuple):
    """The part of its graph that a function of NetworkX reads; parameters are named as NetworkX names them.

    A function with ``rows``, ``sources`` or ``samples`` has nothing else but ``share``.

    Attributes
    ----------
    rows : str
        The parameter with the nodes or pairs whose rows alone are read.
    share : float
        Of a converted graph, up to its nodes divided by this are few rows, as measured with 3,000 and 20,000 nodes;
        default: the function here reads as few rows as NetworkX's.
    start, starts : str
        The parameter with the node from which it searches, or with one or several.
    from_first : bool
        Whether it searches from the first node, and ends if that does not reach all others.
    until_cycle : bool
        Whether such a function only ends at a component with a cycle.
    along : str
        The edges that the search follows: "out", "in", "both" in one search, or "each" in a search of its own.
    reverse : str
        The parameter by which it follows in-edges instead.
    limits, steps : tuple of str
        The parameters that limit how far it searches; the second ones limit the number of edges.
    ends : tuple of str
        The parameters with both ends of a path.
    sources, samples : str
        The parameter with the nodes from which alone it searches, or with their number.
    at_once : tuple of (str, int)
        A parameter, and the value with which it returns at once.
    ends_early : bool
        Whether it ends as soon as it knows the answer, or reads as far as a caller asks.
    """

    rows: str = ""
    share: float = math.inf
    start: str = ""
    starts: str = ""
    from_first: bool = False
    until_cycle: bool = False
    along: str = "out"
    reverse: str = ""
    limits: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    sources: str = ""
    samples: str = ""
    at_once: tuple[str, int] | None = None
    ends_early: bool = False


class Parameters(NamedTuple):
    """What NetworkX's signature of a function says of its parameters."""

    graph: str
    """The name of the graph that is the first one; "" if it is none."""
    positional: tuple[str, ...]
    """Those that may be given by position."""
    positions: dict[str, int]
    """The position of each of these."""
    required: int
    """How many of these have no default."""
    defaults: dict[str, Any]
    names: frozenset[str]


@dataclass(frozen=True, eq=False)
class Function:
    """A function of NetworkX that this backend implements.

    Attributes
    ----------
    name : str
        The name by which NetworkX dispatches it, which is also that of the function that implements it.
    module : str
        The module of ``gpu_pregel.networkx.functions`` that implements it.
    home : str
        The public module of NetworkX with the function: "" for ``networkx`` itself, "community", "bipartite"…
    public : str
        Its name there; default: ``name``.
    conditions : tuple of Condition
        What a call must fulfil; the first that returns a reason sends the call to NetworkX.
    note : str
        What the table of functions says of limits, a phrase such as "for simple graphs".
    reads : Reads, optional
        The part of the graph that it reads; default: all of it.
    is_search : bool
        Whether it ends once all nodes have been found, after few edges of a dense graph, as each search from given
        nodes does.
    keeps : tuple of str
        The parameters whose objects its results have wherever they have these nodes.
    mixes : tuple of str
        Those whose objects its results have in some places, and the graph's own nodes in others.
    unhashable : str
        What it does with an object that is not hashable there: "reported" if it reports an item itself, "late" if
        NetworkX reports the argument after it has begun.
    measured_as : callable, optional
        Takes this, ``args`` and ``kwargs`` of a call, and returns the name of the function whose size decides.
    """

    name: str
    module: str
    home: str = ""
    public: str = ""
    conditions: tuple[Condition, ...] = ()
    note: str = ""
    reads: Reads | None = None
    is_search: bool = False
    keeps: tuple[str, ...] = ()
    mixes: tuple[str, ...] = ()
    unhashable: str = ""
    measured_as: Callable[[Function, tuple[Any, ...], dict[str, Any]], str] | None = None

    @property
    def path(self) -> str:
        """The function as a user calls it, such as ``nx.community.louvain_communities``."""
        return ".".join(part for part in ("nx", self.home, self.public or self.name) if part)

    def original(self) -> Any:
        """Return NetworkX's function."""
        place = import_module("networkx")
        for part in self.path.split(".")[1:]:
            place = getattr(place, part)
        return place

    def implementation(self) -> Any:
        """Import and return the function that implements it."""
        return getattr(import_module(f"gpu_pregel.networkx.functions.{self.module}"), self.name)

    @cached_property
    def ends_early(self) -> bool:
        """Whether NetworkX's function ends as soon as it knows the answer."""
        return self.reads is not None and self.reads.ends_early

    @cached_property
    def ends_with_last_node(self) -> bool:
        """Whether it ends once all nodes have been found."""
        return self.is_search or (self.reads is not None and bool(self.reads.start or self.reads.starts))

    @cached_property
    def signature(self) -> inspect.Signature:
        """NetworkX's signature."""
        return inspect.signature(self.original())

    @cached_property
    def parameters(self) -> Parameters:
        """What the signature says, but for two parameters that NetworkX takes for itself."""
        named = [one for one in self.signature.parameters.values() if one.name not in ("backend", "backend_kwargs")]
        positional = [one for one in named if one.kind is one.POSITIONAL_OR_KEYWORD]
        return Parameters(
            graph=named[0].name if named[0].name in _GRAPHS else "",
            positional=tuple(one.name for one in positional),
            positions={one.name: i for i, one in enumerate(positional)},
            required=sum(one.default is one.empty for one in positional),
            defaults={one.name: one.default for one in named if one.default is not one.empty},
            names=frozenset(one.name for one in named),
        )

    def argument(self, parameter: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return an argument of a call; None if it is not given."""
        position = self.parameters.positions[parameter]
        return args[position] if len(args) > position else kwargs.get(parameter)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call by name, in a fraction of the time that ``inspect`` takes.

        Raises
        ------
        TypeError
            The function does not have these parameters.
        """
        parameters = self.parameters
        positional, count = parameters.positional, len(args)
        values = parameters.defaults.copy()
        values.update(zip(positional, args, strict=False))
        if count <= len(positional):
            if not kwargs and count >= parameters.required:
                return values
            values.update(kwargs)
            if values.keys() == parameters.names and kwargs.keys().isdisjoint(positional[:count]):
                return values
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments
