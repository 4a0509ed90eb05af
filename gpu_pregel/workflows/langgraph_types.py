"""Encoding of the types of LangGraph and LangChain that occur in checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from copy import copy
from operator import itemgetter
from typing import Any

from gpu_pregel.host.agents.codec.adapters import adapt
from gpu_pregel.host.agents.codec.format import InvalidDataError
from gpu_pregel.host.agents.codec.types import check_attributes

_SET, _EXTRA, _PRIVATE = "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"


def adapt_langgraph_types() -> None:
    """Let the codec encode LangGraph's types, LangChain's messages and documents, as they are."""
    from langchain_core import messages
    from langchain_core.documents import Document
    from langgraph import types
    from langgraph.checkpoint.serde import types as stored

    for name in ("Interrupt", "Command", "Overwrite", "TimeoutPolicy"):
        _adapt_dataclass(getattr(types, name, None), f"langgraph.{name}")
    adapt(types.Send, "langgraph.Send", tuple(types.Send.__slots__), defaults={"timeout": None})
    snapshot = getattr(stored, "_DeltaSnapshot", None)
    if snapshot is not None:
        adapt(snapshot, "langgraph.DeltaSnapshot", snapshot._fields, build=snapshot._make)
    found = [getattr(messages, name) for name in messages.__all__]
    for cls in [Document, *found]:
        if isinstance(cls, type) and (cls is Document or issubclass(cls, messages.BaseMessage)):
            _adapt_model(cls, f"langchain.{cls.__name__}")


def _adapt_dataclass(cls: Any, name: str) -> None:
    """Encode a dataclass, which earlier releases of LangGraph may lack, by its fields."""
    if cls is None:
        return
    fields = dataclasses.fields(cls)
    defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    adapt(cls, name, tuple(field.name for field in fields), defaults=defaults)


def _adapt_model(cls: Any, name: str) -> None:
    """Encode a pydantic model by its whole state, without validating it: messages may have extra fields."""
    fields = tuple(cls.model_fields)
    parts = (*fields, _SET, _EXTRA, _PRIVATE)
    names = frozenset(fields)
    given = itemgetter(*fields)
    without_extra: Any = {} if cls.model_config.get("extra") == "allow" else None

    def values(x: Any) -> Sequence[Any]:
        state = x.__dict__
        if len(state) != len(fields):
            check_attributes(x, names)
        # Sorted, as equal messages must have equal bytes.
        was_set = sorted(x.__pydantic_fields_set__)
        try:
            return [*given(state), was_set, x.__pydantic_extra__ or None, x.__pydantic_private__]
        except KeyError as error:
            raise InvalidDataError(f"has no value for the field {error}") from None

    def build(values: Sequence[Any]) -> Any:
        x: Any = object.__new__(cls)
        *state, was_set, extra, private = values
        object.__setattr__(x, "__dict__", dict(zip(fields, state, strict=True)))
        object.__setattr__(x, _SET, set(was_set))
        object.__setattr__(x, _EXTRA, copy(without_extra) if extra is None else extra)
        object.__setattr__(x, _PRIVATE, private)
        return x

    def migrate(given: dict[str, Any]) -> dict[str, Any]:
        """Keep fields that this release of LangChain does not have as extra ones."""
        unknown = {part: given.pop(part) for part in given.keys() - set(parts)}
        return {**given, _EXTRA: {**(given.get(_EXTRA) or {}), **unknown}} if unknown else given

    optional = {field: info for field, info in cls.model_fields.items() if not info.is_required()}
    defaults = {
        field: info.get_default(call_default_factory=True, validated_data={}) for field, info in optional.items()
    }
    adapt(cls, name, parts, values=values, build=build, defaults=defaults, migrate=migrate)
