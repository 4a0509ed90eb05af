"""The base classes of results: any, and those with one value per vertex; their conversions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpu_pregel.host.arguments import require
from gpu_pregel.host.devices.user_arrays import hand_out
from gpu_pregel.host.graphs import package
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.tables import as_frame, as_table

if TYPE_CHECKING:
    import pandas
    import pyarrow

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What an algorithm finds, as an array and as columns: of vertices, edges, pairs or walks, or one number.

    A subclass defines ``_values`` or, in device memory, ``_device_values``, and ``_columns``, ``summary`` and
    ``describe``. Results are compared and hashed by identity, as their arrays cannot be.

    Attributes
    ----------
    graph : Graph
    stats : dict
        "device", "device_reason" (why it was chosen), "threads", "seconds" (the run time) and "compile_seconds", the
        time to compile kernels or to load them from disk, which the run time excludes.
    trace : sequence of dict
        One row per phase or superstep.
    """

    graph: Graph
    stats: dict[str, Any]
    trace: Sequence[dict[str, Any]]

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name not in ("graph", "stats", "trace"):
                object.__setattr__(self, field.name, hand_out(getattr(self, field.name)))

    @property
    def _values(self) -> Array:
        """The main values, in host memory."""
        return self._copy

    @property
    def _device_values(self) -> Any:
        """The main values, in device memory."""
        return self._values

    @cached_property
    def _copy(self) -> Array:
        return to_host(self._device_values)

    def _columns(self) -> dict[str, Array]:
        """The columns of files and tables, by the user's ids."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the main values, in host memory, for ``np.asarray(result)``."""
        return np.array(self._values, dtype=dtype, copy=copy)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table of :meth:`to_arrow` as a PyCapsule, for ``pyarrow.table(result)``, Polars and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __dlpack__(self, **options: Any) -> Any:
        """Return the main values as a DLPack capsule that shares their memory on the device."""
        return self._device_values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        """Return the type and the number of the device that holds the values."""
        device: tuple[Any, int] = self._device_values.__dlpack_device__()
        return device

    def to_numpy(self) -> Array:
        """Return the main values, in host memory."""
        return self._values

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame, by the user's ids; ids that no dtype holds exactly are a column of objects."""
        require("pandas", f"{type(self).__name__}.to_pandas")
        return as_frame(self._columns())

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table, by the user's ids.

        Raises
        ------
        ArgumentTypeError
            No type of Arrow holds all ids of a column exactly; the message names one.
        """
        return as_table(self._columns())

    def summary(self) -> dict[str, Any]:
        """Return the main figures of the result as JSON data."""
        return {}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{len(self._values):,} values"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.describe()}>"

    def save(self, path: str | os.PathLike[str], *, formulas: str = "keep") -> None:
        """Write the result to a file.

        ``.parquet`` and ``.csv`` files hold the columns of :meth:`to_arrow`, by the user's ids; ``.npy`` files hold the
        array of :meth:`to_numpy`. The file is written completely or not at all.

        ``formulas="escape"`` is for .csv files that a spreadsheet opens: it writes an apostrophe before texts, such as
        ids, that begin with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line, which would be computed.

        Raises
        ------
        ArgumentError
            ``formulas="escape"`` is given for another file.
        FormatError
            The suffix is not supported.
        WriteError
            The file cannot be written, for example because the disk is full.
        """
        package.function("save_result")(path, self._columns(), self.to_numpy(), formulas=formulas)


@dataclass(frozen=True, eq=False, repr=False)
class VertexResult(Result):
    """One value per vertex of a graph, by vertex number; ``value_name`` is the column of the values.

    A subclass that has several values per vertex overrides ``_columns``.
    """

    value_name: ClassVar[str]

    def _to_ids(self, values: Array) -> Array:
        """Return values for tables: with vertex numbers translated into ids, and masked where there is no value."""
        return values

    def __len__(self) -> int:
        """Return the number of vertices."""
        return self.graph.num_vertices

    def __getitem__(self, id: Any) -> Any:
        """Return the value of the vertex with this id; for a list, an array or a column of ids, an array of values.

        Raises
        ------
        UnknownVertexError
            No vertex has this id. It is a ``KeyError``.
        """
        if isinstance(id, list) or (hasattr(id, "__array__") and not isinstance(id, np.generic)):
            return self._to_ids(self._values[self.graph.vertices(id)])
        number = self.graph.vertex(id)
        return self._to_ids(self._values[number : number + 1]).tolist()[0]

    def __contains__(self, id: object) -> bool:
        """Return whether a vertex has this id."""
        return id in self.graph

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the user's ids, in the order of vertex numbers, as over a mapping; see :meth:`to_dict`."""
        ids = self.graph.ids
        return iter(range(self.graph.num_vertices) if ids is None else ids.tolist())

    def _vertex_ids(self) -> Array:
        return self.graph.to_ids(np.arange(self.graph.num_vertices))

    def _columns(self) -> dict[str, Array]:
        """The columns of files and tables: one row per vertex, by the user's ids."""
        return {"vertex": self._vertex_ids(), self.value_name: self._to_ids(self._values)}

    def to_dict(self) -> dict[Any, Any]:
        """Return a dict from the user's ids to values."""
        return dict(zip(self._vertex_ids().tolist(), self._to_ids(self._values).tolist(), strict=True))

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.graph.num_vertices:,} values"
