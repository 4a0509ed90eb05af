"""Operators for algorithms with several phases: functions applied to the vertices or edges of a frontier.

They follow Gemini (Zhu et al., OSDI 2016): ``process_vertices`` and ``process_edges`` return the sum of the results of
the vertices' functions. The sparse and dense signals and slots are derived from the functions of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, ProgramError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.programs.checks import explaining_compilation
from gpu_pregel.host.programs.compiler import compile_function
from gpu_pregel.host.programs.directions import MODES, Mode, make_direction_rule
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.frontier import Frontier
from gpu_pregel.host.programs.interpreter import STRICT
from gpu_pregel.host.programs.parameters import parameter_values
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.state import Activity
from gpu_pregel.kernels.programs.program_cpu import BLOCK_WORDS

Array = np.ndarray[Any, Any]


def process_vertices(
    function: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Array] = (),
    *,
    device: DeviceName = "auto",
    threads: int | None = None,
) -> int | float:
    """Call ``function(vertex, *arrays)`` for every vertex of a frontier and return the sum of the results.

    Parameters
    ----------
    function : callable
        Compiled by Numba. It returns a number and may write to ``arrays[…][vertex]``.
    frontier : Frontier
    arrays : sequence of arrays
        Host arrays are copied to the device and back.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
    threads : int, optional
        Number of CPU threads.

    Returns
    -------
    int or float
        The sum.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> labels = np.zeros(9, np.uint32)
    >>> def start(vertex, labels):
    ...     labels[vertex] = vertex
    ...     return 1
    >>> gp.process_vertices(start, gp.Frontier(gp.grid(3)), [labels])
    9
    """
    _check_frontier(frontier)
    target = get_device(device, threads=threads)
    _check_arrays(target, arrays)
    if isinstance(target, PythonDevice):
        return _process_in_python(function, frontier, tuple(arrays))
    if not target.is_host:
        return _process_on_device(target, function, frontier, tuple(arrays))
    kernel, dtype = compile_function(function, tuple(arrays))
    blocks = -(-len(frontier.words) // BLOCK_WORDS)
    sums = np.zeros(blocks, dtype)
    target.launch(kernel, blocks, BLOCK_WORDS, frontier.words, tuple(arrays), sums, chunk=blocks if blocks <= 2 else 4)
    total: int | float = sums.sum().item()
    return total


def _process_in_python(function: Callable[..., Any], frontier: Frontier, arrays: tuple[Any, ...]) -> int | float:
    """Implement :func:`process_vertices` on the device "python"."""
    plain, total = getattr(function, "py_func", function), 0
    with np.errstate(**STRICT):
        for v in frontier.vertices().tolist():
            result = plain(v, *arrays)
            if not isinstance(result, (int, float, np.number, np.bool_)):
                place = f"{plain.__code__.co_filename}, line {plain.__code__.co_firstlineno}"
                raise ProgramError(f"function returns {result!r:.80}, but must return a number ({place})")
            total += np.asarray(result).item()
    return total


def _process_on_device(
    target: Device, function: Callable[..., Any], frontier: Frontier, arrays: tuple[Any, ...]
) -> int | float:
    """Implement :func:`process_vertices` on a device other than the CPU."""
    kernel, dtype = compile_function(function, arrays, "cuda")
    words = target.upload(frontier.words.view(np.uint32))
    sums = target.zeros(max(1, len(words)), dtype)
    copies = tuple(target.upload(array) if isinstance(array, np.ndarray) else array for array in arrays)
    with explaining_compilation(target.name):
        target.launch(kernel, frontier.graph.num_vertices, words, copies, sums)
    total: int | float = target.download(sums).sum().item()
    _copy_back(target, arrays, copies)
    return total


def _copy_back(target: Device, arrays: tuple[Any, ...], copies: tuple[Any, ...]) -> None:
    """Copy results back into the writable host arrays."""
    for array, copy in zip(arrays, copies, strict=True):
        if isinstance(array, np.ndarray) and array.flags.writeable:
            array[...] = target.download(copy)


def process_edges(
    program: VertexProgram,
    frontier: Frontier,
    arrays: Array | Sequence[Array],
    *,
    parameters: Mapping[str, Any] | None = None,
    transpose: bool = False,
    mode: Mode = "auto",
    superstep: int = 0,
    deterministic: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
) -> int:
    """Send messages along the edges of a frontier once; the vertices that become active replace the frontier.

    Parameters
    ----------
    program : VertexProgram
        The functions ``message``, ``combine``, ``apply`` and ``active`` are used.
    frontier : Frontier
        The senders; updated in place.
    arrays : array[n] or sequence of arrays
        The values of the vertices, one array per field, with the program's dtypes; updated in place.
    parameters : mapping of str to number, optional
        As for :func:`gpu_pregel.run`.
    transpose : bool, default False
        Send along in-edges instead of out-edges.
    mode : {"auto", "push", "pull"}
        As for :func:`gpu_pregel.run`.
    superstep : int, default 0
        ``ctx.superstep`` of the senders; the receivers see ``superstep + 1``.
    deterministic : bool, default True
        As for :func:`gpu_pregel.run`.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
    threads : int, optional
        Number of CPU threads.

    Returns
    -------
    int
        Number of vertices that became active.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> reach = gp.VertexProgram(
    ...     value=np.bool_,
    ...     init=lambda ctx: False,
    ...     message=lambda value, ctx: True,
    ...     combine="or",
    ...     apply=lambda value, incoming, ctx: True,
    ... )
    >>> graph = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True)
    >>> reached, frontier = np.array([False, True, False]), gp.Frontier(graph, [1])
    >>> gp.process_edges(reach, frontier, reached, transpose=True), reached.tolist()
    (1, [True, True, False])
    """
    _check_frontier(frontier)
    check_choice("mode", mode, MODES)
    if not isinstance(program, VertexProgram):
        raise ArgumentTypeError(f"program must be a gp.VertexProgram, not {type(program).__name__}")
    if program.aggregators:
        raise ArgumentError(
            "process_edges does not support aggregators: use gp.run, or call process_vertices afterwards"
        )
    given = parameter_values(program.declared_parameters, parameters)
    graph, target = frontier.graph, get_device(device, threads=threads)
    compiled = compile_for_device(target, graph, program)
    directions = make_direction_rule(program, compiled, graph.num_edges, mode=mode, deterministic=deterministic)
    values = tuple(arrays) if isinstance(arrays, (list, tuple)) else (arrays,)
    _check_arrays(target, values)
    _check_values(values, compiled.value.dtypes, graph.num_vertices)
    key = (id(compiled), transpose, mode == "push", target.name, target.threads)
    # The state of a superstep that fails is not reused.
    state = frontier._states.pop(key, None)
    if state is None:
        always = program.active == "always"
        state = make_state(target, graph, compiled, always=always, with_pull=mode != "push", transpose=transpose)
    state.set_parameters(given)
    state.attach(values, frontier.words)
    flags = frontier.flags()
    degrees = graph.in_degrees if transpose else graph.out_degrees
    activity = Activity(int(flags.sum()), int(degrees[flags].sum()))
    (step,) = state.execute(directions.choose(activity), superstep + 1, activity, (), 1)
    if not target.is_host:
        frontier.words[:] = target.download(state.frontier).view(np.uint64)
        _copy_back(target, values, state.values)
    if not isinstance(target, PythonDevice):  # where each call interprets the program anew
        frontier._states[key] = state
    active: int = step.activity.active_vertices
    return active


def _check_frontier(frontier: object) -> None:
    if not isinstance(frontier, Frontier):
        raise ArgumentTypeError(f"frontier must be a gp.Frontier, not {type(frontier).__name__}")


def _check_arrays(target: Device, arrays: Sequence[Any]) -> None:
    """Raise an error unless all arrays can be used on a device."""
    for k, array in enumerate(arrays):
        on_host = isinstance(array, (np.ndarray, np.generic))
        if not hasattr(array, "dtype") or (target.is_host and not on_host):
            raise ArgumentTypeError(
                f"arrays[{k}] must be an array for device {target.name!r}, not {type(array).__name__}"
            )
        if array.ndim != 1 and not target.is_host:
            raise ArgumentError(f"arrays[{k}] has {array.ndim} dimensions: device {target.name!r} supports only one")


def _check_values(values: tuple[Array, ...], dtypes: tuple[np.dtype[Any], ...], n: int) -> None:
    if [value.dtype for value in values] != list(dtypes):
        found = ", ".join(str(value.dtype) for value in values)
        raise ArgumentTypeError(f"arrays have dtypes {found}, but the program's value is {', '.join(map(str, dtypes))}")
    for k, value in enumerate(values):
        if value.shape != (n,):
            raise GraphError(f"arrays[{k}] has shape {value.shape}, but the graph has {n:,} vertices")
        if isinstance(value, np.ndarray) and not (value.flags.writeable and value.flags.c_contiguous):
            raise ArgumentError(f"arrays[{k}] must be contiguous and writable, as it is updated in place")
