"""The device of a call of an algorithm: "auto" is the one on which the registry says that it is faster."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from gpu_pregel.host.devices import DeviceChoice, get_device
from gpu_pregel.host.graphs.graph import Graph, as_graph

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def chooses_device(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function of the registry run on the device that suits its graph; its statistics say which, and why.

    An algorithm that ran on another device than it was called with states the reason itself.
    """

    @functools.wraps(function)
    def call(
        graph: Any = None, *arguments: Any, device: str = "auto", threads: int | None = None, **options: Any
    ) -> Any:
        graph = as_graph(graph)
        name, reason = device_of(function.__name__, graph, device, threads)
        run: Callable[..., Any] = function
        result = run(graph, *arguments, device=name, threads=threads, **options)
        if result.stats["device"] == get_device(name, threads=threads).name:
            result.stats["device_reason"] = reason
        return result

    return cast(Callable[_Arguments, _Result], call)


def device_of(algorithm: str, graph: Graph, device: str = "auto", threads: int | None = None) -> DeviceChoice:
    """Return the device for an algorithm of the registry on a graph, and the reason."""
    from gpu_pregel.algorithms.registry import algorithm as entry_of

    return graph._choose_device(algorithm, entry_of(algorithm).gpu_from, device, threads)
