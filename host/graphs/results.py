"""What the results of algorithms have in common: one value per vertex, and its way out to other libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpu_pregel.host.arguments import require
from gpu_pregel.host.graphs.graph import Graph

if TYPE_CHECKING:
    import pandas
    import pyarrow

Array = np.ndarray[Any, Any]


def to_host(array: Any) -> Array:
    """A copy of a device's array in the memory of the host; an array that is there as it is."""
    host: Array = array if isinstance(array, np.ndarray) else array.get()
    return host


@dataclass(frozen=True, repr=False)
class VertexResult:
    """A value per vertex of a graph.

    Attributes
    ----------
    graph : Graph
    stats : dict
        Device, threads, seconds.
    trace : sequence of dict
        A row per phase or superstep.
    """

    graph: Graph
    stats: dict[str, Any]
    trace: Sequence[dict[str, Any]]

    value_name: ClassVar[str]

    @property
    def _values(self) -> Array:
        """The values by vertex number, in the memory of the host."""
        raise NotImplementedError

    @property
    def _value_ids(self) -> Array:
        """The values as a user reads them: vertices by the user's ids."""
        return self._values

    def _vertex_ids(self) -> Array:
        return self.graph.to_ids(np.arange(self.graph.num_vertices))

    def _columns(self) -> dict[str, Array]:
        """What files and tables hold: a row per vertex, by the user's ids."""
        return {"vertex": self._vertex_ids(), self.value_name: self._value_ids}

    def to_numpy(self) -> Array:
        """The values by vertex number, in the memory of the host [n]."""
        return self._values

    def to_dict(self) -> dict[Any, Any]:
        """The value of each vertex, by the user's ids."""
        return dict(zip(self._vertex_ids().tolist(), self._value_ids.tolist(), strict=True))

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row per vertex, by the user's ids."""
        pandas = require("pandas", f"{type(self).__name__}.to_pandas")
        return pandas.DataFrame(self._columns())

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table with a row per vertex, by the user's ids."""
        from gpu_pregel.host.graphs.interchange import as_table

        return as_table(self._columns())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file.

        ``.parquet`` and ``.csv`` get a row per vertex by the user's ids, ``.npy`` the array of values by vertex
        number. The file appears whole or not at all.

        Raises
        ------
        FormatError
            Another suffix.
        WriteError
            The disk is full, say.
        """
        from gpu_pregel.io.results import save_result

        save_result(path, self._columns(), self.to_numpy())
