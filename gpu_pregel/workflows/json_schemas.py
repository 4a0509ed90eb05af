"""JSON schemas without a further package: values are checked, and schemas are made from simple types."""

from __future__ import annotations

import enum
import math
import re
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from gpu_pregel.errors import ArgumentError

Schema = dict[str, Any]

_NOTES = {
    *("$schema", "$id", "$comment", "$anchor", "$defs", "definitions"),
    *("title", "description", "default", "example", "examples", "deprecated", "readOnly", "writeOnly"),
    *("format", "contentEncoding", "contentMediaType", "discriminator"),
}
"""Keywords that say nothing about validity, or, as ``format``, need not be checked."""

_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "integer": lambda value: _is_integer(value),
}
_PLAIN_TYPES: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    types.NoneType: {"type": "null"},
    list: {"type": "array"},
    dict: {"type": "object"},
    Any: {},
}


def _is_integer(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def check_schema(schema: Any, name: str) -> Schema:
    """Return ``schema``, or raise unless it is a JSON schema of which every keyword is checked here.

    Raises
    ------
    ArgumentError
        It names the path to the keyword.
    """
    if not isinstance(schema, dict):
        raise ArgumentError(f"{name} must be a JSON schema, as a dictionary, not {schema!r:.80}")
    for path, part in _subschemas(schema, ""):
        if isinstance(part, bool):
            continue
        if not isinstance(part, dict):
            raise ArgumentError(f"{name}{path} must be a JSON schema, as a dictionary, not {part!r:.80}")
        for keyword in part:
            if keyword not in _CHECKS and keyword not in _NOTES:
                raise ArgumentError(
                    f"{name}{path}: the keyword {keyword!r} is not supported; supported keywords: "
                    f"{', '.join(sorted(_CHECKS))}"
                )
        kinds = part.get("type", [])
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if kind not in _TYPES:
                raise ArgumentError(f"{name}{path}: type must be one of {', '.join(_TYPES)}, not {kind!r:.80}")
        if "$ref" in part:
            try:
                _resolve(part["$ref"], schema)
            except (KeyError, TypeError):
                raise ArgumentError(f"{name}{path}: $ref leads nowhere: {part['$ref']!r:.80}") from None
    return schema


def _subschemas(schema: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, schema
    if not isinstance(schema, dict):
        return
    for keyword in ("properties", "$defs", "definitions"):
        for key, part in (schema.get(keyword) or {}).items():
            yield from _subschemas(part, f"{path}.{keyword}.{key}")
    for keyword in ("items", "additionalProperties", "not"):
        if keyword in schema:
            yield from _subschemas(schema[keyword], f"{path}.{keyword}")
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for number, part in enumerate(schema.get(keyword) or ()):
            yield from _subschemas(part, f"{path}.{keyword}[{number}]")


def find_problem(value: Any, schema: Schema) -> str | None:
    """Return what is wrong with a JSON value by a schema, with the path to it, or None.

    Examples
    --------
    >>> from gpu_pregel.workflows.json_schemas import find_problem
    >>> find_problem({"a": [1, "2"]}, {"properties": {"a": {"items": {"type": "integer"}}}})
    'a[1] must be of type integer, not "2"'
    """
    return next(_problems(value, schema, "", schema), None)


def _problems(value: Any, schema: Any, path: str, root: Schema) -> Iterator[str]:
    if schema is False:
        yield f"{_name(path)} is not allowed"
    if not isinstance(schema, dict):
        return
    for keyword, check in _CHECKS.items():
        if keyword in schema:
            yield from check(value, schema, path, root)


def _name(path: str) -> str:
    return path.removeprefix(".") or "the value"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 60 else f'"{value[:60]}…"'
    return f"{value!r:.80}"


def _resolve(reference: Any, root: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise KeyError(reference)
    part: Any = root
    for key in reference[1:].split("/")[1:]:
        part = part[key.replace("~1", "/").replace("~0", "~")]
    return part


def _check_ref(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    return _problems(value, _resolve(schema["$ref"], root), path, root)


def _check_type(value: Any, schema: Schema, path: str, _: Schema) -> Iterator[str]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_TYPES[kind](value) for kind in kinds if kind in _TYPES):
        yield f"{_name(path)} must be of type {' or '.join(kinds)}, not {_shown(value)}"


def _check_enum(value: Any, schema: Schema, path: str, _: Schema) -> Iterator[str]:
    allowed = schema["enum"] if "enum" in schema else [schema["const"]]
    if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in allowed):
        yield f"{_name(path)} must be {' or '.join(map(_shown, allowed))}, not {_shown(value)}"


def _check_required(value: Any, schema: Schema, path: str, _: Schema) -> Iterator[str]:
    if isinstance(value, dict):
        for key in schema["required"]:
            if key not in value:
                yield f"{_name(f'{path}.{key}')} is missing"


def _check_properties(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    if isinstance(value, dict):
        for key, kind in schema["properties"].items():
            if key in value:
                yield from _problems(value[key], kind, f"{path}.{key}", root)


def _check_additional(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    known, kind = schema.get("properties", {}), schema["additionalProperties"]
    for key in value if isinstance(value, dict) else ():
        if key not in known and kind is False:
            yield f"{_name(f'{path}.{key}')} is unknown; known names: {', '.join(known) or 'none'}"
        elif key not in known:
            yield from _problems(value[key], kind, f"{path}.{key}", root)


def _check_first_items(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    if isinstance(value, list):
        for number, (part, kind) in enumerate(zip(value, schema["prefixItems"], strict=False)):
            yield from _problems(part, kind, f"{path}[{number}]", root)


def _check_items(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    if isinstance(value, list):
        for number in range(len(schema.get("prefixItems", ())), len(value)):
            yield from _problems(value[number], schema["items"], f"{path}[{number}]", root)


def _check_any_of(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    found = [next(_problems(value, part, path, root), None) for part in schema["anyOf"]]
    if None not in found:
        yield f"{_name(path)} has none of the allowed forms: {'; '.join(str(one) for one in found)}"


def _check_one_of(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    found = [next(_problems(value, part, path, root), None) for part in schema["oneOf"]]
    if found.count(None) > 1:
        yield f"{_name(path)} has several of the forms of which exactly one is allowed"
    elif None not in found:
        yield f"{_name(path)} has none of the allowed forms: {'; '.join(str(one) for one in found)}"


def _check_all_of(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    for part in schema["allOf"]:
        yield from _problems(value, part, path, root)


def _check_not(value: Any, schema: Schema, path: str, root: Schema) -> Iterator[str]:
    if next(_problems(value, schema["not"], path, root), None) is None:
        yield f"{_name(path)} has a form that is not allowed"


def _check_pattern(value: Any, schema: Schema, path: str, _: Schema) -> Iterator[str]:
    if isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{_name(path)} must match {schema['pattern']}, not {_shown(value)}"


def _check_unique(value: Any, schema: Schema, path: str, _: Schema) -> Iterator[str]:
    if schema["uniqueItems"] and isinstance(value, list) and any(one in value[:k] for k, one in enumerate(value)):
        yield f"{_name(path)} must not contain an item twice"


def _bound(keyword: str, text: str, kind: type | tuple[type, ...], is_met: Callable[[Any, Any], bool]) -> Any:
    """Return the check of a keyword that limits numbers or lengths."""

    def check(value: Any, schema: Schema, path: str, _: Schema) -> Iterator[str]:
        if isinstance(value, kind) and not isinstance(value, bool) and not is_met(value, schema[keyword]):
            yield f"{_name(path)} must {text.format(schema[keyword])}, not {_shown(value)}"

    return check


def _is_multiple(value: float, step: float) -> bool:
    quotient = value / step
    return math.isfinite(quotient) and abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))


_NUMBER = (int, float)
_CHECKS: dict[str, Callable[[Any, Schema, str, Schema], Iterator[str]]] = {
    "$ref": _check_ref,
    "type": _check_type,
    "enum": _check_enum,
    "const": _check_enum,
    "required": _check_required,
    "properties": _check_properties,
    "additionalProperties": _check_additional,
    "prefixItems": _check_first_items,
    "items": _check_items,
    "anyOf": _check_any_of,
    "oneOf": _check_one_of,
    "allOf": _check_all_of,
    "not": _check_not,
    "pattern": _check_pattern,
    "uniqueItems": _check_unique,
    "minimum": _bound("minimum", "be at least {}", _NUMBER, lambda value, limit: value >= limit),
    "maximum": _bound("maximum", "be at most {}", _NUMBER, lambda value, limit: value <= limit),
    "exclusiveMinimum": _bound("exclusiveMinimum", "be above {}", _NUMBER, lambda value, limit: value > limit),
    "exclusiveMaximum": _bound("exclusiveMaximum", "be below {}", _NUMBER, lambda value, limit: value < limit),
    "multipleOf": _bound("multipleOf", "be a multiple of {}", _NUMBER, _is_multiple),
    "minLength": _bound("minLength", "have at least {} characters", str, lambda value, limit: len(value) >= limit),
    "maxLength": _bound("maxLength", "have at most {} characters", str, lambda value, limit: len(value) <= limit),
    "minItems": _bound("minItems", "have at least {} items", list, lambda value, limit: len(value) >= limit),
    "maxItems": _bound("maxItems", "have at most {} items", list, lambda value, limit: len(value) <= limit),
    "minProperties": _bound("minProperties", "have at least {} names", dict, lambda value, limit: len(value) >= limit),
    "maxProperties": _bound("maxProperties", "have at most {} names", dict, lambda value, limit: len(value) <= limit),
}


def simple_schema(annotation: Any) -> Schema | None:
    """Return the JSON schema of a type whose values are JSON, or None where that needs pydantic.

    Examples
    --------
    >>> from gpu_pregel.workflows.json_schemas import simple_schema
    >>> simple_schema(list[int] | None)
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        found = simple_schema(parts[0])
        notes = [note for note in parts[1:] if isinstance(note, str)]
        return {**found, "description": notes[0]} if found is not None and notes else found
    if origin in (Union, types.UnionType):
        choices = [simple_schema(part) for part in parts]
        return None if None in choices else {"anyOf": choices}
    if origin is Literal:
        is_plain = all(isinstance(part, str | int | bool | None) and not isinstance(part, enum.Enum) for part in parts)
        return {"enum": list(parts)} if is_plain else None
    if origin is list and parts:
        items = simple_schema(parts[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and parts[0] is str:
        values = simple_schema(parts[1])
        return None if values is None else {"type": "object", "additionalProperties": values}
    try:
        found = _PLAIN_TYPES.get(annotation)
    except TypeError:  # an annotation that cannot be hashed
        return None
    return None if found is None else dict(found)
