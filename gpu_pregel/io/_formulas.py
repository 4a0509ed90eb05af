"""Text that spreadsheets would take for formulas, in .csv and .tsv files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.io._files import suffixes

if TYPE_CHECKING:
    import pyarrow

_FORMULA = "^('*(=|\\+|-|@|\t|\r|\n|＝|＋|－|＠))"
"""The start of a formula; after apostrophes as well, so that escaped texts stay different."""


def check_formulas(formulas: object, path: str) -> bool:
    """Return whether formulas are escaped; raise ``ArgumentError`` if spreadsheets do not open such a file.

    The path "-" is standard output, which gets CSV.

    Examples
    --------
    >>> check_formulas("escape", "labels.csv.gz")
    True
    """
    escape = check_choice("formulas", formulas, ("keep", "escape")) == "escape"
    if escape and path != "-" and suffixes(path)[0] not in (".csv", ".tsv"):
        raise ArgumentError(f"{path}: formulas='escape' is for .csv and .tsv files: omit it")
    return escape


def escape_formulas(column: Any) -> Any:
    """Return an Arrow column whose texts that a spreadsheet would compute begin with an apostrophe.

    Examples
    --------
    >>> import pyarrow
    >>> escape_formulas(pyarrow.array(["=1+1", "a", "-5", "'", "'="])).to_pylist()
    ["'=1+1", 'a', "'-5", "'", "''="]
    """
    import pyarrow as pa
    import pyarrow.compute

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    if not any(is_kind(column.type) for is_kind in kinds):
        return column
    return pa.compute.replace_substring_regex(column, pattern=_FORMULA, replacement="'\\1")


def escape_table(table: pyarrow.Table) -> pyarrow.Table:
    """Return a table whose texts are escaped."""
    import pyarrow as pa

    return pa.table([escape_formulas(column) for column in table.columns], names=table.column_names)
