"""Named tuples of a program's fields in compiled functions: they unify with tuples, and have ``_replace``.

Numba gives ``value if ready else (0, 1)`` no type, or that of a tuple without names. Here it is the named tuple. Only
classes marked as records take part, so that other code compiled by Numba in this process is not concerned.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing import templates
from numba.extending import lower_builtin, lower_cast


def no_field(name: str, names: tuple[str, ...]) -> str:
    """Return what is wrong with the name of a field that a record does not have."""
    close = difflib.get_close_matches(name, names, 1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no field {name!r}; fields: {', '.join(names)}{meant}"


def cannot_assign(names: tuple[str, ...]) -> str:
    """Return why a field cannot be assigned, and what to do instead."""
    return (
        f"fields cannot be assigned, as values are tuples; return a new value: ({', '.join(names)}), with a number for "
        f"each field, or value._replace({names[0]}=…)"
    )


def as_record(made: Any) -> Any:
    """Mark a class of named tuples as a record, and make its errors name the fields."""
    names, replace = made._fields, made._replace

    def get(self: Any, name: str) -> Any:
        raise AttributeError(name if name[:2] == "__" else no_field(name, names))

    def assign(self: Any, name: Any, value: Any) -> None:
        raise AttributeError(cannot_assign(names) if name in names else no_field(name, names))

    def assign_item(self: Any, index: Any, value: Any) -> None:
        raise TypeError(cannot_assign(names))

    def replaced(self: Any, /, **given: Any) -> Any:
        for name in given:
            if name not in names:
                raise ValueError(no_field(name, names))
        return replace(self, **given)

    made.is_record = True
    made.__getattr__, made.__setattr__, made.__setitem__, made._replace = get, assign, assign_item, replaced
    return made


def _is_record(kind: Any) -> bool:
    return isinstance(kind, types.BaseNamedTuple) and getattr(kind.instance_class, "is_record", False)


def _unifying(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``unify`` of a Numba type of tuples that makes a record of a record and a tuple of its fields."""

    def unify(self: Any, typingctx: Any, other: Any) -> Any:
        records = [kind.instance_class for kind in (self, other) if _is_record(kind)]
        if not records:
            return plain(self, typingctx, other)
        named = [one.instance_class for one in (self, other) if isinstance(one, types.BaseNamedTuple)]
        if len(set(named)) > 1 or not isinstance(other, types.BaseTuple) or len(self) != len(other):
            return None
        parts = [typingctx.unify_pairs(one, two) for one, two in zip(self, other, strict=True)]
        return None if None in parts else types.BaseTuple.from_types(parts, records[0])

    return unify


for kind in (types.UniTuple, types.Tuple, types.NamedUniTuple, types.NamedTuple):
    kind.unify = _unifying(kind.unify)

_REPLACE = "gpu_pregel record._replace"


def register(templates: Any, lower_builtin: Any, lower_cast: Any) -> None:
    """Make records known to a compiler, by its modules for typing and lowering."""

    class Replace(templates.AbstractTemplate):
        key = _REPLACE

        def generic(self, args: Any, kws: Any) -> Any:
            names = self.this.fields
            for name in kws:
                if name not in names:
                    raise TypingError(f"Invalid name in _replace: {no_field(name, names)}")
            if args:
                raise TypingError(f"Invalid argument of _replace: name the fields, as in _replace({names[0]}=…)")
            given = {name: types.unliteral(part) for name, part in dict(kws).items()}
            parts = [given.get(name, old) for name, old in zip(names, self.this, strict=True)]
            result = types.BaseTuple.from_types(parts, self.this.instance_class)
            kind, omitted = inspect.Parameter.POSITIONAL_OR_KEYWORD, types.Omitted(None)
            named = [inspect.Parameter(name, kind, default=None) for name in names]
            found = templates.signature(result, *(given.get(name, omitted) for name in names), recvr=self.this)
            return found.replace(pysig=inspect.Signature(named))

    class Methods(templates.AttributeTemplate):
        key = types.BaseNamedTuple

        def resolve__replace(self, record: Any) -> Any:
            return types.BoundFunction(Replace, record) if _is_record(record) else None

    templates.infer_getattr(Methods)

    @lower_builtin(_REPLACE, types.BaseNamedTuple, types.VarArg(types.Any))
    def lower_replace(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        record, *given = arguments
        kinds = signature.args[1:]
        old = cgutils.unpack_tuple(builder, record, len(kinds))
        parts = [
            before if isinstance(kind, types.Omitted) else part
            for kind, before, part in zip(kinds, old, given, strict=True)
        ]
        return context.make_tuple(builder, signature.return_type, parts)

    @lower_cast(types.BaseTuple, types.BaseNamedTuple)
    def lower_tuple(context: Any, builder: Any, one: Any, other: Any, value: Any) -> Any:
        parts = cgutils.unpack_tuple(builder, value, len(one))
        cast = [context.cast(builder, part, *kinds) for part, *kinds in zip(parts, one, other, strict=True)]
        return context.make_tuple(builder, other, cast)


register(templates, lower_builtin, lower_cast)
