"""The base class of results with one value per vertex, and its conversions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpu_pregel.host.arguments import require
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.interchange import as_table
from gpu_pregel.host.graphs.writers import writer

if TYPE_CHECKING:
    import pandas
    import pyarrow

Array = np.ndarray[Any, Any]


def to_host(array: Any) -> Array:
    """Copy an array from a device to the host; return a host array unchanged."""
    host: Array = array if isinstance(array, np.ndarray) else array.get()
    return host


@dataclass(frozen=True, repr=False)
class VertexResult:
    """One value per vertex of a graph.

    Attributes
    ----------
    graph : Graph
    stats : dict
        "device", "threads", "seconds" (the run time) and "compile_seconds", the time to compile kernels or to load
        them from disk, which the run time leaves out.
    trace : sequence of dict
        One row per phase or superstep.
    """

    graph: Graph
    stats: dict[str, Any]
    trace: Sequence[dict[str, Any]]

    value_name: ClassVar[str]

    @property
    def _values(self) -> Array:
        """The values by vertex number, in host memory."""
        raise NotImplementedError

    @property
    def _value_ids(self) -> Array:
        """The values with vertex numbers translated into the user's ids."""
        return self._values

    def _vertex_ids(self) -> Array:
        return self.graph.to_ids(np.arange(self.graph.num_vertices))

    def _columns(self) -> dict[str, Array]:
        """The columns of files and tables: one row per vertex, by the user's ids."""
        return {"vertex": self._vertex_ids(), self.value_name: self._value_ids}

    def to_numpy(self) -> Array:
        """Return the values by vertex number [n], in host memory."""
        return self._values

    def to_dict(self) -> dict[Any, Any]:
        """Return a dict from the user's ids to values."""
        return dict(zip(self._vertex_ids().tolist(), self._value_ids.tolist(), strict=True))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per vertex, by the user's ids."""
        pandas = require("pandas", f"{type(self).__name__}.to_pandas")
        return pandas.DataFrame(self._columns())

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table with one row per vertex, by the user's ids."""
        return as_table(self._columns())

    def summary(self) -> dict[str, Any]:
        """Return the main figures of the result as JSON data."""
        return {}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.graph.num_vertices:,} values"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file.

        ``.parquet`` and ``.csv`` files hold one row per vertex, by the user's ids; ``.npy`` files hold the array of
        values by vertex number. The file is written completely or not at all.

        Raises
        ------
        FormatError
            The suffix is not supported.
        WriteError
            The file cannot be written, for example because the disk is full.
        """
        writer("result")(path, self._columns(), self.to_numpy())
