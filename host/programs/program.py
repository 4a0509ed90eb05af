"""Declarations of vertex programs: values, messages, combiners, aggregators, and what a vertex computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.programs.parameters import Parameter, as_number_dtype, check_name, declare_parameters
from gpu_pregel.host.superstep.aggregators import Aggregator
from gpu_pregel.host.traverse.combiners import COMBINERS, REDUCTIONS, BuiltInCombiner, Combiner, check_combine
from gpu_pregel.host.traverse.functions import check_callable, positional_count

if TYPE_CHECKING:
    from gpu_pregel.host.programs.master_step import MasterStep
    from gpu_pregel.kernels.programs.functions import VertexContext


@dataclass(frozen=True, kw_only=True)
class VertexProgram:
    """What every vertex computes in a superstep, in plain Python; compiled by Numba when the program runs.

    In superstep 0 every vertex runs ``init``, and active vertices send ``message`` along their out-edges. In superstep
    s ≥ 1 the messages of superstep s - 1 are combined and delivered, each vertex with a message runs ``apply``, and
    active vertices send again. The run ends when no vertex is active.

    Parameters
    ----------
    value : dtype, tuple of dtypes, mapping of str to dtype, or class
        The type of a vertex's value. With a tuple, functions take and return tuples. With a mapping, the fields of
        these tuples have names: functions read ``value.hub`` or unpack the fields, and return a tuple in their order.
        ``object``, or a class such as ``str``, ``dict`` or a registered dataclass, declares data, which agents compute:
        see ``fallback`` of :func:`gpu_pregel.run`.
    init : callable
        ``init(ctx)`` returns the value in superstep 0.
    message : callable
        ``message(value, weight, ctx)`` is called once per edge, ``message(value, ctx)`` once per source, for all its
        edges. ``ctx`` describes the source.
    combine : {"min", "max", "sum", "or", "and", "any"} or Combiner
        How the messages to a vertex are combined. Tuples compare lexicographically and are added field by field.
        "any" takes one of the messages: the program promises that all messages to a vertex in a superstep are equal,
        so a pull stops at the first one. Its identity is that of "min", the largest number of the dtype. The identity
        of the named combiners of data is None.
    apply : callable
        ``apply(value, incoming, ctx)`` returns the new value. Runs at exactly the vertices that received a message,
        whatever its value.
    message_type : dtype, tuple of dtypes, mapping of str to dtype, or class, optional
        The type of a message. Default: that of ``value``.
    receives : callable, optional
        Only vertices for which ``receives(value, ctx)`` is true take messages; messages to others are dropped. Called
        with the value and the ``ctx`` that ``apply`` would get. A pull skips the other vertices. Default: all receive.
    ascending : bool, default False
        With ``combine="min"``, the program promises that the messages to a vertex in a superstep do not decrease with
        the number of their source, such as that number itself, so a pull stops at the first one.
    active : "changed", "always" or callable, default "changed"
        Which vertices send after a superstep: those whose value changed in any bit; all, and then all run ``apply``
        too; or those for which ``active(old, new, ctx)`` is true.
    initially_active : callable, optional
        Vertices for which ``initially_active(ctx)`` is true send after superstep 0. Default: all.
    aggregators : mapping of str to Aggregator, optional
        The aggregates of the previous superstep are in ``ctx.aggregated``, by name.
    halt : callable, optional
        ``halt(aggregated)`` or ``halt(aggregated, parameters)``, a Python function called after each superstep but
        superstep 0, which has no aggregates. The run ends if it returns true.
    master : callable, optional
        ``master(step)``, a Python function called on the host after each superstep, instead of ``halt``. It reads
        ``step.superstep``, ``step.num_vertices``, ``step.active_vertices``, ``step.aggregated`` (after superstep 0, the
        identities of the combiners) and ``step.parameters``; ``step.set(NAME=value)`` sets parameters, and
        ``step.halt()`` ends the run. It returns None. What it sets after superstep s all functions see in superstep
        s + 1; the messages of superstep s do not. A checkpoint has what it decided, so that it is not called again for
        the same superstep.
    parameters : mapping of str to dtype or number, optional
        Numbers that all functions read as ``ctx.parameters.NAME`` and that a run may set without compiling again: see
        ``parameters`` of :func:`gpu_pregel.run`. A dtype declares a parameter that every run must set; a number is a
        default, whose type is int64, float64, bool, or its own if it is a NumPy scalar.

    Notes
    -----
    ``ctx`` is a :class:`VertexContext`: ``vertex``, ``superstep``, ``num_vertices``, ``out_degree``, ``in_degree`` (all
    int64), ``aggregated`` and ``parameters``. Pregel: Malewicz et al., SIGMOD 2010; push and pull follow Gemini: Zhu et
    al., OSDI 2016.

    Functions may call themselves on the CPU. A recursion that is too deep for the stack ends the process, as compiled
    code does not check that; ``check=True`` of :func:`gpu_pregel.run` reports it as a ``VertexError``, from Python's
    recursion limit on, and so does the device "python". GPUs cannot run recursive functions.

    Arrays of one dimension, of integers, floats or bool, that these functions use by name are read when a run begins;
    functions cannot write to them. A program with other arrays of the same dtypes in their place is not compiled again.
    Arrays of more dimensions, and those used by combiners or by functions that these call or contain, are constants: a
    program is compiled for each content.

    Examples
    --------
    >>> import gpu_pregel as gp, numpy as np
    >>> labels = gp.VertexProgram(
    ...     value=np.uint32,
    ...     init=lambda ctx: ctx.vertex,
    ...     message=lambda value, ctx: value,
    ...     combine="min",
    ...     apply=lambda value, incoming, ctx: min(value, incoming),
    ... )
    >>> gp.run(gp.Graph.from_edgelist([0, 2], [1, 3]), labels).values.tolist()
    [0, 0, 2, 2]

    A parameter, and a value with named fields:

    >>> hops = gp.VertexProgram(
    ...     value={"hops": np.int64, "parent": np.int64},
    ...     parameters={"source": np.int64},
    ...     init=lambda ctx: (0, ctx.vertex) if ctx.vertex == ctx.parameters.source else (-1, -1),
    ...     initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    ...     message=lambda value, ctx: (value.hops + 1, ctx.vertex),
    ...     combine="min",
    ...     apply=lambda value, incoming, ctx: incoming if value.hops < 0 else value,
    ... )
    >>> gp.run(gp.grid(3, holes=0), hops, parameters={"source": 4}).values.hops.tolist()
    [2, 1, 2, 1, 0, 1, 2, 1, 2]

    A master that halves a step whenever the values change by less than it, and then ends the run:

    >>> def cool(step):
    ...     if step.superstep > 0 and step.aggregated.change < step.parameters.step:
    ...         step.set(step=step.parameters.step / 2)
    ...     if step.parameters.step < 0.1:
    ...         step.halt()
    >>> averages = gp.VertexProgram(
    ...     value=np.float64,
    ...     parameters={"step": 0.8},
    ...     init=lambda ctx: 1.0 if ctx.vertex == 0 else 0.0,
    ...     message=lambda value, ctx: value / ctx.out_degree,
    ...     combine="sum",
    ...     apply=lambda value, incoming, ctx: value + ctx.parameters.step * (incoming - value),
    ...     active="always",
    ...     aggregators={"change": gp.Aggregator("max", lambda old, new, ctx: abs(new - old))},
    ...     master=cool,
    ... )
    >>> result = gp.run(gp.grid(2, holes=0), averages)
    >>> result.status, result.supersteps, result.values.round(2).tolist()
    ('halted', 6, [0.27, 0.24, 0.24, 0.25])
    """

    value: Any
    init: Callable[[VertexContext], Any]
    message: Callable[[Any, VertexContext], Any] | Callable[[Any, Any, VertexContext], Any]
    combine: BuiltInCombiner | Combiner
    apply: Callable[[Any, Any, VertexContext], Any]
    message_type: Any = None
    receives: Callable[[Any, VertexContext], Any] | None = None
    ascending: bool = False
    active: Literal["changed", "always"] | Callable[[Any, Any, VertexContext], Any] = "changed"
    initially_active: Callable[[VertexContext], Any] | None = None
    aggregators: Mapping[str, Aggregator] = field(default_factory=dict)
    halt: Callable[[Any], Any] | Callable[[Any, Any], Any] | None = None
    master: Callable[[MasterStep], Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_dtypes("value", self.value)
        if self.message_type is not None:
            _check_dtypes("message_type", self.message_type)
        check_callable("init", self.init, (1,), "(ctx)")
        check_callable("message", self.message, (2, 3), "(value, ctx) or (value, weight, ctx)")
        check_combine("combine", self.combine, COMBINERS)
        check_callable("apply", self.apply, (3,), "(value, incoming, ctx)")
        if self.receives is not None:
            check_callable("receives", self.receives, (2,), "(value, ctx)")
        if check_flag("ascending", self.ascending) and self.combine != "min":
            raise ArgumentError(f"ascending=True requires combine='min', not {self.combine!r}; remove one of the two")
        if self.active not in ("changed", "always"):
            if not callable(self.active):
                raise ArgumentError(f"active must be 'changed', 'always' or a function, not {self.active!r}")
            check_callable("active", self.active, (3,), "(old, new, ctx)")
        if self.initially_active is not None:
            check_callable("initially_active", self.initially_active, (1,), "(ctx)")
        for name, aggregator in self.aggregators.items():
            check_name("an aggregator", name, "delta")
            if not isinstance(aggregator, Aggregator):
                raise ArgumentTypeError(f"aggregator {name!r} must be a gp.Aggregator, not {aggregator!r}")
            _check_aggregator(name, aggregator)
        if self.halt is not None:
            check_callable("halt", self.halt, (1, 2), "(aggregated) or (aggregated, parameters)")
        if self.master is not None:
            check_callable("master", self.master, (1,), "(step)")
            if self.halt is not None:
                raise ArgumentError("halt= and master= cannot be given together: let master call step.halt()")
        declare_parameters(self.parameters)

    @property
    def is_numeric(self) -> bool:
        """Whether values and messages are numbers, which devices compute; otherwise agents do."""
        return not any(is_data(one) for one in (self.value, self.message_type))

    @property
    def wake(self) -> Callable[[Any, Any, VertexContext], Any] | None:
        """``wake(old, new, ctx)``: whether a vertex that has applied a message wakes an agent; None without agents."""
        return None

    @property
    def declared_parameters(self) -> tuple[Parameter, ...]:
        """The names, dtypes and defaults of the parameters."""
        return declare_parameters(self.parameters)

    @property
    def halt_takes_parameters(self) -> bool:
        """Whether ``halt`` is called with the parameters, too."""
        return self.halt is not None and positional_count(self.halt) == 2

    @property
    def takes_first(self) -> bool:
        """Whether the first message in a row, whose sources ascend, is the combined one."""
        return self.ascending or self.combine == "any"

    @property
    def sends_per_edge(self) -> bool:
        """Whether ``message`` is called once per edge, with the edge's weight."""
        return positional_count(self.message) == 3


