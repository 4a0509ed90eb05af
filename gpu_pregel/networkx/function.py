"""The entry of a function of NetworkX in the registry. Importing it imports neither NumPy nor NetworkX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

Condition = Callable[[Mapping[str, Any]], str | None]
"""Takes all arguments of a call by name, and returns why this backend cannot run it, or None."""


class Function(NamedTuple):
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
    """

    name: str
    module: str
    home: str = ""
    public: str = ""
    conditions: tuple[Condition, ...] = ()
    note: str = ""

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
