"""The format of an agent's answer: a JSON schema or a type, what validates answers, and the tool that takes them."""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from gpu_pregel.errors import ArgumentError, ToolError
from gpu_pregel.host.agents.codec import register, registered
from gpu_pregel.workflows.function_arguments import validation_text, without_titles
from gpu_pregel.workflows.json_schemas import Schema, check_schema, find_problem, simple_schema

_FENCE = re.compile(r"\s*```\w*\n(.*?)\n?```\s*", re.DOTALL)


class AnswerFormat:
    """What an agent's answer must look like.

    Parameters
    ----------
    given : dict or type
        A JSON schema of type object, whose answers are dictionaries; a dataclass or pydantic model, whose answers are
        instances, for which the type is registered for encoding; or, with pydantic, another type whose values are JSON
        objects.

    Attributes
    ----------
    name : str
        Of the tool that takes the answer.
    schema : dict
    """

    name = "respond"

    def __init__(self, given: Any) -> None:
        self._type = None if isinstance(given, dict) else given
        self._adapter: Any = None
        if self._type is None:
            self.schema: Schema = check_schema(given, "response_format")
        else:
            self.schema = self._schema_of_type(self._type)
        if self.schema.get("type") != "object":
            raise ArgumentError(
                "response_format must describe an object, as tools take arguments by name: wrap it in a dataclass, or "
                "in a schema of type object with a property for it"
            )
        self._register_types()

    def _register_types(self) -> None:
        """Register the types of answers, which are stored, unless the user has, perhaps under other names."""
        known = [one for one, _ in registered().values()]
        for one in _types_in(self._type):
            if one not in known:
                register(one)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_adapter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._register_types()

    def _schema_of_type(self, kind: Any) -> Schema:
        adapter = self._type_adapter()
        if adapter is not None:
            try:
                found: Schema = without_titles(adapter.json_schema())
            except Exception as error:
                problem = f"response_format {kind!r:.80} has no JSON schema: {str(error).partition(chr(10))[0]}"
                raise ArgumentError(problem) from None
            return found
        if not dataclasses.is_dataclass(kind):
            raise ArgumentError(
                f"response_format must be a JSON schema, a dataclass or, with the package pydantic, another type, not "
                f"{kind!r:.80}"
            )
        properties = {}
        for name, annotation in get_type_hints(kind, include_extras=True).items():
            schema = simple_schema(annotation)
            if schema is None:
                raise ArgumentError(
                    f"response_format: the field {name!r} needs the package pydantic: pip install pydantic"
                )
            properties[name] = schema
        missing = dataclasses.MISSING
        required = [
            one.name for one in dataclasses.fields(kind) if one.default is missing and one.default_factory is missing
        ]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _type_adapter(self) -> Any:
        """Return what pydantic validates with; it cannot be pickled, and is made anew in other processes."""
        if self._adapter is None and self._type is not None:
            try:
                import pydantic
            except ImportError:
                return None
            try:
                self._adapter = pydantic.TypeAdapter(self._type)
            except pydantic.errors.PydanticUserError as error:
                problem = f"response_format {self._type!r:.80} is no type of data: {str(error).partition(chr(10))[0]}"
                raise ArgumentError(problem) from None
        return self._adapter

    @property
    def description_for_models(self) -> dict[str, Any]:
        """The tool that takes the answer."""
        text = "Give the final answer. Call this alone, once you know everything that the answer needs."
        return {"name": self.name, "description": text, "parameters": self.schema}

    def read(self, data: Any) -> Any:
        """Return the answer that JSON data stands for.

        Raises
        ------
        ToolError
            What is wrong with it, for the model to read.
        """
        adapter = self._type_adapter()
        if adapter is None:
            problem = find_problem(data, self.schema)
            if problem is not None:
                raise ToolError(problem)
            return data if self._type is None else self._type(**data)
        import pydantic

        try:
            return adapter.validate_json(json.dumps(data))
        except pydantic.ValidationError as error:
            raise ToolError(validation_text(error)) from None

    def read_text(self, text: str) -> Any:
        """Return the answer in a text, which may be JSON within a code block."""
        fenced = _FENCE.fullmatch(text)
        try:
            data = json.loads(fenced[1] if fenced else text)
        except (ValueError, RecursionError):
            raise ToolError("the answer is not JSON") from None
        return self.read(data)


def _types_in(kind: Any) -> Iterator[type]:
    """Yield the dataclasses, models and enums in a type, which must be registered for their values to be stored."""
    found: dict[type, None] = {}
    rest = [kind]
    while rest:
        one = rest.pop()
        rest += get_args(one)
        is_model = hasattr(one, "model_fields")
        if not isinstance(one, type) or one in found:
            continue
        if dataclasses.is_dataclass(one) or is_model or issubclass(one, enum.Enum):
            found[one] = None
        if dataclasses.is_dataclass(one) or is_model:
            rest += get_type_hints(one).values()
    yield from found
