"""State classes: their keys, the reducer of each, and states of these classes from values of keys and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin, is_typeddict

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.workflows.signatures import langgraph_hint, takes_two
from gpu_pregel.workflows.type_hints import resolved_hints

Reducer = Callable[[Any, Any], Any]
Writes = list[tuple[str, Any]]
"""Updates of keys, in order."""
_WRAPPERS = (Required, NotRequired)


@dataclasses.dataclass(frozen=True)
class Key:
    """A key of the state.

    Attributes
    ----------
    name : str
    reducer : callable or None
        Without one, a superstep may write the key once.
    initial : tuple
        The value before the first update, or empty if there is none.
    """

    name: str
    reducer: Reducer | None
    initial: tuple[Any, ...]


class Schema:
    """A state class: a TypedDict, a dataclass or a pydantic model.

    Parameters
    ----------
    cls : type

    Attributes
    ----------
    keys : dict of str to Key
    """

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.is_dict, self._is_model = _is_typed_dict(cls), hasattr(cls, "model_fields")
        if not (self.is_dict or self._is_model or (isinstance(cls, type) and dataclasses.is_dataclass(cls))):
            raise ArgumentTypeError(f"a state must be a TypedDict, a dataclass or a pydantic model, not {cls!r:.200}")
        try:
            hints = resolved_hints(cls)
        except NameError as error:
            raise ArgumentError(
                f"the annotations of {cls.__name__} cannot be resolved ({error}): define the types that they name in "
                f"its module"
            ) from None
        self.keys = {name: _key(cls, name, hint) for name, hint in hints.items() if self._is_key(name)}
        if not self.keys:
            raise ArgumentError(f"{cls.__name__} has no fields: annotate at least one key of the state")

    def _is_key(self, name: str) -> bool:
        """Whether an annotation declares a field."""
        if self.is_dict:
            return True
        return name in (self.cls.model_fields if self._is_model else self.cls.__dataclass_fields__)

    def check_values(self, writes: Writes, source: str) -> None:
        """Refuse values that fields of a pydantic model do not take.

        An update of a key with a reducer may be of another type than the field.
        """
        for name, value in writes if self._is_model else ():
            if self.keys[name].reducer is None and (problem := _problem(self.cls, name, value)):
                raise ArgumentError(f"{source} gives key {name!r} {value!r:.80}: {problem}")

    def make(self, values: dict[str, Any]) -> Any:
        """Return a state with these values of this class's keys."""
        return values if self.is_dict else self.cls(**values)


def _problem(model: Any, name: str, value: Any) -> str:
    """Return why a field of a pydantic model does not take a value; empty if it does."""
    from pydantic import ValidationError

    try:
        model.__pydantic_validator__.validate_assignment(model.model_construct(), name, value)
    except ValidationError as error:
        found = [one["msg"] for one in error.errors() if one["loc"][:1] == (name,) and "frozen" not in one["type"]]
        return "; ".join(found)
    except Exception:  # of a validator of the whole model, which has no other fields yet
        return ""
    return ""


def _is_typed_dict(cls: Any) -> bool:
    """Whether a class is a TypedDict, of ``typing`` or of the package typing_extensions."""
    return is_typeddict(cls) or (isinstance(cls, type) and issubclass(cls, dict) and hasattr(cls, "__total__"))


def _key(cls: Any, name: str, hint: Any) -> Key:
    hint = _unwrapped(hint)
    if get_origin(hint) is not Annotated:
        return Key(name, None, ())
    plain, *marks = get_args(hint)
    reducers = [mark for mark in marks if callable(mark) and not isinstance(mark, type)]
    if not reducers:
        return Key(name, None, ())
    if not takes_two(reducers[-1]):
        raise ArgumentTypeError(
            f"the reducer of {cls.__name__}.{name} must be a function of (old, new), not {reducers[-1]!r}"
        )
    return Key(name, reducers[-1], _initial(_unwrapped(plain)))


def _unwrapped(hint: Any) -> Any:
    while get_origin(hint) in _WRAPPERS:
        hint = get_args(hint)[0]
    return hint


def _initial(hint: Any) -> tuple[Any, ...]:
    """Return the empty value of a type, such as an empty list, if it has one."""
    from collections import abc

    abstract: dict[Any, Any] = {
        abc.Sequence: list,
        abc.MutableSequence: list,
        abc.Set: set,
        abc.MutableSet: set,
        abc.Mapping: dict,
        abc.MutableMapping: dict,
    }
    cls = get_origin(hint) or hint
    cls = abstract.get(cls, cls)
    return (cls(),) if cls in (list, dict, set, frozenset, tuple, int, float, str, bytes, bool) else ()


def writes_of(update: Any, keys: Mapping[str, Key], source: str) -> Writes:
    """Return the updates of keys that a node has returned, or a caller has passed, as a mapping or a state."""
    if type(update) is dict and update.keys() <= keys.keys():
        return list(update.items())
    if isinstance(update, Mapping):
        for name in update:
            if name not in keys:
                raise ArgumentError(f"{source} writes {name!r}, which is no key of the state: {', '.join(keys)}")
        return list(update.items())
    fields = getattr(update, "model_fields_set", None)
    if fields is not None:
        defaults = {name: field.default for name, field in type(update).model_fields.items()}
        values = {name: getattr(update, name) for name in defaults}
        return [
            (name, value)
            for name, value in values.items()
            if name in keys and (name in fields or value != defaults[name])
        ]
    if dataclasses.is_dataclass(update) and not isinstance(update, type):
        named = {field.name: getattr(update, field.name) for field in dataclasses.fields(update)}
        if named.keys().isdisjoint(keys):
            raise ArgumentError(
                f"{source} gave a {type(update).__name__}, which has no key of the state: {', '.join(keys)}"
                f"{langgraph_hint(update)}"
            )
        return [(name, value) for name, value in named.items() if name in keys and value is not None]
    raise ArgumentTypeError(
        f"{source} must give a dict of updates, a state, a Command or None, not {update!r:.200} of type "
        f"{type(update).__name__}"
    )
