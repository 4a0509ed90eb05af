"""The text and the traceback of an exception as plain strings, whatever the user's exception does."""

from __future__ import annotations

from collections.abc import Callable

_MAX_TEXT = 1 << 16
"""Maximum number of characters of either."""


def text_of(error: BaseException, max_record: int | None = None) -> str:
    """Return the text of an exception with its notes, except for tracebacks, even if its ``__str__`` fails."""
    return _clean(lambda: _with_notes(error), "text", max_record)


def _with_notes(error: BaseException) -> str:
    notes = [text for text in map(str, getattr(error, "__notes__", ())) if "Traceback (most recent" not in text]
    return f"{error} ({'; '.join(notes)})" if notes else str(error)


def trace_of(error: BaseException, max_record: int | None = None) -> str:
    """Return the traceback of an exception, even if its ``__str__`` fails."""
    import traceback

    return _clean(lambda: "".join(traceback.format_exception(error)), "traceback", max_record)


def _clean(make: Callable[[], str], what: str, max_record: int | None) -> str:
    """Return the text that a function returns, as a plain str without surrogates and with its middle cut out."""
    try:
        text = str.encode(make(), "utf-8", "backslashreplace").decode()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = f"<no {what}: {type(error).__name__}>"
    limit = _MAX_TEXT if max_record is None else min(max_record, _MAX_TEXT)
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} ... [{len(text) - 2 * half:,} characters left out] ... {text[len(text) - half :]}"
