"""Parsing of LLVM IR text: opaque pointers, operands, and the layout of types.

Numba-CUDA emits the typed pointers of LLVM 7 for NVVM (``i32*``); llvmlite reads opaque pointers (``ptr``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NAME = r'(?:"[^"]*"|[\w.$-]+)'
"""A name without its % or @ prefix."""
VALUE = rf"(?:[%@]{NAME}|[\w.+-]+)"
"""A local or global name, or a simple constant."""

_TOKEN = re.compile(r'[%@]?"[^"]*"|addrspace\(\d+\)|[\w.$%@!#+-]+|\s+|.')
_OPENING, _CLOSING = frozenset("{[<("), frozenset("}]>)")
_QUOTE_BRACKET_OR_COMMA = re.compile(r'"[^"]*"?|[{\[<(}\]>),]')
_SHARED = "addrspace(3)"
_FLAT = r'[^\]\[(){}"*]*'
_SIMPLE_POINTER = re.compile(
    rf"(?<![\w.$%@!#+-])(?:i\d+|float|double|ptr|\[{_FLAT}\]|\{{{_FLAT}(?:[\[{{]{_FLAT}[\]}}]{_FLAT})*\}})\*+"
)
"""A pointer to a number, or to an array or a struct without pointers."""


def opaque(line: str) -> str:
    """Replace every pointer type of a line by ``ptr``; only shared memory keeps its address space."""
    if "*" not in line and "addrspace(" not in line:
        return line
    # Most lines have only pointers to numbers, and to structs and arrays of those.
    if not any("*" in quoted for quoted in line.split('"')[1::2]):
        line = _SIMPLE_POINTER.sub("ptr", line)
        line = _SIMPLE_POINTER.sub("ptr", line) if "*" in line else line
        if "*" not in line and "addrspace(" not in line:
            return line
    out: list[str] = []
    # For each token: the index at which the type that ends with it begins.
    begins: list[int] = []
    opened: list[int] = []
    for token in _TOKEN.findall(line):
        begin, text = len(out), token
        if token in _OPENING:
            opened.append(begin)
        elif token in _CLOSING and opened:
            begin = opened.pop()
            if token == ")" and begin:
                begin = begins[_last_solid(out, begin - 1)]
        elif token == "*":
            begin, text = _pointer_type(out, begins)
            del out[begin:], begins[begin:]
        elif _is_address_space_of_global(out, token):
            continue
        out.append(text)
        begins.append(begin)
    return "".join(out)


def _pointer_type(tokens: list[str], begins: list[int]) -> tuple[int, str]:
    """Return where the type before a ``*`` begins, and the opaque pointer type that replaces it."""
    last = _last_solid(tokens, len(tokens) - 1)
    if not tokens[last].startswith("addrspace("):
        return begins[last], "ptr"
    space = f" {_SHARED}" if tokens[last] == _SHARED else ""
    return begins[_last_solid(tokens, last - 1)], f"ptr{space}"


def _last_solid(tokens: list[str], index: int) -> int:
    """Return the index of the last token up to ``index`` that is not white space."""
    while index > 0 and tokens[index].isspace():
        index -= 1
    return index


def _is_address_space_of_global(tokens: list[str], token: str) -> bool:
    """Whether ``token`` is the address space of a global variable other than shared memory."""
    if not token.startswith("addrspace(") or token == _SHARED:
        return False
    return "=" in tokens and tokens[0].startswith("@")


def _brackets_and_commas(text: str, begin: int = 0) -> Iterator[tuple[int, str, int]]:
    """Yield the position of each bracket and comma outside quotes, it, and the number of brackets open after it."""
    depth = 0
    for match in _QUOTE_BRACKET_OR_COMMA.finditer(text, begin):
        character = match[0]
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        if character[0] != '"':
            yield match.start(), character, depth


def split(text: str) -> list[str]:
    """Split at the commas outside brackets and quotes."""
    parts: list[str] = []
    begin = 0
    for position, character, depth in _brackets_and_commas(text):
        if character == "," and not depth:
            parts.append(text[begin:position].strip())
            begin = position + 1
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


def closing(text: str, begin: int) -> int:
    """Return the position of the bracket that closes the one at ``begin``."""
    for position, character, depth in _brackets_and_commas(text, begin):
        if character in _CLOSING and not depth:
            return position
    raise ValueError(f"unbalanced brackets: {text}")


_ARGUMENT_ATTRIBUTE = re.compile(
    r"(?:noundef|nonnull|signext|zeroext|immarg|noalias|readonly|readnone|writeonly|nofree|nocapture|returned|inreg"
    r"|align \d+|(?:captures|dereferenceable|dereferenceable_or_null|range|initializes)\((?:[^()]|\([^()]*\))*\))\s+"
)


def typed_value(text: str) -> tuple[str, str]:
    """Split ``i32 noundef %x`` into its type and its value."""
    end = closing(text, 0) + 1 if text[0] in _OPENING else text.index(" ")
    kind, rest = text[:end], text[end:].strip()
    while match := _ARGUMENT_ATTRIBUTE.match(rest):
        rest = rest[match.end() :]
    return kind, rest


_SIMPLE_BYTES = {"float": 4, "double": 8, "half": 2, "ptr": 8, "bfloat": 2}


def size_and_alignment(kind: str) -> tuple[int, int]:
    """Return the size and the alignment of a type in bytes.

    Raises
    ------
    ValueError
        The type is not supported.
    """
    kind = kind.strip()
    if kind in _SIMPLE_BYTES:
        return _SIMPLE_BYTES[kind], _SIMPLE_BYTES[kind]
    if re.fullmatch(r"i\d+", kind):
        size = 1
        while size * 8 < int(kind[1:]):
            size *= 2
        return size, size
    if kind.startswith("ptr") or kind.endswith("*"):
        return 8, 8
    if match := re.fullmatch(r"<(\d+) x (\w+)>", kind):
        size = int(match[1]) * size_and_alignment(match[2])[0]
        return size, size
    if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
        size, alignment = size_and_alignment(match[2])
        return int(match[1]) * size, alignment
    if kind.startswith("{"):
        offset, alignment = 0, 1
        for position, member in members(kind):
            size, own = size_and_alignment(member)
            offset, alignment = position + size, max(alignment, own)
        return -(-offset // alignment) * alignment, alignment
    raise ValueError(kind)


def smallest_number(kind: str) -> int:
    """Return the size of the smallest number in a type, in bytes."""
    kind = kind.strip()
    if kind.startswith(("[", "{")):
        return min((smallest_number(member) for _, member in members(kind)[:64]), default=8)
    return size_and_alignment(kind)[0]


def members(kind: str) -> list[tuple[int, str]]:
    """Return the offset and the type of each member of a struct or an array."""
    if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind.strip()):
        size, _ = size_and_alignment(match[2])
        return [(index * size, match[2]) for index in range(int(match[1]))]
    offset = 0
    found = []
    for member in split(kind.strip()[1:-1]):
        size, alignment = size_and_alignment(member)
        offset = -(-offset // alignment) * alignment
        found.append((offset, member))
        offset += size
    return found
