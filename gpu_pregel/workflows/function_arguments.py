"""The arguments of a function as a JSON schema, and their validation: by pydantic if it is installed."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from gpu_pregel.errors import ArgumentError, ToolError
from gpu_pregel.workflows.docstrings import read_docstring
from gpu_pregel.workflows.json_schemas import Schema, find_problem, simple_schema

Validate = Callable[[dict[str, Any]], dict[str, Any]]
"""Converts arguments as JSON has them, or raises ``ToolError`` with a text for the model."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def arguments_of(function: Callable[..., Any], name: str, given: Mapping[str, Any]) -> tuple[Schema, Validate]:
    """Return the JSON schema of a function's arguments, and what validates them.

    Parameters
    ----------
    function : callable
    name : str
        The tool's name, for errors.
    given : mapping
        Parameters that the model does not see, by name.

    Raises
    ------
    ArgumentError
        If a parameter cannot be given by name, or its annotation cannot be resolved or has no JSON schema.
    """
    hints = _type_hints(function, name)
    _, texts = read_docstring(function)
    fields: dict[str, tuple[Any, inspect.Parameter]] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            raise ArgumentError(f"tool {name!r}: the parameter {str(parameter)!r} cannot be given by name: remove it")
        if parameter.name in given:
            continue
        annotation = _with_description(hints.get(parameter.name, Any), texts.get(parameter.name))
        fields[parameter.name] = annotation, parameter
    try:
        import pydantic
    except ImportError:
        return _simple_arguments(fields, name)
    return _pydantic_arguments(fields, name, pydantic)


def _type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__  # an object with __call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise ArgumentError(
            f"tool {name!r}: an annotation cannot be resolved ({error}): import that name when the program runs, too"
        ) from None


def parameters_of_type(function: Callable[..., Any], name: str, wanted: Any) -> list[str]:
    """Return the names of the parameters that are annotated with a type, or with it and None."""
    hints = _type_hints(function, name)
    parameters = inspect.signature(function).parameters
    return [key for key in parameters if hints.get(key) is wanted or hints.get(key) == wanted | None]


def _with_description(annotation: Any, text: str | None) -> Any:
    """Attach the docstring's description, unless the annotation has one itself."""
    if text and get_origin(annotation) is not Annotated:
        return Annotated[annotation, text]
    return annotation


def _with_default(schema: Schema, parameter: inspect.Parameter) -> Schema:
    default = parameter.default
    if default is parameter.empty:
        return schema
    try:
        json.dumps(default, allow_nan=False)
    except (TypeError, ValueError):
        return schema
    return {**schema, "default": default}


def _simple_arguments(fields: Mapping[str, tuple[Any, inspect.Parameter]], name: str) -> tuple[Schema, Validate]:
    properties: dict[str, Schema] = {}
    for key, (annotation, parameter) in fields.items():
        schema = simple_schema(annotation)
        if schema is None:
            raise ArgumentError(
                f"tool {name!r}: the annotation of {key!r} needs the package pydantic (pip install pydantic), or must "
                "consist of str, int, float, bool, None, Any, Literal, |, list[…] and dict[str, …]"
            )
        properties[key] = _with_default(schema, parameter)
    required = [key for key, (_, parameter) in fields.items() if parameter.default is parameter.empty]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def validate(arguments: dict[str, Any]) -> dict[str, Any]:
        problem = find_problem(arguments, schema)
        if problem is not None:
            raise ToolError(problem, retryable=False)
        return arguments

    return schema, validate


def _pydantic_arguments(
    fields: Mapping[str, tuple[Any, inspect.Parameter]], name: str, pydantic: Any
) -> tuple[Schema, Validate]:
    from typing_extensions import NotRequired, TypedDict  # noqa: UP035 (as pydantic needs them)

    keys: dict[str, Any] = {}
    for key, (annotation, parameter) in fields.items():
        if get_origin(annotation) is Annotated:
            inner, *notes = get_args(annotation)
            described = [pydantic.Field(description=note) if isinstance(note, str) else note for note in notes]
            annotation = Annotated[(inner, *described)]
        keys[key] = annotation if parameter.default is parameter.empty else NotRequired[annotation]
    # A TypedDict, unlike a model, has no attributes that a parameter's name might hide.
    make_type: Any = TypedDict
    kind = make_type("Arguments", keys)
    kind.__pydantic_config__ = pydantic.ConfigDict(extra="forbid")
    try:
        adapter = pydantic.TypeAdapter(kind)
        schema = without_titles(adapter.json_schema())
    except (pydantic.errors.PydanticUserError, TypeError) as error:
        text = str(error).partition("\n")[0]
        raise ArgumentError(
            f"tool {name!r}: an annotation has no JSON schema ({text}): annotate with data, such as str or a "
            "dataclass, or pass parameters="
        ) from None
    for key, (_, parameter) in fields.items():
        schema["properties"][key] = _with_default(schema["properties"][key], parameter)
    schema.setdefault("required", [])

    def validate(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            found: dict[str, Any] = adapter.validate_python(arguments)
        except pydantic.ValidationError as error:
            raise ToolError(validation_text(error, list(fields)), retryable=False) from None
        return found

    return schema, validate


def without_titles(schema: Any) -> Any:
    """Return a schema without the titles that pydantic makes from names, which only cost tokens."""
    if isinstance(schema, list):
        return [without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for key, part in schema.items():
        if key in ("properties", "$defs"):
            found[key] = {name: without_titles(one) for name, one in part.items()}
        elif key in ("default", "enum", "const", "examples"):
            found[key] = part
        elif key != "title":
            found[key] = without_titles(part)
    return found


def validation_text(error: Any, known: list[str] | None = None) -> str:
    """Return what a pydantic error says, with the path to each value, for a model to read."""
    texts = []
    for one in error.errors(include_url=False)[:5]:
        path = ""
        for part in one["loc"]:
            path += f"[{part}]" if isinstance(part, int) else f".{part}"
        path = path.removeprefix(".") or "the value"
        if one["type"] == "extra_forbidden":
            names = "" if known is None else f"; known names: {', '.join(known) or 'none'}"
            texts.append(f"{path} is unknown{names}")
        elif one["type"] == "missing":
            texts.append(f"{path} is missing")
        else:
            texts.append(f"{path}: {one['msg']}, not {one['input']!r:.80}")
    more = error.error_count() - len(texts)
    return "; ".join(texts) + (f"; and {more} more" if more else "")
