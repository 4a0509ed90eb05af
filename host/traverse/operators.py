"""Operators for algorithms with several phases: functions applied to the vertices or edges of a frontier.

They follow Gemini (Zhu et al., OSDI 2016), whose operators sum the results of the functions, and Ligra (Shun and
Blelloch, PPoPP 2013), whose operators return the next frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numba import from_dtype, types

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_choice, check_flag
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.failures import explaining_failures
from gpu_pregel.host.traverse.bodies import Bodies, check_function, kind_of
from gpu_pregel.host.traverse.combiners import COMBINERS, BuiltInCombiner, Combiner, check_combine
from gpu_pregel.host.traverse.directions import MODES, PULL_SHARE, Mode
from gpu_pregel.host.traverse.failures import naming_failures
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.labels import LabelBodies, label_total
from gpu_pregel.host.traverse.pairs import PairBodies, PairCount
from gpu_pregel.host.traverse.rows import RowBodies

RESULTS = ("frontier", "sum")


@overload
def process_vertices(
    body: Callable[..., Any], frontier: Frontier, arrays: Sequence[Any] = (), *, returns: Literal["sum"] = "sum"
) -> int | float: ...


@overload
def process_vertices(
    body: Callable[..., Any], frontier: Frontier, arrays: Sequence[Any] = (), *, returns: Literal["frontier"]
) -> Frontier: ...


@overload
def process_vertices(
    body: Callable[..., Any], frontier: Frontier, arrays: Sequence[Any] = (), *, returns: None
) -> None: ...


@explaining_failures()
def process_vertices(
    body: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    returns: Literal["sum", "frontier"] | None = "sum",
) -> int | float | Frontier | None:
    """Call ``body(v, *arrays)`` for every vertex of a frontier.

    Parameters
    ----------
    body : callable
        Compiled by Numba, once for its code and whatever it refers to. The vertex number v is an int64. The body
        returns a number, for a frontier whether the vertex belongs to it, or nothing with ``returns=None``. It may
        write to ``array[v]``; other
        elements only by :mod:`gpu_pregel.atomics`.
    frontier : Frontier
    arrays : sequence of arrays and numbers
        Arrays in the memory of the frontier's device, as from ``frontier.full`` and ``frontier.upload``, of any length.
        Numbers may differ from call to call without compiling again. On CUDA the operators follow the work of CuPy's
        current stream and of the default stream; wait for others that write to an array. After the call, all is
        written.
        A frontier of several partitions takes the same arrays: the owner of v calls the body for v, and of an edge the
        owner of its destination. Where their exchange copies, a partition reads what the others wrote before the call.
        It is an error there to write elsewhere than at ``array[v]`` of arrays with n elements, v being the destination
        of an edge, and the vertex that ``finish`` gets: return numbers that are to be added.
    returns : {"sum", "frontier", None}
        Whether to return the sum of the results, the frontier of the vertices whose result is true, or nothing, so that
        nothing is read back from a GPU.

    Returns
    -------
    int, float, Frontier or None
        Sums of floats are the same to the bit in every run on a device.

    Raises
    ------
    ProgramError
        The body cannot be compiled, takes another number of arguments, does not return a number, or raises on a GPU.
    ArgumentError, ArgumentTypeError
        Another argument is invalid, or ``body`` is not a function.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> frontier = gp.Frontier(gp.grid(3), device="cpu")
    >>> labels = frontier.full(0, np.uint32)
    >>> def start(v, labels):
    ...     labels[v] = v
    ...     return 1
    >>> gp.process_vertices(start, frontier, [labels])
    9
    >>> gp.process_vertices(lambda v: v % 4 == 0, frontier, returns="frontier").vertices().tolist()
    [0, 4, 8]
    """
    arrays, kinds = _checked(frontier, arrays, returns)
    check_function("the body", body, "body(v, *arrays)", 1 + len(arrays))
    run, active = frontier._run, frontier._active
    started = run.start()
    bodies = Bodies(body, None, kinds)
    with naming_failures(
        frontier, arrays, lambda one, every, given: one.process_vertices(bodies, every, given, returns)
    ):
        result = run.operators.process_vertices(bodies, active, arrays, returns)
    run.record(_phase_of(body), "vertices", active, started)
    return frontier._next(result) if returns == "frontier" else result


@overload
def process_edges(
    body: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    receives: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: Literal["frontier"] = "frontier",
    mode: Mode = "auto",
) -> Frontier: ...


@overload
def process_edges(
    body: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    receives: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: Literal["sum"],
    mode: Mode = "auto",
) -> int | float: ...


@overload
def process_edges(
    body: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    receives: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: None,
    mode: Mode = "auto",
) -> None: ...


@explaining_failures()
def process_edges(
    body: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    receives: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: Literal["frontier", "sum"] | None = "frontier",
    mode: Mode = "auto",
) -> Frontier | int | float | None:
    """Call ``body(u, v, weight, *arrays)`` for every edge from a vertex u of a frontier to a vertex v.

    Few active edges are pushed: the rows of the frontier are read. Many are pulled: the rows of all receivers are read,
    each until its vertex does not receive any more. Both call the body for the same edges, unless ``receives`` changes
    its mind meanwhile.

    Parameters
    ----------
    body : callable
        Compiled by Numba, once for its code and whatever it refers to. The vertex numbers u and v are int64, and the
        weight has the dtype of the graph's weights, or is float32 1 if there are none. The body returns whether v
        becomes active, or a number. Several threads may call it for the same vertex: it writes with the functions of
        :mod:`gpu_pregel.atomics`, and reads with ``atomics.load`` what others write. A write without them is no error
        on the CPU or a GPU, but results vary; ``device="emulated"`` reports it as a data race.
    frontier : Frontier
    arrays : sequence of arrays and numbers
        As for :func:`process_vertices`.
    receives : callable, optional
        ``receives(v, *arrays)``: whether vertex v still takes messages. Default: every vertex does.
    transpose : bool, default False
        Go along the in-edges of the frontier's vertices instead of their out-edges.
    returns : {"frontier", "sum", None}
        Whether to return the frontier of the vertices v for which the body returned true, the sum of the results, or
        nothing, so that nothing is read back from a GPU.
    mode : {"auto", "push", "pull"}

    Returns
    -------
    Frontier, int, float or None

    Raises
    ------
    ProgramError
        A function cannot be compiled, takes another number of arguments, returns something else, or raises on a GPU.
    ArgumentError, ArgumentTypeError
        Another argument is invalid, or ``body`` or ``receives`` is not a function.

    Examples
    --------
    A breadth-first search:

    >>> import gpu_pregel as gp, numpy as np
    >>> def visit(u, v, weight, hops, superstep):
    ...     return gp.atomics.compare_and_swap(hops, v, -1, superstep)
    >>> frontier = gp.Frontier(gp.grid(3, holes=0), [0], device="cpu")
    >>> hops = frontier.upload(np.where(np.arange(9) == 0, 0, -1))
    >>> superstep = 0
    >>> while frontier:
    ...     superstep += 1
    ...     frontier = gp.process_edges(visit, frontier, [hops, superstep], receives=lambda v, hops, _: hops[v] < 0)
    >>> hops.tolist()
    [0, 1, 2, 1, 2, 3, 2, 3, 4]
    """
    arrays, kinds = _checked(frontier, arrays, returns)
    check_choice("mode", mode, MODES)
    check_flag("transpose", transpose)
    check_function("the body", body, "body(u, v, weight, *arrays)", 3 + len(arrays))
    if receives is not None:
        check_function("receives", receives, "receives(v, *arrays)", 1 + len(arrays))
    run, active, graph = frontier._run, frontier._active, frontier.graph
    transpose = transpose and graph.is_directed
    started = run.start()
    push, rule = mode == "push", "mode"
    if mode == "auto":
        edges = run.operators.degree_sum(active, graph.csc if transpose else graph._csr)
        push, rule = edges * PULL_SHARE < graph.num_stored_edges, f"1/{PULL_SHARE}"
        if receives is None and active.count < graph.num_vertices and run.operators.pushes_to_all and not push:
            push, rule = True, "only push"
    bodies = Bodies(body, receives, kinds, *_weight_of(graph))
    options = {"transpose": transpose, "push": push}
    with naming_failures(
        frontier, arrays, lambda one, every, given: one.process_edges(bodies, every, given, returns, **options)
    ):
        result = run.operators.process_edges(bodies, active, arrays, returns, **options)
    run.record(_phase_of(body), "push" if push else "pull", active, started, rule)
    return frontier._next(result) if returns == "frontier" else result


@overload
def reduce_rows(
    message: Callable[..., Any],
    combine: BuiltInCombiner | Combiner,
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: Literal["frontier"] = "frontier",
) -> Frontier: ...


@overload
def reduce_rows(
    message: Callable[..., Any],
    combine: BuiltInCombiner | Combiner,
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: Literal["sum"],
) -> int | float: ...


@overload
def reduce_rows(
    message: Callable[..., Any],
    combine: BuiltInCombiner | Combiner,
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: None,
) -> None: ...


@explaining_failures()
def reduce_rows(
    message: Callable[..., Any],
    combine: BuiltInCombiner | Combiner,
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: Literal["frontier", "sum"] | None = "frontier",
) -> Frontier | int | float | None:
    """Combine messages over the row of every vertex of a frontier, and finish the vertex with the result.

    For a vertex v, ``message(v, u, weight, *arrays)`` of all its edges to vertices u are combined, and then
    ``finish(v, combined, *arrays)`` is called once. Threads share the rows by their lengths, so that no body need walk
    one.

    Parameters
    ----------
    message : callable
        Returns a number or a tuple of numbers, whose types are those that Numba finds: ``np.float32(x)`` is narrower
        than ``x``. The numbers v and u are int64, and the weight has the dtype of the graph's weights, or is float32 1
        if there are none. It only reads; what ``finish`` of other vertices writes meanwhile, by ``atomics.load``.
    combine : {"min", "max", "sum", "or", "and", "any"} or Combiner
        Tuples compare lexicographically and are added field by field; "any" takes one of the messages. A row is not
        read on where no other message changes the result: True for "or", the smallest number of the type for "min".
    frontier : Frontier
    arrays : sequence of arrays and numbers
        As for :func:`process_vertices`.
    finish : callable
        Gets the identity of ``combine`` for a vertex without edges: 0 for "sum", the largest number of the type for
        "min". It may write to ``array[v]``, and elsewhere by :mod:`gpu_pregel.atomics`. It returns whether the vertex
        belongs to the next frontier, a number, or nothing with ``returns=None``.
    transpose : bool, default False
        Combine over the in-edges instead of the out-edges.
    returns : {"frontier", "sum", None}
        Whether to return the frontier of the vertices for which ``finish`` returned true, the sum of its results, or
        nothing, so that nothing is read back from a GPU.

    Returns
    -------
    Frontier, int, float or None
        Messages are combined in an order that is the same in every run on a device, so that sums of floats are the same
        to the bit.

    Raises
    ------
    ProgramError
        A function cannot be compiled, takes another number of arguments, returns something else, or raises on a GPU.
    ArgumentError, ArgumentTypeError
        Another argument is invalid.

    Examples
    --------
    The number of neighbours with a smaller number, and the vertices that have none:

    >>> import gpu_pregel as gp
    >>> frontier = gp.Frontier(gp.grid(3, holes=0), device="cpu")
    >>> smaller = frontier.full(0, "int64")
    >>> def store(v, count, smaller):
    ...     smaller[v] = count
    ...     return count == 0
    >>> first = gp.reduce_rows(lambda v, u, weight, smaller: int(u < v), "sum", frontier, [smaller], finish=store)
    >>> smaller.tolist(), first.vertices().tolist()
    ([0, 1, 1, 1, 2, 2, 1, 2, 2], [0])
    """
    arrays, kinds = _checked(frontier, arrays, returns)
    check_combine("combine", combine, COMBINERS)
    check_flag("transpose", transpose)
    check_function("message", message, "message(v, u, weight, *arrays)", 3 + len(arrays))
    check_function("finish", finish, "finish(v, combined, *arrays)", 2 + len(arrays))
    run, active = frontier._run, frontier._active
    started = run.start()
    bodies = RowBodies(message, combine, finish, kinds, *_weight_of(frontier.graph), transpose)
    with naming_failures(frontier, arrays, lambda one, every, given: one.reduce_rows(bodies, every, given, returns)):
        result = run.operators.reduce_rows(bodies, active, arrays, returns)
    run.record(_phase_of(finish), "rows", active, started)
    return frontier._next(result) if returns == "frontier" else result


@overload
def count_labels(
    label: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    weigh: Callable[..., Any] | None = None,
    choose: Callable[..., Any] | None = None,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: Literal["frontier"] = "frontier",
) -> Frontier: ...


@overload
def count_labels(
    label: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    weigh: Callable[..., Any] | None = None,
    choose: Callable[..., Any] | None = None,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: Literal["sum"],
) -> int | float: ...


@overload
def count_labels(
    label: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    weigh: Callable[..., Any] | None = None,
    choose: Callable[..., Any] | None = None,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: None,
) -> None: ...


@explaining_failures()
def count_labels(
    label: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    weigh: Callable[..., Any] | None = None,
    choose: Callable[..., Any] | None = None,
    finish: Callable[..., Any],
    transpose: bool = False,
    returns: Literal["frontier", "sum"] | None = "frontier",
) -> Frontier | int | float | None:
    """Sum weights by the labels of the neighbours of every vertex of a frontier, and finish it with the best label.

    For a vertex v, ``label(v, u, weight, *arrays)`` of all its edges to vertices u are counted in a table. Of the
    labels there, the one with the largest ``choose(v, label, total, *arrays)`` is passed to ``finish(v, label, total,
    *arrays)``; of several, the smallest label.

    Parameters
    ----------
    label : callable
        Returns an integer from 0 to 2^32 - 2, or a negative one for an edge that does not count.
    frontier : Frontier
    arrays : sequence of arrays and numbers
        As for :func:`process_vertices`.
    weigh : callable, optional
        ``weigh(v, u, weight, *arrays)``: the integer that an edge adds to the sum of its label. Default: 1.
    choose : callable, optional
        The score of a label, a number. Default: its sum.
    finish : callable
        Called once for each vertex of the frontier, with label -1 and sum 0 if no edge counts. It may write to
        ``array[v]``, and elsewhere by :mod:`gpu_pregel.atomics`. It returns whether the vertex belongs to the next
        frontier, a number, or nothing with ``returns=None``.
    transpose : bool, default False
        Count along the in-edges instead of the out-edges.
    returns : {"frontier", "sum", None}
        As of :func:`reduce_rows`.

    Returns
    -------
    Frontier, int, float or None

    Raises
    ------
    ProgramError
        A function cannot be compiled, takes another number of arguments, returns something else, or raises on a GPU.
    ArgumentError, ArgumentTypeError
        Another argument is invalid.
    NotEnoughMemoryError
        The tables, 12 bytes for each stored edge, do not fit.

    Examples
    --------
    One round of a label propagation:

    >>> import gpu_pregel as gp, numpy as np
    >>> frontier = gp.Frontier(gp.Graph.from_edgelist([0, 0, 1, 3], [1, 2, 2, 4]), device="cpu")
    >>> labels, others = frontier.upload(np.array([7, 7, 5, 3, 3])), frontier.full(0, "int64")
    >>> def label(v, u, weight, labels, others):
    ...     return labels[u]
    >>> def store(v, label, total, labels, others):
    ...     others[v] = label
    ...     return label != labels[v]
    >>> changed = gp.count_labels(label, frontier, [labels, others], finish=store)
    >>> others.tolist(), changed.vertices().tolist()
    ([5, 5, 7, 3, 3], [0, 1, 2])
    """
    arrays, kinds = _checked(frontier, arrays, returns)
    check_flag("transpose", transpose)
    check_function("label", label, "label(v, u, weight, *arrays)", 3 + len(arrays))
    if weigh is not None:
        check_function("weigh", weigh, "weigh(v, u, weight, *arrays)", 3 + len(arrays))
    if choose is not None:
        check_function("choose", choose, "choose(v, label, total, *arrays)", 3 + len(arrays))
    check_function("finish", finish, "finish(v, label, total, *arrays)", 3 + len(arrays))
    run, active = frontier._run, frontier._active
    started = run.start()
    bodies = LabelBodies(label, weigh, choose or label_total, finish, kinds, *_weight_of(frontier.graph), transpose)
    with naming_failures(frontier, arrays, lambda one, every, given: one.count_labels(bodies, every, given, returns)):
        result = run.operators.count_labels(bodies, active, arrays, returns)
    run.record(_phase_of(finish), "rows", active, started)
    return frontier._next(result) if returns == "frontier" else result


PAIR_RESULTS = ("pairs", "sum")


@overload
def intersect_rows(
    visit: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    pairs: Sequence[Any] | None = None,
    finish: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: Literal["pairs"] = "pairs",
) -> Any: ...


@overload
def intersect_rows(
    visit: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    pairs: Sequence[Any] | None = None,
    finish: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: Literal["sum"],
) -> int | float: ...


@overload
def intersect_rows(
    visit: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    pairs: Sequence[Any] | None = None,
    finish: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: None,
) -> None: ...


@explaining_failures()
def intersect_rows(
    visit: Callable[..., Any],
    frontier: Frontier,
    arrays: Sequence[Any] = (),
    *,
    pairs: Sequence[Any] | None = None,
    finish: Callable[..., Any] | None = None,
    transpose: bool = False,
    returns: Literal["pairs", "sum"] | None = "pairs",
) -> Any:
    """Call a function for every common neighbour of pairs of vertices, and sum what it returns for each pair.

    For each vertex w that is in the rows of both vertices u and v of pair i, ``visit(i, u, v, w, weight_u, weight_v,
    *arrays)`` is called, and then ``finish(i, u, v, total, *arrays)`` once. Threads share the shorter rows of all pairs
    by their lengths, and search for each of its vertices in the longer one.

    A row is taken as a set: a neighbour to which edges are repeated is visited once, with the first of their weights,
    which is the smallest. A vertex with a self-loop is a neighbour of itself.

    Parameters
    ----------
    visit : callable
        All but the weights, of the edges from u and from v to w, are int64; the weights have the dtype of the graph's,
        or are float32 1 if there are none. Several threads may call it for the same pair: it writes with the functions
        of :mod:`gpu_pregel.atomics`. It returns a number, unless nothing is returned and there is no ``finish``.
    frontier : Frontier
        Of the graph whose rows are intersected.
    arrays : sequence of arrays and numbers
        As for :func:`process_vertices`.
    pairs : two arrays of integers, optional
        The numbers u and v of each pair, in the memory of the frontier's device. Default: ``frontier.edges()``, the
        edges of the frontier's vertices.
    finish : callable, optional
        Its result replaces the total of a pair, the sum of what ``visit`` has returned: 0 without common neighbours. It
        may write to ``array[i]``, and elsewhere by :mod:`gpu_pregel.atomics`.
    transpose : bool, default False
        Intersect the rows of the in-edges instead of those of the out-edges.
    returns : {"pairs", "sum", None}
        Whether to return the result of each pair, in device memory, as int64 or float64, the sum of all, or nothing.

    Returns
    -------
    array, int, float or None
        Sums of floats are the same to the bit in every run on a device.

    Raises
    ------
    ProgramError
        A function cannot be compiled, takes another number of arguments, does not return a number, or raises on a GPU.
    GraphError
        A number in ``pairs`` is not that of a vertex.
    ArgumentError, ArgumentTypeError
        Another argument is invalid.

    Examples
    --------
    The number of triangles with each edge, of which the sum is three times the number of triangles; and the Adamic-Adar
    index of a pair:

    >>> import gpu_pregel as gp, numpy as np
    >>> graph = gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3])
    >>> frontier = gp.Frontier(graph, device="cpu")
    >>> gp.intersect_rows(lambda i, u, v, w, weight_u, weight_v: 1, frontier).tolist()
    [1, 1, 1, 0]
    >>> def score(i, u, v, w, weight_u, weight_v, degrees):
    ...     return 1 / np.log(degrees[w])
    >>> pairs, degrees = (np.array([0]), np.array([3])), frontier.upload(graph.out_degrees)
    >>> gp.intersect_rows(score, frontier, [degrees], pairs=pairs).round(3).tolist()
    [0.91]
    """
    arrays, kinds = _checked(frontier, arrays, None)
    if returns is not None:
        check_choice("returns", returns, PAIR_RESULTS)
    check_flag("transpose", transpose)
    check_function("visit", visit, "visit(i, u, v, w, weight_u, weight_v, *arrays)", 6 + len(arrays))
    if finish is not None:
        check_function("finish", finish, "finish(i, u, v, total, *arrays)", 4 + len(arrays))
    ends = _checked_pairs(frontier, pairs)
    run, started = frontier._run, frontier._run.start()
    ends = run.operators.edges(frontier._active) if ends is None else ends
    bodies = PairBodies(visit, finish, kinds, *_weight_of(frontier.graph), transpose)

    def repeat(one: Any, _: Any, given: tuple[Any, ...]) -> Any:
        return one.intersect_rows(bodies, tuple(map(frontier.download, ends)), given, returns)

    with naming_failures(frontier, arrays, repeat):
        result = run.operators.intersect_rows(bodies, ends, arrays, returns)
    run.record(_phase_of(visit), "pairs", PairCount(len(ends[0])), started)
    return result


def _checked_pairs(frontier: Frontier, pairs: Any) -> tuple[Any, Any] | None:
    """Return the arrays of pairs as a tuple, or None without any; raise an error if they are invalid."""
    if pairs is None:
        return None
    if not isinstance(pairs, (list, tuple)) or len(pairs) != 2:
        found = f"{len(pairs)}" if isinstance(pairs, (list, tuple)) else type(pairs).__name__
        raise ArgumentTypeError(f"pairs must be two arrays of vertex numbers, such as [first, second], not {found}")
    for k, array in enumerate(pairs):
        name = f"pairs[{k}]"
        _check_array(name, array, frontier.device)
        if getattr(array, "ndim", 0) != 1:
            raise ArgumentTypeError(f"{name} must be an array of vertex numbers, not {type(array).__name__}")
        kind_of(name, array)
        if array.dtype.kind not in "iu":
            raise ArgumentTypeError(
                f"{name} has dtype {array.dtype}, but vertex numbers are integers: convert it by astype, or find the "
                f"numbers of ids by graph.vertices(ids)"
            )
    if len(pairs[0]) != len(pairs[1]):
        raise ArgumentError(
            f"pairs[0] has {len(pairs[0]):,} vertices and pairs[1] {len(pairs[1]):,}: pass arrays of the same length"
        )
    return pairs[0], pairs[1]


def _weight_of(graph: Graph) -> tuple[Any, bool]:
    """Return the Numba type of a graph's weights, and whether it has any."""
    weights = graph.weights
    return (types.float32, False) if weights is None else (from_dtype(weights.dtype), True)


