"""Encoding of registered types: dataclasses, pydantic models, enums and namedtuples, each under a stable name.

An instance is encoded as its kind, the name of its type, the names of its fields, and their values. Decoding does not
call ``__init__``; pydantic models are strictly validated when they are encoded and decoded.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Sequence
from types import MemberDescriptorType
from typing import Any, TypeVar, overload

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec.encoder import Output, length_bytes, type_name, write_items, writers
from gpu_pregel.host.agents.codec.format import OBJECT, InvalidDataError

T = TypeVar("T", bound=type)
Migrate = Callable[[dict[str, Any]], dict[str, Any]]


def _no_default(name: str) -> Any:
    raise KeyError(name)


@dataclasses.dataclass(frozen=True, slots=True)
class RegisteredType:
    """How to take instances of a type apart and build them.

    Attributes
    ----------
    head : bytes
        The kind of the type, its name and its fields, encoded.
    parts : tuple of str
        Names of the values, in order.
    values, build : callable
        Take an instance apart, and make one of such values.
    default : callable
        Returns the default of a field, as a copy that no other object has, or raises KeyError.
    state : callable or None
        If the values are in the instances, where the garbage collector finds them: returns all of them quickly.
    migrate : callable or None
    is_own : bool
        Whether workers need to register the type.
    """

    type: type
    name: str
    head: bytes
    parts: tuple[str, ...]
    values: Callable[[Any], Sequence[Any]]
    build: Callable[[Sequence[Any]], Any]
    default: Callable[[str], Any] = _no_default
    state: Any = None
    migrate: Migrate | None = None
    is_own: bool = True


by_name: dict[str, RegisteredType] = {}
by_head: dict[bytes, RegisteredType] = {}
_by_type: dict[type, RegisteredType] = {}
"""Plain types only."""


@overload
def register(cls: T, name: str | None = None, *, migrate: Migrate | None = None) -> T: ...
@overload
def register(cls: None = None, name: str | None = None, *, migrate: Migrate | None = None) -> Callable[[T], T]: ...
def register(cls: Any = None, name: str | None = None, *, migrate: Migrate | None = None) -> Any:
    """Register a dataclass, pydantic model, enum or namedtuple for encoding; also a decorator.

    Dataclasses and models are encoded by their fields, enums and flags by the names of members. Decoding does not call
    ``__init__``; it validates pydantic models without conversion. All runs that read the data must register the type
    under the same name. Data of a former version of the type can be read if each field that it lacks has a default.

    Parameters
    ----------
    cls : type
        Subclasses must be registered separately.
    name : str, optional
        The name in encoded data; by default the qualified name without the module, so that a type in a script has the
        same name when the script is imported.
    migrate : callable, optional
        ``migrate(fields)`` converts data of a former version that had other fields: from a dict of its fields, it
        returns a dict of the current ones; those that have a default may be left out. For an enum, it is called for the
        name of an unknown member, as the only field ``name``. It is called for every such object in the data.

    Returns
    -------
    type
        ``cls``.

    Raises
    ------
    ArgumentTypeError
        ``cls`` is not a type that can be registered.
    ArgumentError
        Another type has this name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from gpu_pregel.host.agents.codec import decode, encode, register
    >>> @register
    ... @dataclass
    ... class Offer:
    ...     price: int
    >>> decode(encode([Offer(3)]))
    [Offer(price=3)]
    >>> data = encode(Offer(3))
    >>> @register(migrate=lambda fields: {"cents": 100 * fields["price"]})
    ... @dataclass
    ... class Offer:
    ...     cents: int
    ...     currency: str = "EUR"
    >>> decode(data)
    Offer(cents=300, currency='EUR')
    """
    if cls is None:
        return functools.partial(register, name=name, migrate=migrate)
    if migrate is not None and not callable(migrate):
        raise ArgumentTypeError(f"migrate must be a function of a dict of fields, not {migrate!r}")
    if not isinstance(cls, type):
        raise ArgumentTypeError(f"register takes a class, not {cls!r}")
    name = cls.__qualname__ if name is None else name
    if not isinstance(name, str) or not name.isprintable() or not name:
        raise ArgumentTypeError(f"name must be a printable string of at least one character, not {name!r}")
    taken = by_name.get(name)
    if taken is not None and type_name(taken.type) != type_name(cls):
        raise ArgumentError(
            f"{name!r} is already the name of {type_name(taken.type)}: register {type_name(cls)} with another name="
        )
    for known in by_name.values():
        if known.type is cls and known.name != name:
            raise ArgumentError(f"{type_name(cls)} is already registered as {known.name!r}: it cannot also be {name!r}")
    kind = dataclasses.replace(_kind_of(cls, name), migrate=migrate)
    if taken is not None:
        _remove(taken)  # The class was defined again, as in a notebook.
    add_type(kind)
    return cls


def registered() -> dict[str, tuple[type, Migrate | None]]:
    """Return the registered types and their migrations by name, which all processes of a run must register."""
    return {name: (kind.type, kind.migrate) for name, kind in by_name.items() if kind.is_own}


def add_type(kind: RegisteredType) -> None:
    """Add a type to the tables of writers and readers."""
    head, parts, values = kind.head, kind.parts, kind.values

    def write(x: Any, out: Output, depth: int) -> None:
        taken_apart = values(x)
        out.append(head)
        try:
            write_items(taken_apart, out, depth)
        except InvalidDataError as error:
            error.name_field(parts)
            raise

    by_name[kind.name] = kind
    by_head[head] = kind
    writers[kind.type] = write
    if kind.state is not None:
        _by_type[kind.type] = kind


def _remove(kind: RegisteredType) -> None:
    del by_name[kind.name], by_head[kind.head], writers[kind.type]
    _by_type.pop(kind.type, None)


def plain_type(cls: type) -> RegisteredType | None:
    """Return how to take instances of a registered dataclass or namedtuple apart, unless fields are properties."""
    return _by_type.get(cls)


def _kind_of(cls: type, name: str) -> RegisteredType:
    if issubclass(cls, enum.Enum):
        return _enum_kind(cls, name)
    if dataclasses.is_dataclass(cls) and "__dataclass_fields__" in vars(cls):
        return _dataclass_kind(cls, name)
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _namedtuple_kind(cls, name)
    if hasattr(cls, "__pydantic_validator__") and hasattr(cls, "model_fields"):
        return _model_kind(cls, name)
    if dataclasses.is_dataclass(cls):
        raise ArgumentTypeError(
            f"{type_name(cls)} derives from a dataclass but is not one: decorate it with @dataclass, below @register"
        )
    raise ArgumentTypeError(
        f"{type_name(cls)} is not a dataclass, pydantic model, enum or namedtuple: make it one, with @register above "
        f"@dataclass, or use a dict"
    )


def type_head(letter: str, name: str, fields: tuple[str, ...]) -> bytes:
    """Return the encoded kind of a type, its name and its fields."""
    out = Output()
    write_items((letter, name, *fields), out, 1)
    packed = b"".join(out)
    return bytes((OBJECT,)) + length_bytes(len(packed)) + packed


def _check_new(cls: type) -> None:
    """Refuse classes whose instances cannot be created with ``object.__new__``."""
    try:
        object.__new__(cls)
    except TypeError as error:
        raise ArgumentTypeError(f"{type_name(cls)} cannot be registered: {error}") from None


def check_attributes(x: Any, names: frozenset[str]) -> None:
    """Refuse attributes that are not fields, except for values of ``functools.cached_property``."""
    for name in x.__dict__.keys() - names:
        if not isinstance(getattr(type(x), name, None), functools.cached_property):
            raise InvalidDataError(f"has the attribute {name!r}, not a field of {type_name(type(x))}: it would be lost")


def _dataclass_kind(cls: type, name: str) -> RegisteredType:
    _check_new(cls)
    fields = tuple(field.name for field in dataclasses.fields(cls))
    names = frozenset(fields)
    slots = {slot for base in cls.__mro__ for slot in _slots(base)} - names
    has_dict = cls.__dictoffset__ != 0

    def values(x: Any) -> Sequence[Any]:
        if has_dict and not x.__dict__.keys() <= names:
            check_attributes(x, names)
        for slot in slots:
            if hasattr(x, slot):
                raise InvalidDataError(f"has the attribute {slot!r}, not a field of {type_name(cls)}: it would be lost")
        try:
            return [getattr(x, field) for field in fields]
        except AttributeError as error:
            raise InvalidDataError(f"has a field without a value: {error}") from None

    def build(values: Sequence[Any]) -> Any:
        x: Any = object.__new__(cls)
        for field, value in zip(fields, values, strict=True):
            object.__setattr__(x, field, value)
        return x

    def default(name: str) -> Any:
        field = cls.__dataclass_fields__[name]  # type: ignore[attr-defined]
        missing = type(dataclasses.MISSING)  # in a worker, a type may have been copied with a MISSING of its own
        if not isinstance(field.default_factory, missing):
            return field.default_factory()
        if isinstance(field.default, missing):
            raise KeyError(name)
        return copy.deepcopy(field.default)

    state: Any = None
    if _has_plain_fields(cls, fields):
        state = operator.attrgetter("__dict__") if has_dict and not any(map(_slots, cls.__mro__)) else values
    return RegisteredType(cls, name, type_head("d", name, fields), fields, values, build, default, state)


def _has_plain_fields(cls: type, fields: tuple[str, ...]) -> bool:
    """Whether the fields of a dataclass are attributes or slots of its instances, not properties."""
    found = [inspect.getattr_static(cls, field, None) for field in fields]
    computed = [one for one in found if hasattr(type(one), "__set__") and type(one) is not MemberDescriptorType]
    return not computed and inspect.getattr_static(cls, "__getattribute__") is object.__getattribute__


def _slots(cls: type) -> set[str]:
    """Return the attributes in the ``__slots__`` of the class itself."""
    slots = vars(cls).get("__slots__", ())
    prefix = f"_{cls.__name__.lstrip('_')}"
    names = {slots} if isinstance(slots, str) else set(slots)
    mangled = {prefix + slot if slot.startswith("__") and not slot.endswith("__") else slot for slot in names}
    return mangled - {"__dict__", "__weakref__"}


def _namedtuple_kind(cls: Any, name: str) -> RegisteredType:
    fields = cls._fields

    def values(x: Any) -> Sequence[Any]:
        if len(x) != len(fields):
            raise InvalidDataError(f"has {len(x)} items, but {type_name(cls)} has {len(fields)} fields")
        if getattr(x, "__dict__", None):
            check_attributes(x, frozenset())
        return tuple(x)

    def build(values: Sequence[Any]) -> Any:
        return tuple.__new__(cls, values)

    def default(name: str) -> Any:
        return copy.deepcopy(cls._field_defaults[name])

    return RegisteredType(cls, name, type_head("n", name, fields), fields, values, build, default, values)


MODEL_PARTS = ("model_fields_set", "__pydantic_private__")
"""What is encoded of a pydantic model besides its fields."""


def _enum_kind(cls: type[enum.Enum], name: str) -> RegisteredType:
    def build(values: Sequence[Any]) -> Any:
        (text,) = values
        member = _member(cls, text) if type(text) is str else None
        if member is None:
            shown = repr(text[:80]) if type(text) is str else "not a name"
            raise InvalidDataError(f"is {shown}, and not a member of {type_name(cls)}")
        return member

    def values(x: enum.Enum) -> Sequence[Any]:
        text = x.name or ""
        if _member(cls, text) is not x:
            raise InvalidDataError(f"is an unnamed member of {type_name(cls)}")
        return (text,)

    return RegisteredType(cls, name, type_head("e", name, ()), ("name",), values, build)


def _member(cls: type[enum.Enum], text: str) -> enum.Enum | None:
    """Return the member with a name, or the combination of flags with names separated by ``|``."""
    members = cls.__members__
    if text in members:
        return members[text]
    if not issubclass(cls, enum.Flag):
        return None
    names = text.split("|") if text else []
    if not all(name in members for name in names):
        return None
    try:
        return functools.reduce(operator.or_, [cls[name] for name in names], cls(0))
    except ValueError:
        return None


def _model_kind(cls: Any, name: str) -> RegisteredType:
    """Encode a pydantic model by its fields, which of them were set, and its private attributes."""
    pydantic: Any = sys.modules["pydantic"]
    if tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 11):
        raise ArgumentTypeError(f"pydantic {pydantic.VERSION} cannot validate by field names: install 2.11 or later")
    fields = tuple(cls.model_fields)
    names = frozenset(fields)
    is_root = bool(getattr(cls, "__pydantic_root_model__", False))

    def validate(values: dict[str, Any]) -> None:
        given = values["root"] if is_root else dict(values)
        try:
            cls.__pydantic_validator__.validate_python(given, strict=True, by_alias=False, by_name=True)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            steps = [f".{one}" if isinstance(one, str) else one for one in reversed(first["loc"])]
            raise InvalidDataError(f"is not a valid {type_name(cls)}: {first['msg']}", *steps) from None
        except (Exception, SystemExit) as error:  # A validator may raise anything.
            raise InvalidDataError(
                f"is not a valid {type_name(cls)}: its validator raised {type(error).__name__}"
            ) from error

    def values(x: Any) -> Sequence[Any]:
        check_attributes(x, names)
        if x.__pydantic_extra__:
            raise InvalidDataError(
                f"has extra fields, {', '.join(map(repr, x.__pydantic_extra__))}: declare them in {type_name(cls)}"
            )
        state = x.__dict__
        try:
            values = {field: state[field] for field in fields}
        except KeyError as error:
            raise InvalidDataError(f"has no value for the field {error}") from None
        validate(values)
        was_set = sum(1 << k for k, field in enumerate(fields) if field in x.__pydantic_fields_set__)
        return [*values.values(), was_set, x.__pydantic_private__]

    def build(parts: Sequence[Any]) -> Any:
        *given, was_set, private = parts
        values = dict(zip(fields, given, strict=True))
        if type(was_set) is not int or not 0 <= was_set < 1 << len(fields):
            raise InvalidDataError("does not record which of its fields were set")
        if private is not None and (
            type(private) is not dict or not private.keys() <= cls.__private_attributes__.keys()
        ):
            raise InvalidDataError("has unknown private attributes")
        validate(values)
        x: Any = object.__new__(cls)
        object.__setattr__(x, "__dict__", values)
        object.__setattr__(x, "__pydantic_fields_set__", {field for k, field in enumerate(fields) if was_set >> k & 1})
        if not is_root:
            object.__setattr__(x, "__pydantic_extra__", {} if cls.model_config.get("extra") == "allow" else None)
            object.__setattr__(x, "__pydantic_private__", private)
        return x

    def default(name: str) -> Any:
        field = cls.model_fields[name]
        if field.is_required():
            raise KeyError(name)
        return field.get_default(call_default_factory=True, validated_data={})

    parts = (*fields, *MODEL_PARTS)
    return RegisteredType(cls, name, type_head("p", name, fields), parts, values, build, default)
