"""Fingerprints of values, and the proof that no other code holds a reference to a part of a value.

A fingerprint is a pickle in which the strings of the value are named by identity, as they cannot change. It is
several times as fast as an encoding, and two equal fingerprints of one ``Fingerprinter`` prove equal encodings: they
contain all types, the order of keys, and every value that is not named. They are never unpickled.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Iterable, Sequence
from enum import Enum
from io import BytesIO
from sys import getrefcount
from typing import Any
from weakref import getweakrefcount

from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.codec.encoder import writers
from gpu_pregel.host.agents.codec.types import plain_type

_ATOM, _CONTAINER, _UNKNOWN = range(3)


def _encoded(*_: Any) -> None:
    """Stand in for the constructor of a type that pickle does not know as built in."""


class Fingerprinter(pickle.Pickler):
    """Makes the fingerprints of a value and its parts.

    Attributes
    ----------
    named_size : int
        Encoded bytes of all strings that are named; they stay alive as long as the object.
    """

    def __init__(self) -> None:
        self._file = BytesIO()
        super().__init__(self._file, pickle.HIGHEST_PROTOCOL)
        self.named_size = 0
        self._named: set[int] = set()
        """Identities of the named strings, which the memo keeps alive."""
        self._name([_encoded])

    def _name(self, leaves: list[Any]) -> None:
        """Add immutable objects to the memo; nothing else is ever in it, because ``fast`` is set otherwise."""
        self.fast = False
        self.dump(leaves)
        self.fast = True

    def reducer_override(self, x: Any) -> Any:
        """Return the content of an object whose type is not built in, independent of its methods for pickling."""
        if x is _encoded:
            return NotImplemented
        kind = plain_type(type(x))
        return _encoded, ((encode(x),) if kind is None else (kind.head, kind.state(x)))

    def name_strings(self, items: Iterable[Any]) -> None:
        """Name the strings in ``items``, which have been encoded or are about to be."""
        leaves: list[Any] = []
        self._collect(items, leaves)
        if leaves:
            self._name(leaves)

    def _collect(self, items: Iterable[Any], leaves: list[Any]) -> None:
        """Append the strings that have no name yet."""
        named = self._named
        for x in items:
            kind = type(x)
            if kind is str or kind is bytes:
                if id(x) not in named:
                    named.add(id(x))
                    leaves.append(x)
                    self.named_size += len(x) + 2
            elif kind is list or kind is tuple:
                self._collect(x, leaves)
            elif kind is dict:
                self._collect(x, leaves)
                self._collect(x.values(), leaves)
            elif (known := plain_type(kind)) is not None:
                self._collect(known.values(x), leaves)

    def fingerprint(self, items: Sequence[Any]) -> bytes:
        """Return the fingerprint of consecutive values."""
        self._file.seek(0)
        self._file.truncate()
        kind = plain_type(type(items[0])) if items else None
        if kind is not None and len(set(map(type, items))) == 1:  # without a call of ``reducer_override`` for each
            self.dump((_encoded, kind.head, list(map(kind.state, items))))
        else:
            self.dump(items)
        return self._file.getvalue()


# References from outside.


class _Kinds(dict[type, int]):
    """By type: whether its instances are immutable, containers whose contents the garbage collector knows, or other."""

    def __missing__(self, cls: type) -> int:
        if issubclass(cls, (type, Enum)):
            kind = _ATOM
        elif cls in (list, tuple, dict, set, bytearray) or plain_type(cls) is not None:
            kind = _CONTAINER
        elif cls is frozenset:  # pickle counts it as a level of nesting that never ends
            return _UNKNOWN
        elif cls in writers and cls.__module__ in ("builtins", "datetime", "decimal", "uuid", "zoneinfo"):
            kind = _ATOM
            _atoms.add(cls)
        else:
            return _UNKNOWN  # not remembered, as the type may be registered later
        self[cls] = kind
        return kind


_kinds = _Kinds()
_atoms: set[type] = {type}
"""Immutable types, as far as they have occurred."""
_WITHOUT_WEAK_REFERENCES = frozenset({list, tuple, dict, bytearray})


def _usual_references() -> int:
    """Return the reference count of an object in one container, as seen in a copy of that container."""
    container: list[list[int]] = [[]]
    items = container[:]
    return sum(map(getrefcount, items))


_USUAL = _usual_references()


def are_immutable(items: Iterable[Any]) -> bool:
    """Whether nothing in items can be modified."""
    return not _mutable(items)


def are_flat(items: Sequence[Any]) -> bool:
    """Whether all items are dicts or lists of immutable values that are not containers."""
    if not {dict, list}.issuperset(map(type, items)):
        return False
    return all(_kinds[cls] == _ATOM for cls in set(map(type, gc.get_referents(*items))))


def are_flat_private(items: Sequence[Any], holders: int = 1) -> bool:
    """Whether nothing but their container and ``holders`` lists refers to items that are flat."""
    return sum(map(getrefcount, items)) == (_USUAL + holders - 1) * len(items)


def are_private(items: Iterable[Any], holders: int = 1, *, parts: bool = True) -> bool:
    """Whether nothing but their container and ``holders`` lists refers to items, and nothing else to their parts.

    Immutable parts may be shared. If this is true, no other code can modify the items; ``parts=False`` leaves their
    parts out.
    """
    level = _mutable(items)
    holders += 1
    while level:
        types = set(map(type, level))
        if any(_kinds[cls] == _UNKNOWN for cls in types) or not are_flat_private(level, holders):
            return False
        if not types <= _WITHOUT_WEAK_REFERENCES and not _are_only_objects(level):
            return False
        if not parts:
            break
        level, holders = _mutable(gc.get_referents(*level)), 1
    return True


def _are_only_objects(items: list[Any]) -> bool:
    """Whether there are neither weak references to objects nor references to their dicts."""
    dicts = [x.__dict__ for x in items if hasattr(x, "__dict__")]
    return not any(map(getweakrefcount, items)) and are_flat_private(dicts)


def _mutable(items: Iterable[Any]) -> list[Any]:
    """Return the objects that, or parts of which, may be modified."""
    found = [x for x in items if type(x) not in _atoms]
    types = set(map(type, found))
    if tuple in types:
        found = [x for x in found if type(x) is not tuple or _mutable(x)]
    if any(_kinds[cls] == _ATOM for cls in types):
        found = [x for x in found if _kinds[type(x)] != _ATOM]
    return found