def _phase_of(body: Callable[..., Any]) -> str:
    """Return the name of a body in the trace: that of a function of the package as words."""
    name = str(getattr(body, "__name__", "body"))
    is_ours = str(getattr(body, "__module__", "")).startswith("gpu_pregel.algorithms.")
    return name.strip("_").replace("_", " ") if is_ours else name


def _checked(frontier: object, arrays: Sequence[Any], returns: object) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arrays as a tuple, and their Numba types, or raise an error if an argument is invalid."""
    if not isinstance(frontier, Frontier):
        raise ArgumentTypeError(f"frontier must be a gp.Frontier, not {type(frontier).__name__}")
    if returns is not None:
        check_choice("returns", returns, RESULTS)
    if not isinstance(arrays, (list, tuple)):
        raise ArgumentTypeError(f"arrays must be a list or tuple of arrays and numbers, not {type(arrays).__name__}")
    device = frontier.device
    for k, array in enumerate(arrays):
        _check_array(f"arrays[{k}]", array, device)
    kinds = [kind_of(f"arrays[{k}]", array) for k, array in enumerate(arrays)]
    if not device.is_host:
        is_of_graph = frontier._run.operators.is_of_graph
        kinds = [
            kind.copy(readonly=True) if is_of_graph(array) else kind for kind, array in zip(kinds, arrays, strict=True)
        ]
    return tuple(arrays), tuple(kinds)


def _check_array(name: str, array: Any, device: Device) -> None:
    """Raise an error unless an argument is a number, or an array in the memory of the device."""
    if getattr(array, "ndim", 0) > 1:
        raise ArgumentError(f"{name} has {array.ndim} dimensions, but bodies take arrays of one")
    is_array = isinstance(array, np.ndarray) and not isinstance(array, np.ma.MaskedArray)
    if device.is_host and not is_array and not isinstance(array, (np.generic, bool, int, float)):
        raise ArgumentTypeError(
            f"{name} must be a NumPy array, as from frontier.upload, or a number, not {type(array).__name__}"
        )
    if isinstance(array, np.ndarray) and not device.is_host:
        raise ArgumentTypeError(
            f"{name} is in host memory, but the frontier is on device {device.name!r}: use frontier.upload"
        )
