"""What a vertex program's ``master`` reads and decides between two supersteps."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpu_pregel.host.programs.parameters import Parameter, parameter_values


class Decision(NamedTuple):
    """What is decided after a superstep.

    Attributes
    ----------
    halted : bool
        Whether the run ends.
    parameters : tuple of scalars
        What the next superstep sees as ``ctx.parameters``, of the declared dtypes.
    """

    halted: bool
    parameters: tuple[Any, ...]


class MasterStep:
    """What a program's ``master`` is called with after a superstep; see :class:`gpu_pregel.VertexProgram`.

    Attributes
    ----------
    superstep : int
        The superstep that has ended, from 0 on.
    num_vertices : int
    active_vertices : int
        Number of vertices that send in this superstep.
    aggregated : named tuple
        The aggregates of this superstep; in superstep 0, which has none, the identities of their combiners.
    """

    superstep: int
    num_vertices: int
    active_vertices: int
    aggregated: Any

    def __init__(
        self,
        declared: tuple[Parameter, ...],
        superstep: int,
        num_vertices: int,
        active_vertices: int,
        aggregated: Any,
        parameters: Any,
    ) -> None:
        vars(self).update(superstep=superstep, num_vertices=num_vertices, active_vertices=active_vertices)
        vars(self).update(aggregated=aggregated)
        self._declared, self._values, self._halted = declared, parameters, False

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to set anything: parameters and the end of the run are set by calls."""
        if not name.startswith("_"):
            raise AttributeError(
                f"step.{name} cannot be assigned: parameters are set by a call, step.set({name}={value!r:.80}), and "
                f"the run is ended by step.halt()"
            )
        super().__setattr__(name, value)

    @property
    def parameters(self) -> Any:
        """The parameters as a named tuple of Python numbers, with those that :meth:`set` has set."""
        return type(self._values)(*(value.item() for value in self._values))

    def set(self, **values: Any) -> None:
        """Set parameters, by name, that all functions see from the next superstep on.

        Raises
        ------
        ArgumentError, ArgumentTypeError
            The program declares no such parameter, or its dtype cannot represent the value.
        """
        given = {**self._values._asdict(), **values}
        self._values = self._values._make(parameter_values(self._declared, given))

    def halt(self) -> None:
        """End the run after this superstep."""
        self._halted = True

    @property
    def decision(self) -> Decision:
        """What was decided."""
        return Decision(self._halted, tuple(self._values))
