"""The context of an attempt whose emissions are sent, because the run has observers."""

from __future__ import annotations

from typing import Any

from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.emissions import AttemptEmissions, Emitter
from gpu_pregel.host.agents.kept_values import KeptValues
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Batch, Record, Task, VertexData


class ObservedContext(Context):
    """A context that sends emissions by an ``Emitter``; contexts of other runs are spared the cost."""

    __slots__ = ("_emissions",)

    def __init__(
        self,
        vertex: VertexData,
        task: Task,
        batch: Batch,
        options: PartitionOptions,
        kept_values: KeptValues,
        emitter: Emitter,
    ) -> None:
        super().__init__(vertex, task, batch, options, kept_values)
        self._emissions = AttemptEmissions(emitter, task.id, task.attempt)

    def emit(self, payload: Any) -> None:
        """Send data to the run's observers."""
        self._emissions.add(encode(payload, name="payload"))

    def close(self) -> None:
        """Refuse further messages, requests and emissions."""
        super().close()
        self._emissions.end()

    def record(self) -> Record:
        """Close the context and return the record of the attempt."""
        self._emissions.end()
        return super().record()
