"""The .pregel format of this package: an Arrow IPC file whose arrays are mapped into memory.

The file holds one record batch of one row: ``indptr`` large_list<int64>, ``indices`` large_list<uint32>, and optionally
``weights`` and ``ids``. The metadata of the schema holds the version of the format and whether the graph is directed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.mapped_file import MappedFile
from gpu_pregel.io._files import atomic_file
from gpu_pregel.io._options import ReadOptions, graph_from_rows

Array = np.ndarray[Any, Any]

_VERSION = b"1"
_VERSION_KEY = b"gpu_pregel.version"
_DIRECTED_KEY = b"gpu_pregel.directed"
_TYPES = {
    "indptr": ("int64",),
    "indices": ("uint32",),
    "weights": ("int32", "int64", "uint32", "uint64", "float", "double"),
    "ids": ("int32", "int64", "uint32", "uint64", "large_string"),
}


def read(path: str, options: ReadOptions) -> Graph:
    """Read a graph whose arrays are views of the mapped file, if ``mmap``; checking them reads each page once."""
    import pyarrow as pa

    try:
        opened = MappedFile.of(path) if options.mmap else None
        with pa.memory_map(path) if opened else pa.OSFile(path) as content, pa.ipc.open_file(content) as file:
            schema = file.schema
            directed = _check_schema(path, schema)
            if file.num_record_batches != 1:
                raise FormatError(
                    path, f"has {file.num_record_batches} record batches instead of one: write the file again"
                )
            batch = file.get_batch(0)
            batch.validate()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(path, f"is not a .pregel file, or is truncated ({error}): write the file again") from error
    if batch.num_rows != 1:
        raise FormatError(path, f"has {batch.num_rows} rows instead of one: write the file again")
    arrays = {name: _array(path, name, batch.column(name)) for name in schema.names if name in _TYPES}
    weights = arrays.get("weights") if options.wants_weights else None
    graph = graph_from_rows(
        path, options, arrays["indptr"], arrays["indices"], weights, directed=directed, ids=arrays.get("ids")
    )
    graph._file = opened
    return graph


def _check_schema(path: str, schema: Any) -> bool:
    """Check version, columns and types; return whether the graph is directed."""
    metadata = schema.metadata or {}
    version = metadata.get(_VERSION_KEY)
    if version is None:
        raise FormatError(path, "is an Arrow file, but not a .pregel file: its metadata has no version")
    if version != _VERSION:
        shown = version.decode("utf-8", "backslashreplace")
        raise FormatError(path, f"has version {shown} of the format, but only version {_VERSION.decode()} is supported")
    for name, types in _TYPES.items():
        if name not in schema.names:
            if name in ("indptr", "indices"):
                raise FormatError(path, f"has no column {name!r}: write the file again")
            continue
        found = schema.field(name).type
        if str(found) not in {f"large_list<item: {kind}>" for kind in types}:
            raise FormatError(path, f"the column {name!r} is {found}, not a large list of {' or '.join(types)}")
    directed = metadata.get(_DIRECTED_KEY)
    if directed not in (b"true", b"false"):
        raise FormatError(path, f"the metadata {_DIRECTED_KEY.decode()!r} must be true or false, not {directed!r}")
    return bool(directed == b"true")


def _array(path: str, name: str, column: Any) -> Array:
    """Return the values of the only row, copying only strings."""
    import pyarrow as pa

    values = column[0].values
    if values is None or values.null_count:
        raise FormatError(path, f"the column {name!r} contains nulls: write the file again")
    if pa.types.is_large_string(values.type):
        ids = np.empty(len(values), object)
        try:
            values.validate(full=True)
            ids[:] = values.to_pylist()
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            raise FormatError(path, f"the column {name!r} is damaged ({error}): write the file again") from error
        return ids
    # Arrow's to_numpy would import pandas, which takes longer than reading most files.
    return np.from_dlpack(values)


def write(graph: Graph, path: str, _format: str) -> None:
    """Write the CSR, weights, direction and ids of a graph."""
    import pyarrow as pa

    parts = {"indptr": pa.array(graph.indptr), "indices": pa.array(graph.indices)}
    if graph.weights is not None:
        parts["weights"] = pa.array(graph.weights)
    if graph.ids is not None:
        parts["ids"] = _ids(graph.ids)
    columns = [pa.LargeListArray.from_arrays(pa.array([0, len(part)], pa.int64()), part) for part in parts.values()]
    metadata = {_VERSION_KEY: _VERSION, _DIRECTED_KEY: str(graph.is_directed).lower().encode()}
    fields = [pa.field(name, column.type) for name, column in zip(parts, columns, strict=True)]
    schema = pa.schema(fields, metadata)
    with atomic_file(path) as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))


def _ids(ids: Array) -> Any:
    """Return ids as an Arrow array; whoever writes has checked that they are all integers or all strings."""
    import pyarrow as pa

    if ids.dtype.kind in "iu":
        return pa.array(ids.astype(np.int64 if ids.dtype.kind == "i" else np.uint64))
    return pa.array(ids.tolist(), pa.large_string() if all(isinstance(one, str) for one in ids) else pa.int64())
