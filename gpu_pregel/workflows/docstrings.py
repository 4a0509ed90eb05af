"""Reads what docstrings say about a function and its parameters, in the styles of NumPy, Google and Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_NUMPY_HEADING = re.compile(r"^(\w[\w ]*)\n(-{3,})[ \t]*$", re.MULTILINE)
_GOOGLE_HEADING = re.compile(
    r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?|Warnings?):[ \t]*$", re.MULTILINE
)
_SPHINX_FIELD = re.compile(r"^:(\w+)(?: [^:\n]*?(\w+))?:", re.MULTILINE)
_PARAMETER_HEADINGS = ("args", "arguments", "parameters")


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description of a function, and the descriptions of its parameters by name.

    Examples
    --------
    >>> from gpu_pregel.workflows.docstrings import read_docstring
    >>> def forecast(city: str):
    ...     '''Return the weather of tomorrow.
    ...
    ...     Args:
    ...         city: Its English name.
    ...     '''
    >>> read_docstring(forecast)
    ('Return the weather of tomorrow.', {'city': 'Its English name.'})
    """
    text = inspect.cleandoc(function.__doc__ or "")
    field = _SPHINX_FIELD.search(text)
    if field:
        return text[: field.start()].strip(), _read_fields(text[field.start() :])
    headings = list(_NUMPY_HEADING.finditer(text)) or list(_GOOGLE_HEADING.finditer(text))
    if not headings:
        return text, {}
    found: dict[str, str] = {}
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        if heading[1].strip().lower() in _PARAMETER_HEADINGS:
            found |= _read_entries(text[heading.end() : end])
    return text[: headings[0].start()].strip(), found


def _read_entries(section: str) -> dict[str, str]:
    """Return the entries of a section: a line with names, and indented lines; or ``name (type): text``."""
    lines = inspect.cleandoc("\n" + section).split("\n")
    entries: list[tuple[str, list[str]]] = []
    for line in lines:
        if line[:1].strip():
            names, colon, text = line.partition(":")
            is_numpy = not colon or names.endswith(" ")
            names = names.partition("(")[0]
            entries.append((names, [] if is_numpy else [text]))
        elif entries:
            entries[-1][1].append(line)
    return {
        name.strip().lstrip("*"): " ".join(" ".join(texts).split())
        for names, texts in entries
        for name in names.split(",")
    }


def _read_fields(text: str) -> dict[str, str]:
    fields = list(_SPHINX_FIELD.finditer(text))
    ends = [field.start() for field in fields[1:]] + [len(text)]
    return {
        field[2]: " ".join(text[field.end() : end].split())
        for field, end in zip(fields, ends, strict=True)
        if field[1] in ("param", "parameter", "arg", "argument") and field[2]
    }
