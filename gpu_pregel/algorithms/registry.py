"""The registry of algorithms, used by the package, the command line, the tests and the benchmarks.

Importing it imports no algorithm: an entry loads its function and its checker on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

_PACKAGE = "gpu_pregel.algorithms"


class Algorithm(NamedTuple):
    """One algorithm.

    Attributes
    ----------
    name : str
        The function, exported as ``gp.NAME``, and the module in this package that defines it. It is called as
        ``NAME(graph, device=…, threads=…, progress=…)``.
    result : str
        The class of its result, a ``VertexResult`` in the same module, exported as well.
    command : str
        The subcommand of ``gpu-pregel``.
    note : str
        An addition to the help text, in parentheses.
    checker : str
        The module in this package that defines ``check_NAME(graph, values)``; default: ``checkers.NAME``.
    requires : tuple of str
        What it requires of the graph: "undirected", "directed" or "weights".
    peers : tuple of str
        The names in ``benchmarks.peers`` of the libraries that it is compared with.
    """

    name: str
    result: str
    command: str
    note: str = ""
    checker: str = ""
    requires: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def module(self) -> str:
        """The module that defines the function and the class of the result."""
        return f"{_PACKAGE}.{self.name}"

    def load(self) -> Callable[..., Any]:
        """Import and return the function."""
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function

    def load_checker(self) -> Callable[..., None]:
        """Import and return the checker, which raises ``VerificationError`` if the values are wrong."""
        module = import_module(f"{_PACKAGE}.{self.checker or f'checkers.{self.name}'}")
        checker: Callable[..., None] = getattr(module, f"check_{self.name}")
        return checker


_ALL_PEERS = ("gapbs", "gemini", "networkit", "scipy", "rustworkx", "cugraph", "nx-cugraph")

ALGORITHMS = (
    Algorithm("connected_components", "Components", "cc", note="weak if the graph is directed", peers=_ALL_PEERS),
)


def algorithm(name: str) -> Algorithm:
    """Return the entry of the algorithm with this name."""
    return next(entry for entry in ALGORITHMS if entry.name == name)


def exported_names() -> dict[str, str]:
    """Return the names that the package exports, with the module of each."""
    return {name: entry.module for entry in ALGORITHMS for name in (entry.name, entry.result)}
