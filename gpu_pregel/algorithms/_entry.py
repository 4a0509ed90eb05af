"""The entry of an algorithm in the registry, and of the options of its command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph

_PACKAGE = "gpu_pregel.algorithms"


class Option(NamedTuple):
    """An argument of an algorithm, and the option of the command line that passes it.

    Attributes
    ----------
    letter : str
        The option's letter, such as "-r"; "" if it has only the long form. The letters follow GAPBS: -r source,
        -i iterations, -t tolerance, -d delta. Taken: -f -g -k -n -o -u -v.
    argument : str
        The name of the argument; the long form of the option is ``--NAME``, and ``--run-seed`` for "seed".
    kind : str
        "vertex" (an id), "vertices" (ids), "pairs" (pairs of ids), "integer", "integers", "number" (a float), "flag",
        or the values that a string may have, separated by commas: "in,out,all".
    help : str
        The text of ``--help``: a noun phrase, with the default if it has one.
    sample : object
        A value with which tests and benchmarks call the algorithm if the argument is required. Those of the kinds
        "vertex", "vertices" and "pairs" need none: the first vertex, the first two, and the first two as a pair.
    required : bool
        Whether the algorithm cannot be called without it.
    """

    letter: str
    argument: str
    kind: str
    help: str
    sample: Any = None
    required: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an argument that is one of several strings."""
        return () if self.kind in _KINDS else tuple(self.kind.split(","))

    def sample_value(self, graph: Graph) -> Any:
        """Return a value for a graph that has vertices."""
        if self.kind not in ("vertex", "vertices", "pairs"):
            return self.sample
        count = min(graph.num_vertices, 2)
        ids = list(range(count)) if graph.ids is None else graph.ids[:count].tolist()
        return {"vertex": ids[0], "vertices": ids, "pairs": [(ids[0], ids[-1])]}[self.kind]


_KINDS = ("vertex", "vertices", "pairs", "integer", "integers", "number", "flag")


class Algorithm(NamedTuple):
    """One algorithm.

    Attributes
    ----------
    name : str
        The function, exported as ``gp.NAME``. It is called as ``NAME(graph, …, device=…, threads=…, progress=…)``.
    result : str
        The class of its result, a subclass of ``Result`` that its module defines or imports; exported as well.
    command : str
        The subcommand of ``gpu-pregel``.
    finds : str
        What it finds, completing "Find …"; default: "the", and the name in words.
    note : str
        An addition to the description of the command, in parentheses.
    module : str
        The module in this package that defines the function; default: the name.
    exports : tuple of str
        Other functions and classes of the module that the package exports.
    checker : str
        The module in this package that defines ``check_NAME(graph, result)``; default: ``checkers.NAME``.
    requires : tuple of str
        What it requires of the graph: "undirected", "directed", "weights" or "acyclic".
    options : tuple of Option
    paper : str
        Authors, short title and year, for the README.
    cost : str
        Work in terms of n vertices and m stored edges, for the README: "O(n + m)".
    implementations : dict of str to str
        What runs on each kind of device: "cpu", "cuda", which the emulated device follows unless it is named,
        "emulated", "python", and "*" for the others. A name is that of a function in the algorithm's module, or in
        another one of this package as "MODULE:NAME". All have the same parameters, the first of which is the
        ``AlgorithmRun``. An algorithm that only runs vertex programs or operators may have none.
    devices : tuple of str
        The devices on which it runs.
    gpu_from : int or None
        The number of stored edges from which on it is faster on a GPU than on the CPU, so that ``device="auto"`` takes
        the GPU; None if it was not faster at any size measured, or was not measured. ``benchmarks/NOTES.md`` derives
        each.
    peers : tuple of str
        The names in ``benchmarks.peers`` of the libraries that it is compared with.
    """

    name: str
    result: str
    command: str
    finds: str = ""
    note: str = ""
    module: str = ""
    exports: tuple[str, ...] = ()
    checker: str = ""
    requires: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    paper: str = ""
    cost: str = ""
    implementations: Mapping[str, str] = MappingProxyType({})
    devices: tuple[str, ...] = ("cpu", "cuda", "emulated", "python")
    gpu_from: int | None = None
    peers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def purpose(self) -> str:
        """What it finds, with an article."""
        return self.finds or f"the {self.title}"

    @property
    def is_per_source(self) -> bool:
        """Whether it searches from every vertex, unless the argument "sources" is a number of them."""
        return self.cost.endswith("per source")

    @property
    def home(self) -> str:
        """The module that defines the function."""
        return f"{_PACKAGE}.{self.module or self.name}"

    def load(self) -> Callable[..., Any]:
        """Import and return the function."""
        function: Callable[..., Any] = getattr(import_module(self.home), self.name)
        return function

    def load_implementation(self, device: str) -> Callable[..., Any]:
        """Import and return what runs on a device, given by its name, such as "cuda:1"."""
        kind = device.partition(":")[0]
        kinds = (kind, "cuda", "*") if kind == "emulated" else (kind, "*")
        path = next(self.implementations[kind] for kind in kinds if kind in self.implementations)
        module, _, name = path.rpartition(":")
        implementation: Callable[..., Any] = getattr(
            import_module(f"{_PACKAGE}.{module}" if module else self.home), name
        )
        return implementation

    def load_checker(self) -> Callable[..., None]:
        """Import and return the checker, which raises ``VerificationError`` if the result is wrong."""
        module = import_module(f"{_PACKAGE}.{self.checker or f'checkers.{self.name}'}")
        checker: Callable[..., None] = getattr(module, f"check_{self.name}")
        return checker

    def sample_arguments(self, graph: Graph) -> dict[str, Any] | None:
        """Return values for the required arguments; None if they name vertices and the graph has none."""
        required = [option for option in self.options if option.required]
        if graph.num_vertices == 0 and any(option.kind in ("vertex", "vertices", "pairs") for option in required):
            return None
        return {option.argument: option.sample_value(graph) for option in required}
