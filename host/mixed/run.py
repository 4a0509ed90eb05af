"""The public function ``run``: a vertex program on a device or, if no device can compute it, by agents."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CompileError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.partitions import cut_ranges
from gpu_pregel.host.programs.checkpoints import Checkpoint, as_checkpoint
from gpu_pregel.host.programs.factory import compile_for_device
from gpu_pregel.host.programs.program import VertexProgram, with_wake
from gpu_pregel.host.programs.run import Given, ProgramResult, check_options, given_of, within_limit
from gpu_pregel.host.programs.run import run as run_on_device
from gpu_pregel.host.traverse.directions import Mode
from gpu_pregel.host.traverse.frontier import GPU_FROM

if TYPE_CHECKING:
    from gpu_pregel.host.mixed.agents import Agents
    from gpu_pregel.host.mixed.mixed_run import MixedResult
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.kernels.programs.functions import VertexContext


def run(
    graph: GraphLike,
    program: VertexProgram,
    *,
    parameters: Mapping[str, Any] | None = None,
    initial: Any = None,
    frontier: Any = None,
    seed: int = 0,
    device: DeviceName = "auto",
    mode: Mode = "auto",
    partitions: int = 1,
    threads: int | None = None,
    max_supersteps: int | None = None,
    on_limit: Literal["raise", "return"] = "raise",
    deterministic: bool = True,
    progress: bool = False,
    checkpoint: Checkpoint | Store | str | os.PathLike[str] | None = None,
    resume: bool = False,
    check: bool = False,
    fallback: Literal["agents", "error"] | None = None,
    agents: Agents | None = None,
    wake: Callable[[Any, Any, VertexContext], Any] | None = None,
) -> ProgramResult:
    """Run a vertex program until no vertex is active, and no agent.

    Ctrl-C interrupts the run at the next chunk of vertices; on the CPU, a second Ctrl-C returns at once even if a
    function of the program never returns. Times exclude compilation, which ``stats["compile_seconds"]`` reports.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
    program : VertexProgram
    parameters : mapping of str to number, optional
        Values of the program's parameters, by name; those with a default may be left out. Whatever they are, the
        program is compiled once.
    initial : array_like [n], or tuple or mapping of them, optional
        Start from these values, by vertex number, instead of those of ``init``, which is not called: one array for
        each field of the value, as in the ``values`` of a result. They are copied. Integers of an array are values,
        also if they are the ids, as of labels. A Series of pandas is aligned by its index, which holds ids.
    frontier : array_like of int, array_like of bool [n] or Frontier, optional
        The vertices that are active after superstep 0, by number, instead of those that ``initially_active`` chooses;
        ``graph.vertices(ids)`` translates ids.
    seed : int, default 0
        From 0 to 2^63 - 1: runs with the same seed draw the same numbers by ``ctx.random``, on every device.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python", "agents"}
        "auto" is a GPU if there is one and the graph has at least a million stored edges, or arrays in its memory;
        ``stats["device_reason"]`` says why it was chosen. "python" calls the program's functions without compiling
        them, so that breakpoints, ``print`` and ``pdb`` work, and always checks as ``check`` does. "agents" computes
        any program as ``fallback`` describes.
    mode : {"auto", "push", "pull"}
        "auto" pushes in supersteps with few active edges, on the CPU less than 1/20 of the stored ones (of a search,
        of those that nobody has sent along, with the vertices), and pulls in the others. On a GPU it compares the
        bytes that both would move. The trace's ``rule`` says which of them chose.
    partitions : int, default 1
        Number of vertex ranges that the graph is divided into. Each combines its own vertices' messages first, so that
        sums of floats, and whatever a :class:`Combiner` rounds, may differ in the last digits with another number.
    threads : int, optional
        Number of CPU threads. Default: the number of processors available to this process.
    max_supersteps : int, optional
        Maximum number of supersteps; 3 runs the supersteps 0, 1 and 2. If it is reached, the status is
        "max_supersteps", and an error is raised unless the program has ``active="always"``.
    on_limit : {"raise", "return"}
        With "return", ``run`` returns the partial result instead of raising an error.
    deterministic : bool, default True
        If False, floating-point sums may be pushed; the order of addition then varies from run to run.
    progress : bool, default False
        Show the current superstep, and the compilation of kernels, on stderr.
    checkpoint : Checkpoint, store or path, optional
        Save the state of the run regularly. A path to a SQLite file, or a store, stands for ``Checkpoint(path)``.
    resume : bool, default False
        Resume from the newest checkpoint of the run, or start from the beginning without one. If False, the store
        must not contain the run. ``halt``, ``master``, the limits, ``mode`` and ``threads`` may differ from those of
        the first call, and ``partitions`` where results do not depend on it: if messages and aggregates are integers,
        or combined by min, max, or, and. ``halt`` is evaluated for the checkpoint itself, so that a run that has ended
        returns immediately; what ``master`` decided after it is read from the checkpoint.
    check : bool, default False
        Compile for the CPU with checks: a division by zero, an index out of range, an integer that exceeds 64 bits, and
        a result that does not fit its dtype raise an error that names the line and the vertex. Without checks the first
        gives 0 for integers and an infinity or NaN for floats, the second is undefined and may end the process, and
        integers wrap around. A superstep that fails is repeated in Python, some seconds for a million edges. The
        emulated device always checks divisions and indices. A GPU cannot check; there, an exception that a function
        raises, such as that of an index of a tuple, is always reported.
    fallback : {"agents", "error"}, optional
        What happens if no device can compute the program, because it has non-numeric values or Numba cannot compile
        its functions: "agents" computes each vertex as an agent, with the same meaning but a thousand times as slowly,
        on more than a few hundred vertices in as many CPU worker processes as there are processors (see ``workers`` of
        :class:`Agents`); "error" raises an error. Default: "agents" for non-numeric values, otherwise "error".
        Agents store each superstep and use neither ``mode``, ``partitions`` nor
        ``threads``; what they compute is always checked.
    agents : Agents, optional
        Agents beside the numeric vertices: ``gp.Agents(compute, …)`` computes vertices that ``wake`` chooses, or that
        are agents from the start, in worker processes while kernels run. In superstep s they see what superstep s - 1
        left; what they return and send reaches the numeric vertices when s is committed, as one commit of both. Without
        ``compute``, how agents compute the program by ``fallback``.
    wake : callable, optional
        ``wake(old, new, ctx)`` is called like ``active`` for each vertex that has run ``apply``, and returns True for
        those whose agents are to be computed in the next superstep.

    Returns
    -------
    ProgramResult
        The values, the number of supersteps, the status and the trace. With agents beside the vertices a
        :class:`MixedResult`, whose ``agents`` has their states.

    Raises
    ------
    ProgramError
        A function of the program cannot be compiled, or its result cannot be converted to the declared dtype.
    CompileError
        Numba cannot compile a function of the program.
    AgentsFailedError
        Agents failed after all attempts. With a checkpoint the superstep is held, and ``resume=True`` goes on.
    VertexError
        A check fails, or a function raises an exception on a GPU.
    SuperstepLimitError
        ``max_supersteps`` was reached; ``error.result`` is the partial result.
    ArgumentError
        An argument is invalid, or the program cannot run with ``mode="push"``.
    CheckpointError
        The newest checkpoint belongs to another graph or program, or to a run with other ``parameters``, ``initial``,
        ``frontier`` or ``seed``.
    ClaimedError
        Another process is executing the run.
    StoreError
        The store cannot be read or written, or is damaged. Earlier checkpoints remain valid.
    DeviceError, NotEnoughMemoryError
        The device failed, or ran out of memory; the message says what is saved.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> hops = gp.VertexProgram(
    ...     value=np.int64,
    ...     init=lambda ctx: 0 if ctx.vertex == 0 else -1,
    ...     initially_active=lambda ctx: ctx.vertex == 0,
    ...     message=lambda value, ctx: value + 1,
    ...     combine="min",
    ...     apply=lambda value, incoming, ctx: incoming if value < 0 else value,
    ... )
    >>> gp.run(gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3]), hops).values.tolist()
    [0, 1, 2, 3]

    A run that starts from the result of another, in which the value of vertex 3 has been lowered:

    >>> graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3])
    >>> labels = gp.VertexProgram(
    ...     value=np.int64,
    ...     parameters={"step": 0},
    ...     init=lambda ctx: ctx.vertex,
    ...     message=lambda value, ctx: value + ctx.parameters.step,
    ...     combine="min",
    ...     apply=lambda value, incoming, ctx: min(value, incoming),
    ... )
    >>> first = gp.run(graph, labels)
    >>> changed = first.values.copy()
    >>> changed[3] = -5
    >>> gp.run(graph, labels, parameters={"step": 1}, initial=changed, frontier=[3]).values.tolist()
    [-2, -3, -4, -5]

    Risk spreads over the accounts of a chain, until an agent clears the first that exceeds 0.92:

    >>> def investigate(ctx):
    ...     ctx.state = ("cleared", ctx.superstep, [one.id for one in ctx.neighbors])
    ...     return {"risk": 0.0}
    >>> spreading = gp.VertexProgram(
    ...     value={"risk": np.float64},
    ...     init=lambda ctx: (1.0 if ctx.vertex == 0 else 0.0,),
    ...     initially_active=lambda ctx: ctx.vertex == 0,
    ...     message=lambda value, ctx: (value.risk * 0.95,),
    ...     combine="max",
    ...     apply=lambda value, incoming, ctx: (max(value.risk, incoming[0]),),
    ... )
    >>> accounts = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], directed=True)
    >>> result = gp.run(
    ...     accounts,
    ...     spreading,
    ...     agents=gp.Agents(investigate),
    ...     wake=lambda old, new, ctx: old.risk <= 0.92 < new.risk,
    ... )
    >>> result.values.risk.round(2).tolist(), result.agents.values
    ([1.0, 0.0, 0.9, 0.86], {1: ('cleared', 2, [2])})
    """
    if fallback is not None:
        check_choice("fallback", fallback, ("agents", "error"))
    graph = as_graph(graph)
    check_options(program, mode, check, on_limit, partitions, max_supersteps)
    if wake is not None or getattr(agents, "compute", None) is not None:
        options: dict[str, Any] = {
            "mode": mode,
            "partitions": partitions,
            "deterministic": deterministic,
            "check": check,
        }
        options |= {"max_supersteps": max_supersteps, "progress": progress, "resume": resume}
        given = given_of(graph, program, parameters, initial, frontier, seed) if program.is_numeric else None
        mixed = _run_beside(graph, program, given, agents, wake, (device, threads), checkpoint, options)
        return within_limit(mixed, program, on_limit, max_supersteps)
    if not _needs_agents(graph, program, device, threads, fallback, agents):
        try:
            return run_on_device(
                *(graph, program),
                parameters=parameters,
                initial=initial,
                frontier=frontier,
                seed=seed,
                device=device,
                mode=mode,
                partitions=partitions,
                threads=threads,
                max_supersteps=max_supersteps,
                on_limit=on_limit,
                deterministic=deterministic,
                progress=progress,
                checkpoint=checkpoint,
                resume=resume,
                check=check,
            )
        except CompileError as error:
            remedy = "Or pass fallback='agents', which computes each vertex in Python, a thousand times as slowly."
            raise CompileError(f"{error}\n{remedy}") from error.__cause__
    cut_ranges(graph.out_degrees, partitions)  # checks partitions
    from gpu_pregel.host.mixed.agents import Agents
    from gpu_pregel.host.mixed.fallback import run_as_agents

    result = run_as_agents(
        graph,
        program,
        given_of(graph, program, parameters, initial, frontier, seed),
        Agents() if agents is None else agents,
        max_supersteps=max_supersteps,
        progress=progress,
        checkpoint=None if checkpoint is None else as_checkpoint(checkpoint),
        resume=resume,
    )
    return within_limit(result, program, on_limit, max_supersteps)


def _run_beside(
    graph: Graph,
    program: VertexProgram,
    given: Given | None,
    agents: Agents | None,
    wake: Any,
    where: tuple[DeviceName, int | None],
    checkpoint: Any,
    options: dict[str, Any],
) -> MixedResult:
    """Run a program with agents beside its vertices."""
    if agents is None or not hasattr(agents, "compute"):
        if agents is not None:
            raise ArgumentTypeError(f"agents must be a gp.Agents, not {agents!r}")
        raise ArgumentError("wake= needs agents to wake: pass agents=gp.Agents(compute)")
    if agents.compute is None:
        raise ArgumentError("wake= needs a function that computes the agents: pass agents=gp.Agents(compute)")
    if given is None or where[0] == "agents":
        raise ArgumentError(
            "agents are computed beside the numeric vertices of a program, but agents compute this program: without "
            "compute and wake, its functions can do what agents do"
        )
    if wake is None and agents.vertices is None:
        raise ArgumentError("no vertex can become an agent: pass wake=, or gp.Agents(compute, vertices=…)")
    if program.master is not None and agents.max_lag:
        raise ArgumentError(
            "max_lag= must be 0 for a program with master=, which decides after the agents of each superstep: use halt="
        )
    if options["resume"] and checkpoint is None:
        raise ArgumentError("resume=True needs checkpoint=, the store to resume from")
    from gpu_pregel.host.mixed.mixed_run import MixedRun

    device, reason = graph._choose_device("a vertex program", GPU_FROM, *where)
    return MixedRun(
        graph=graph,
        program=program if wake is None else with_wake(program, wake),
        given=given,
        agents=agents,
        target=get_device(device, threads=where[1]),
        reason=reason,
        checkpoint=None if checkpoint is None else as_checkpoint(checkpoint),
        **options,
    ).run()


def _needs_agents(
    graph: Graph,
    program: VertexProgram,
    device: DeviceName,
    threads: int | None,
    fallback: str | None,
    agents: Agents | None,
) -> bool:
    """Whether agents compute the program; raise if they would have to and may not."""
    if agents is not None and not hasattr(agents, "workers"):
        raise ArgumentTypeError(f"agents must be a gp.Agents, not {agents!r}")
    if device == "agents":
        return True
    if not program.is_numeric:
        if fallback == "error":
            raise ArgumentError(
                "no device can compute a program with non-numeric values or messages: omit fallback='error', so "
                "that agents compute it"
            )
        return True
    if fallback != "agents":
        return False
    name, _ = graph._choose_device("a vertex program", GPU_FROM, device, threads)
    try:
        compile_for_device(get_device(name, threads=threads), graph, program)
    except CompileError:
        return True
    return False