@dataclass(frozen=True, kw_only=True)
class WakingProgram(VertexProgram):
    """A program whose vertices wake agents; made by :func:`with_wake`."""

    wakes: Callable[[Any, Any, VertexContext], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_callable("wake", self.wakes, (3,), "(old, new, ctx)")

    @property
    def wake(self) -> Callable[[Any, Any, VertexContext], Any]:
        """``wake(old, new, ctx)``: whether a vertex that has applied a message wakes an agent."""
        return self.wakes


def functions_of(program: VertexProgram) -> list[Any]:
    """Return all functions that vertices call; ``halt`` and ``master`` run on the host."""
    named = (program.init, program.initially_active, program.message, program.apply, program.receives, program.wake)
    active = [program.active] if callable(program.active) else []
    combiners = [one for one in (program.combine, *program.aggregators.values()) if not isinstance(one, str)]
    folds = [one.combine for one in program.aggregators.values() if isinstance(one.combine, Combiner)]
    return [*(one for one in named if one is not None), *active, *(one.function for one in (*combiners, *folds))]


def with_wake(program: VertexProgram, wake: Callable[[Any, Any, VertexContext], Any]) -> WakingProgram:
    """Return a program whose vertices also call ``wake``."""
    own = {one.name: getattr(program, one.name) for one in fields(VertexProgram)}
    return WakingProgram(**own, wakes=wake)


def _check_aggregator(name: str, aggregator: Aggregator) -> None:
    if aggregator.initial is not None or aggregator.persistent:
        raise ArgumentError(
            f"aggregator {name!r} of a vertex program cannot have initial or persistent, which are for agents"
        )
    check_combine(f"combine of aggregator {name!r}", aggregator.combine, REDUCTIONS)
    check_callable(f"function of aggregator {name!r}", aggregator.function, (3,), "(old, new, ctx)")
    if aggregator.dtype is not None:
        _check_dtypes(f"dtype of aggregator {name!r}", aggregator.dtype)


def is_data(declared: Any) -> bool:
    """Whether a declared type is ``object`` or a class of data, whose values no device can hold."""
    return isinstance(declared, type) and not issubclass(declared, np.generic) and as_number_dtype(declared) is None


def as_dtypes(declared: Any) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of a value as a tuple, also for a single one."""
    return (np.dtype(object),) if is_data(declared) else tuple(np.dtype(part) for part in _parts(declared))


def names_of_fields(declared: Any) -> tuple[str, ...] | None:
    """Return the names of a value's fields, or None if they have none."""
    return tuple(declared) if isinstance(declared, Mapping) else None


def _parts(declared: Any) -> tuple[Any, ...]:
    if isinstance(declared, Mapping):
        return tuple(declared.values())
    return declared if isinstance(declared, tuple) else (declared,)


def _check_dtypes(role: str, declared: Any) -> None:
    if isinstance(declared, (tuple, Mapping)) and not declared:
        kind = "tuple" if isinstance(declared, tuple) else "dict"
        raise ArgumentTypeError(f"{role} must be a dtype, a tuple of dtypes or a dict of them, not an empty {kind}")
    for name in names_of_fields(declared) or ():
        check_name(f"a field of {role}", name, "hub")
        if name == "vertex":
            raise ArgumentError(f"'vertex' cannot name a field of {role}: tables of results have a column of that name")
    for part in () if is_data(declared) else _parts(declared):
        if as_number_dtype(part) is None:
            raise ArgumentTypeError(
                f"{role} must be a dtype such as np.float32, or a tuple or dict of them (bool, integers, float32, "
                f"float64), or object or a class of data such as str, not {part!r}"
            )
