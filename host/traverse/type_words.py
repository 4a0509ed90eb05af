"""Numba's names of types in plain words, for errors."""

from __future__ import annotations

import re
from typing import Any

_NOTHING = "None (as where a path ends without a return)"
_WORDS = (
    (
        r"LiteralStrKey\[Dict\]\(\{[^{}]*\}\)|LiteralStrKeyDict\(\{[^{}]*\}\)|DictType\[[^\]]*\]|\bdict\([^()]*\)",
        "a dict",
    ),
    (r"(?:Literal)?List\((?:[^()]|\([^()]*\))*\)|(?:reflected )?\blist\((?:[^()]|\([^()]*\))*\)", "a list"),
    (r"(?:reflected )?\bset\((?:[^()]|\([^()]*\))*\)", "a set"),
    (r"Literal\[str\]\([^()]*\)|\bunicode_type\b", "a text"),
    (r"Literal\[(?:int|bool)\]\((\w+)\)|Literal\[(?:int|bool)\]\((-?\w+)\)", r"\1\2"),
    (r"<iv=[^<>]*>", ""),
    (r"OptionalType\(((?:[^()]|\([^()]*\))*)\)", rf"\1 or {_NOTHING}"),
    (r"^none$", _NOTHING),
    (r"Can't unify return type from the following types: (.*)", r"it must return the same type everywhere, not: \1"),
    (r"Cannot unify (.*) and (.*) for '\$[\w.]+'(, defined at.*)?$", r"\1 and \2 have no common type\3"),
)


def in_words(kind: Any) -> str:
    """Return a type, or a line of Numba's message that names types, with common ones in plain words."""
    text = str(kind)
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text
