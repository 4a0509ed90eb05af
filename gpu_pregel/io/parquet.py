"""Parquet tables of edges: a column of sources, one of destinations and, optionally, one of weights."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import atomic_file, name_file_in_errors
from gpu_pregel.io._options import ReadOptions, checked_weights

Array = np.ndarray[Any, Any]

_ENDS = (("source", "target"), ("src", "dst"), ("source", "destination"), ("from", "to"))
_WEIGHTS = ("weight", "weights", "value")
_METADATA = b"gpu_pregel"


def read(path: str, options: ReadOptions) -> Graph:
    """Read a table of edges; tables written by this package retain their direction and isolated vertices."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with pa.parquet.ParquetFile(path, memory_map=True) as file:
            schema = file.schema_arrow
            source, target, weight = _choose_columns(path, options, schema.names)
            names = [source, target] if weight is None else [source, target, weight]
            table = file.read(columns=names, use_threads=options.threads != 1)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(path, f"is not a readable Parquet file ({error}): write it again") from error
    stored = _graph_facts(path, schema)
    directed, num_vertices = options.directed, options.num_vertices
    if directed is None:
        directed = bool(stored.get("directed"))
    if num_vertices is None and not stored.get("ids"):
        num_vertices = stored.get("num_vertices")
    if weight is not None:
        table = table.set_column(2, weight, pa.array(_weights(path, options, weight, table[weight])))
    with name_file_in_errors(path):
        return Graph.from_arrow(
            *(table, source, target, weight),
            num_vertices=num_vertices,
            directed=directed,
            renumber=options.renumber,
            duplicates=options.duplicates,
            self_loops=options.self_loops,
            threads=options.threads,
            progress=options.progress,
        )


def _choose_columns(path: str, options: ReadOptions, names: list[str]) -> tuple[str, str, str | None]:
    """Return the requested columns, those with common names, or the first two."""
    if options.columns is not None:
        for name in options.columns:
            if name not in names:
                raise ArgumentError(f"{path} has no column {name!r}; available columns: {', '.join(map(repr, names))}")
        source, target, *rest = options.columns
        weight = rest[0] if rest else None
    else:
        if len(names) < 2:
            raise FormatError(path, f"has {len(names)} columns: edges require a source and a destination")
        source, target = next((pair for pair in _ENDS if set(pair) <= set(names)), (names[0], names[1]))
        weight = next((name for name in _WEIGHTS if name in names and name not in (source, target)), None)
    if options.wants_weights(path, weight is not None):
        return source, target, weight
    return source, target, None


def _weights(path: str, options: ReadOptions, name: str, column: Any) -> Array:
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise FormatError(
            path, f"the column {name!r} is {column.type}, not a number type: pass weighted=False to ignore it"
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
        return {
            "directed": bool(facts["directed"]),
            "num_vertices": int(facts["num_vertices"]),
            "ids": bool(facts["ids"]),
        }
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(
            path, f"the metadata {_METADATA.decode()!r} is damaged ({error!r}): write the file again"
        ) from error


def write(graph: Graph, path: str, _format: str) -> None:
    """Write columns ``source``, ``target`` and, if any, ``weight``, by the user's ids; each undirected edge once."""
    import pyarrow.parquet

    facts = {"directed": graph.is_directed, "num_vertices": graph.num_vertices, "ids": graph.ids is not None}
    table = graph.to_arrow()
    for name in ("source", "target"):
        problem = _unreadable(table[name])
        if problem:
            raise ArgumentError(f"{path}: {problem}")
    table = table.replace_schema_metadata({_METADATA: json.dumps(facts)})
    with atomic_file(path) as file:
        pyarrow.parquet.write_table(table, file)


def _unreadable(column: Any) -> str | None:
    """Return why a column of ids could not be read back, and the remedy; None if it can be."""
    import pyarrow as pa
    import pyarrow.compute

    types = pa.types
    if column.null_count:
        return "an id is None, which cannot be read back: use integers or strings"
    if types.is_floating(column.type) or types.is_boolean(column.type) or types.is_nested(column.type):
        return f"the ids become values of type {column.type}, which cannot be read back: use integers or strings"
    if types.is_signed_integer(column.type) and len(column):
        smallest = pa.compute.min(column).as_py()
        if smallest < 0:
            return f"the id {smallest} is negative, which cannot be read back: save as .pregel"
    return None
