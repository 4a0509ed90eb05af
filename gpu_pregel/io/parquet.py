"""Parquet tables of edges: a column of sources, one of targets and, optionally, one of weights.

The metadata of files written by this package holds the direction, the number of vertices and the ids of isolated ones.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.tables import as_table
from gpu_pregel.io._columns import choose_columns
from gpu_pregel.io._files import atomic_file
from gpu_pregel.io._options import ReadOptions, checked_weights, graph_from_edges

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]

_METADATA = b"gpu_pregel"
_MOST_METADATA = 1 << 24


def read(path: str, options: ReadOptions) -> Graph:
    """Read a table of edges; tables written by this package retain their direction and isolated vertices."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pa.parquet.ParquetFile(path, memory_map=True) as file:
            schema = file.schema_arrow
            chosen = choose_columns(path, options, schema.names, len(schema.names))
            source, target = schema.names[chosen.source], schema.names[chosen.target]
            weight = None if chosen.weight is None else schema.names[chosen.weight]
            names = [source, target] if weight is None else [source, target, weight]
            table = file.read(columns=names, use_threads=options.threads != 1)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(path, f"is not a readable Parquet file ({error}): write it again") from error
    weights = None if weight is None else _weights(path, options, weight, table[weight])
    src, dst = (_ids(path, name, table[name]) for name in (source, target))
    facts = _graph_facts(path, schema)
    directed = bool(facts.get("directed")) if options.directed is None else options.directed
    stated = facts.get("num_vertices") if options.num_vertices is None and not facts.get("ids") else None
    isolated = facts.get("isolated") if options.num_vertices is None else None
    vertices = None if isolated is None else _ids(path, "isolated", isolated)
    return graph_from_edges(path, options, src, dst, weights, directed=directed, num_vertices=stated, vertices=vertices)


def _ids(path: str, name: str, column: pyarrow.ChunkedArray) -> Any:
    """Return a column of ids without nulls: strings and times with a zone by Arrow, everything else by NumPy."""
    import pyarrow as pa

    if column.null_count:
        row = int(np.asarray(column.is_null()).argmax())
        raise FormatError(path, f"column {name!r} is null in row {row:,}: drop the row or fill it")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return column if is_zoned or pa.types.is_string(kind) or pa.types.is_large_string(kind) else column.to_numpy()


def _weights(path: str, options: ReadOptions, name: str, column: Any) -> Array:
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise FormatError(
            path, f"the column {name!r} is {column.type}, not a number type: pass weight=None to ignore it"
        )
    if column.null_count:
        row = int(np.asarray(column.is_null()).argmax())
        raise FormatError(path, f"the column {name!r} is null in row {row:,}: every edge requires a weight")
    return checked_weights(path, options, column.to_numpy())


def _graph_facts(path: str, schema: Any) -> dict[str, Any]:
    """Return the facts about the graph that this package stores in the metadata; empty for other files."""
    text = (schema.metadata or {}).get(_METADATA)
    if text is None:
        return {}
    try:
        facts = json.loads(text)
        encoded = facts.get("isolated")
        return {
            "directed": bool(facts["directed"]),
            "num_vertices": int(facts["num_vertices"]),
            "ids": bool(facts["ids"]),
            "isolated": None if encoded is None else _decode(encoded),
        }
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise FormatError(
            path, f"the metadata {_METADATA.decode()!r} is damaged ({error!r}): write the file again"
        ) from error


def write(graph: Graph, path: str, _format: str) -> None:
    """Write the columns ``source``, ``target`` and, if any, ``weight``, by id; each undirected edge once."""
    import pyarrow as pa
    import pyarrow.parquet

    facts: dict[str, Any] = {
        "directed": graph.is_directed,
        "num_vertices": graph.num_vertices,
        "ids": graph.ids is not None,
    }
    src, dst, weights = graph.to_edgelist()
    columns: dict[str, Any] = {"source": src, "target": dst}
    if graph.ids is not None:
        ids = as_table({"source": graph.ids}).column(0).combine_chunks()
        columns = {name: ids.take(pa.array(ends)) for name, ends in columns.items()}
        isolated = np.bincount(src, minlength=graph.num_vertices) + np.bincount(dst, minlength=graph.num_vertices) == 0
        if isolated.any():
            facts["isolated"] = _encode(path, ids.filter(pa.array(isolated)))
    if weights is not None:
        columns["weight"] = weights
    table = pa.table(columns).replace_schema_metadata({_METADATA: json.dumps(facts)})
    with atomic_file(path) as file:
        pyarrow.parquet.write_table(table, file)


def _encode(path: str, ids: pyarrow.Array) -> str:
    """Return ids as text for the metadata."""
    import pyarrow as pa

    stream = pa.BufferOutputStream()
    batch = pa.record_batch({"ids": ids})
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    text = base64.b64encode(stream.getvalue()).decode()
    if len(text) > _MOST_METADATA:
        problem = f"the ids of {len(ids):,} vertices without edges are too long for the metadata: save as .pregel"
        raise FormatError(path, problem)
    return text


def _decode(text: str) -> pyarrow.ChunkedArray:
    import pyarrow as pa

    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_all().column("ids")
