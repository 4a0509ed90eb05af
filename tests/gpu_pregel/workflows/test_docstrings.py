"""Docstrings of tools in three styles."""

from __future__ import annotations

import pytest

from gpu_pregel.workflows.docstrings import read_docstring

NUMPY = """Find documents.

    In all folders.

    Parameters
    ----------
    query : str
        What to look for,
        in two lines.
    first, last : int, optional
        Pages.

    Returns
    -------
    list of str
    """
GOOGLE = """Find documents.

    In all folders.

    Args:
        query (str): What to look for,
            in two lines.
        first: Pages.
        last: Pages.

    Returns:
        list: of str
    """
SPHINX = """Find documents.

    In all folders.

    :param str query: What to look for,
        in two lines.
    :param first: Pages.
    :param last: Pages.
    :returns: a list
    """
TEXT = "Find documents.\n\nIn all folders."
PARAMETERS = {"query": "What to look for, in two lines.", "first": "Pages.", "last": "Pages."}


@pytest.mark.parametrize(
    "text, expected",
    [
        (NUMPY, (TEXT, PARAMETERS)),
        (GOOGLE, (TEXT, PARAMETERS)),
        (SPHINX, (TEXT, PARAMETERS)),
        ("Find documents.", ("Find documents.", {})),
        ("Note: this is no heading.", ("Note: this is no heading.", {})),
        ("Find.\n\nReturns\n-------\nstr\n", ("Find.", {})),
        ("", ("", {})),
        (None, ("", {})),
    ],
)
def test_docstrings(text: str | None, expected: tuple[str, dict[str, str]]) -> None:
    def function() -> None: ...

    function.__doc__ = text
    assert read_docstring(function) == expected
