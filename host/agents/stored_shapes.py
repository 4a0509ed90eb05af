"""The shapes of the stored parts of a run: checked before anything relies on them, as a store may have been altered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from operator import itemgetter
from typing import Any

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.records import WAKE_AT, Id

Shape = Callable[[Any], bool]
"""Whether a decoded value can be used."""
_ROWS = {tuple, list}


def _of(*types: type) -> Shape:
    return lambda value: type(value) in types


def _any(value: Any) -> bool:  # noqa: ARG001
    return True


def _is(constant: str) -> Shape:
    return lambda value: type(value) is str and value == constant


def _one_of(*shapes: Shape) -> Shape:
    return lambda value: any(shape(value) for shape in shapes)


def _row(*shapes: Shape) -> Shape:
    def fits(value: Any) -> bool:
        return isinstance(value, (tuple, list)) and len(value) == len(shapes) and _fit(value, shapes)

    return fits


def _fit(values: Any, shapes: tuple[Shape, ...]) -> bool:
    return all(shape(value) for shape, value in zip(shapes, values, strict=False))


def _list_of_types(*types: type) -> Shape:
    """Return the shape of a long list, which is checked quickly."""
    allowed = set(types)
    return lambda value: type(value) is list and allowed.issuperset(map(type, value))


def _table(*columns: type) -> Shape:
    """Return the shape of a long list of rows, which is checked quickly: the types of the columns."""

    def fits(rows: Any) -> bool:
        return (
            type(rows) is list
            and _ROWS.issuperset(map(type, rows))
            and {len(columns)}.issuperset(map(len, rows))
            and all({one}.issuperset(map(type, map(itemgetter(k), rows))) for k, one in enumerate(columns))
        )

    return fits


def _sparse_column(entries: Shape) -> Shape:
    """Return the shape of a column without its empty entries: positions, and entries whose items fit ``entries``."""
    return lambda column: _table(int, tuple)(column) and entries(list(chain.from_iterable(map(itemgetter(1), column))))


def _list_of(shape: Shape) -> Shape:
    return lambda value: isinstance(value, (tuple, list)) and all(map(shape, value))


def _dict_of(key: Shape, value: Shape) -> Shape:
    return lambda items: type(items) is dict and all(map(key, items)) and all(map(value, items.values()))


def _edges(value: Any) -> bool:
    """Whether this is a list of targets and weights in turn."""
    return type(value) is list and len(value) % 2 == 0 and _BYTES_LIST(value[::2])


def _options(value: Any) -> bool:
    return type(value) is dict and all(
        type(name) is str and _OPTIONS.get(name, _OPTION)(option) for name, option in value.items()
    )


_BYTES, _INT, _STR, _BOOL, _NUMBER = _of(bytes), _of(int), _of(str), _of(bool), _of(float, int)
_BYTES_LIST = _list_of_types(bytes)
_COUNTS = _one_of(_BYTES, _list_of_types(int))
_REASON = _STR, _STR, _STR, _STR, _BOOL
FAILURE = _one_of(_row(*_REASON), _row(*_REASON, _NUMBER))
"""The fields of a failure, with or without the time of the next attempt."""
_FAILED_BEFORE = _BYTES, _INT, FAILURE, _BYTES_LIST
_FAILED = _list_of(
    _one_of(
        _row(*_FAILED_BEFORE, _of(int, type(None)), _of(bytes, type(None))),
        _row(*_FAILED_BEFORE),
    )
)
_AGGREGATES, _TIMERS = _dict_of(_STR, _BYTES), _dict_of(_BYTES, _NUMBER)
_FUNCTION = _row(_is("function"), _STR, _list_of(_INT), _BYTES)
_OPTION = _one_of(_of(type(None), bool, int, float, str), _FUNCTION, _row(_is("TopK"), _INT))
_OPTIONS = {
    "retry": _one_of(_row(_INT, _list_of(_STR), _NUMBER, _NUMBER, _NUMBER, _NUMBER), _FUNCTION),
    "aggregators": _dict_of(_STR, _row(_OPTION, _BYTES, _BOOL)),
}
_REQUEST = _one_of(
    _row(_one_of(_is("add_vertex"), _is("remove_edge")), _BYTES, _BYTES),
    _row(_is("remove_vertex"), _BYTES),
    _row(_is("add_edge"), _BYTES, _BYTES, _any),
    _row(_is(WAKE_AT), _NUMBER),
)
are_requests = _list_of(_REQUEST)
"""Whether the mutation requests of a record can be carried out."""
_SEGMENT = (
    _BYTES_LIST,
    _list_of_types(bytes, type(None)),
    _BYTES,
    _list_of_types(int),
    _BYTES_LIST,
    _BYTES_LIST,
    _sparse_column(_table(str, bytes)),
    _sparse_column(are_requests),
    _list_of(_of(tuple)),
)
_MUTATED = _list_of(_row(_BYTES, _BYTES, _list_of(_row(_BYTES, _any)), _BOOL))
_SEGMENT_INSIDE = _one_of(_of(type(None)), _row(*_SEGMENT))
_STATE_OF_ALL = _AGGREGATES, _STR, _FAILED, _options, _TIMERS
_OLD_STATE = _BYTES_LIST, _BYTES_LIST, _any, _COUNTS, _BYTES_LIST, _any, _BYTES_LIST, _COUNTS, _BYTES_LIST
_CHANGED_AGGREGATES = _dict_of(_STR, _of(bytes, type(None)))
_COMMIT = _CHANGED_AGGREGATES, _STR, _BYTES_LIST, _MUTATED, _BYTES_LIST, _dict_of(_STR, _any), _SEGMENT_INSIDE
_COLUMNS: dict[str, tuple[Shape, ...]] = {
    "a segment": _SEGMENT,
    "a commit": (*_COMMIT, _dict_of(_STR, _row(_INT, _BYTES, _BYTES)), _INT),
    "a state": (_BYTES_LIST, _BYTES_LIST, *_STATE_OF_ALL),
    "an old state": (*_OLD_STATE, *_STATE_OF_ALL),
    "vertices": (_BYTES_LIST, _BYTES_LIST, _BYTES, _COUNTS, _edges),
    "messages": (_BYTES_LIST, _COUNTS, _BYTES_LIST),
}
"""The shapes of the first columns of each part, or of all."""


def check_columns(columns: tuple[Any, ...], what: str) -> None:
    """Raise ``CodecError`` if columns of a part cannot be used."""
    shapes = _COLUMNS["an old state" if what == "a state" and len(columns) > 7 else what]
    for number, (column, shape) in enumerate(zip(columns, shapes, strict=False), 1):
        if not shape(column):
            raise CodecError(f"has the wrong structure: part {number} has values of a wrong type", what)


def check_ids(keys: Iterable[Id], what: str) -> None:
    """Raise ``CodecError`` if one of the encoded ids is not an id."""
    try:
        for key in keys:
            vertex = decode(key, name="id")
            if type(vertex) is not str:
                id_key(vertex)
    except CodecError as error:
        raise CodecError(f"names a vertex by invalid data: {error}", what) from error


def check_options(value: Any) -> dict[str, Any]:
    """Return decoded options; raise ``CodecError`` if they cannot be used."""
    if not _options(value):
        raise CodecError("have the wrong structure", "the options")
    return value  # type: ignore[no-any-return]
