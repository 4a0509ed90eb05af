"""Writes results, one value per vertex, as Parquet, CSV or NumPy files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, FormatError
from gpu_pregel.io._files import atomic_file, check_target, suffixes
from gpu_pregel.io._formulas import check_formulas, escape_table

Array = np.ndarray[Any, Any]


def check_result_path(path: str | os.PathLike[str], formulas: str = "keep") -> str:
    """Return the suffix of a result file, or raise the errors of :func:`save_result` before any work.

    Raises
    ------
    ArgumentError
        ``formulas`` is not for such a file.
    FormatError
        The suffix is not supported.
    WriteError
        The folder does not exist or is not writable.

    Examples
    --------
    >>> check_result_path("labels.csv.gz")
    '.csv'
    """
    name = os.fspath(path)
    suffix, compression = suffixes(name)
    if suffix not in (".parquet", ".pq", ".csv", ".npy") or (compression and suffix != ".csv"):
        raise FormatError(name, "unsupported suffix: write results as .parquet, .csv, .csv.gz, .csv.zst or .npy")
    check_formulas(formulas, name)
    check_target(name)
    return suffix


def save_result(
    path: str | os.PathLike[str],
    columns: Mapping[str, Array | list[Any]],
    array: Array,
    *,
    formulas: str = "keep",
) -> None:
    """Write a result, completely or not at all: all columns or only the array, depending on the suffix.

    Parameters
    ----------
    path : path
        ``.parquet``, ``.pq`` and ``.csv`` files hold the columns; ``.csv.gz`` and ``.csv.zst`` are compressed. ``.npy``
        files hold ``array``.
    columns : dict of str to array_like[n]
    array : array[n]
    formulas : {"keep", "escape"}
        "escape" writes an apostrophe before texts that a spreadsheet would compute, as in
        :func:`gpu_pregel.io.save_graph`.

    Raises
    ------
    FormatError
        The suffix is not supported.
    WriteError
        The file cannot be written; no partial file remains.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "labels.csv")
    >>> save_result(path, {"vertex": ["a", "b"], "label": np.array([0, 0])}, np.array([0, 0]))
    >>> path.read_text().split()
    ['"vertex","label"', '"a",0', '"b",0']
    """
    name = os.fspath(path)
    suffix = check_result_path(name, formulas)
    if suffix == ".npy":
        with atomic_file(name) as file:
            # For a real file, np.save reports how many bytes were written, but not why writing failed.
            stream: Any = SimpleNamespace(write=file.write)
            np.save(stream, array)
        return
    import pyarrow as pa

    from gpu_pregel.host.graphs.tables import as_table

    try:
        table = as_table(columns)
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{name}: {error}") from error
    with atomic_file(name) as file:
        if suffix == ".csv":
            import pyarrow.csv

            try:
                pa.csv.write_csv(escape_table(table) if formulas == "escape" else table, file)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ArgumentTypeError(f"{name}: CSV cannot store these ids ({error}): save as .parquet") from error
        else:
            import pyarrow.parquet

            pa.parquet.write_table(table, file)
