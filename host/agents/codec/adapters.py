"""Encoding of classes of other packages, by the attributes that make up their instances."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_pregel.host.agents.codec.encoder import writers
from gpu_pregel.host.agents.codec.types import Migrate, RegisteredType, add_type, by_head, by_name, type_head

_LETTER = "a"


def adapt(
    cls: type,
    name: str,
    parts: tuple[str, ...],
    *,
    values: Callable[[Any], Sequence[Any]] | None = None,
    build: Callable[[Sequence[Any]], Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
    migrate: Migrate | None = None,
) -> None:
    """Encode instances of a class of another package under a stable name; has no effect if the class is registered.

    Parameters
    ----------
    cls : type
    name : str
    parts : tuple of str
        Names of what is encoded of an instance, by default attributes of it.
    values, build : callable, optional
        Return the parts of an instance, and make one of them. By default, ``build`` sets attributes without calling
        ``__init__``.
    defaults : mapping, optional
        Values of parts that data of an earlier release of the package may lack.
    migrate : callable, optional
        As for ``register``.
    """
    if name in by_name:
        return
    given = dict(defaults or {})

    def get_values(x: Any) -> Sequence[Any]:
        return [getattr(x, part) for part in parts]

    def set_values(values: Sequence[Any]) -> Any:
        x: Any = object.__new__(cls)
        for part, value in zip(parts, values, strict=True):
            object.__setattr__(x, part, value)
        return x

    kind = RegisteredType(
        cls,
        name,
        type_head(_LETTER, name, parts),
        parts,
        values or get_values,
        build or set_values,
        lambda part: copy.deepcopy(given[part]),
        migrate=migrate,
        is_own=False,
    )
    if cls in writers:  # The user has registered it under another name, which remains the one to write.
        by_name[name], by_head[kind.head] = kind, kind
    else:
        add_type(kind)
