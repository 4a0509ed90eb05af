"""Text of LLVM IR: typed pointers made opaque, sizes of types, operands told apart.

Numba-CUDA writes the IR of LLVM 7 for NVVM (``i32*``); llvmlite reads that of today (``ptr``).
"""

from __future__ import annotations

import re

NAME = r'(?:"[^"]*"|[\w.$-]+)'
"""A name without its % or @."""
VALUE = rf"(?:[%@]{NAME}|[\w.+-]+)"
"""A local or global name, or a simple constant."""

_TOKEN = re.compile(r'[%@]?"[^"]*"|addrspace\(\d+\)|[\w.$%@!#+-]+|\s+|.')
_OPENING, _CLOSING = frozenset("{[<("), frozenset("}]>)")
_SHARED = "addrspace(3)"


def opaque(line: str) -> str:
    """Write every pointer type of a line as ``ptr``; only shared memory keeps its address space."""
    if "*" not in line and "addrspace(" not in line:
        return line
    out: list[str] = []
    # For each token: where the type begins that ends with it.
    begins: list[int] = []
    opened: list[int] = []
    for token in _TOKEN.findall(line):
        begin = len(out)
        if token in _OPENING:
            opened.append(begin)
        elif token in _CLOSING and opened:
            begin = opened.pop()
            if token == ")" and begin:
                begin = begins[_solid(out, begin - 1)]
        elif token == "*":
            last = _solid(out, len(out) - 1)
            space = ""
            if out[last].startswith("addrspace("):
                space = f" {_SHARED}" if out[last] == _SHARED else ""
                last = _solid(out, last - 1)
            begin = begins[last]
            del out[begin:], begins[begin:]
            token = f"ptr{space}"
        elif token.startswith("addrspace(") and token != _SHARED and _declares(out):
            continue
        out.append(token)
        begins.append(begin)
    return "".join(out)


def _solid(tokens: list[str], index: int) -> int:
    """The last token up to ``index`` that is no white space."""
    while index > 0 and tokens[index].isspace():
        index -= 1
    return index


def _declares(tokens: list[str]) -> bool:
    """Whether an address space that comes next is that of a global variable, not of a pointer."""
    return any(token == "=" for token in tokens) and tokens[0].startswith("@")


def split(text: str) -> list[str]:
    """Split at commas that stand outside of brackets and quotes."""
    parts: list[str] = []
    depth = begin = 0
    quoted = False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[begin:position].strip())
            begin = position + 1
    last = text[begin:].strip()
    return [*parts, last] if last or parts else []


def closing(text: str, begin: int) -> int:
    """Position of the bracket that closes the one at ``begin``."""
    depth = 0
    quoted = False
    for position in range(begin, len(text)):
        character = text[position]
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
            if not depth:
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


def layout(kind: str) -> tuple[int, int]:
    """Size and alignment in bytes of a type.

    Raises
    ------
    ValueError
        A type that kernels have no use for.
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
        size = int(match[1]) * layout(match[2])[0]
        return size, size
    if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
        size, alignment = layout(match[2])
        return int(match[1]) * size, alignment
    if kind.startswith("{"):
        offset, alignment = 0, 1
        for position, member in members(kind):
            size, own = layout(member)
            offset, alignment = position + size, max(alignment, own)
        return -(-offset // alignment) * alignment, alignment
    raise ValueError(kind)


def smallest(kind: str) -> int:
    """Size in bytes of the smallest number in a type."""
    kind = kind.strip()
    if kind.startswith(("[", "{")):
        return min((smallest(member) for _, member in members(kind)[:64]), default=8)
    return layout(kind)[0]


def members(kind: str) -> list[tuple[int, str]]:
    """Offset and type of each member of a struct or an array."""
    if match := re.fullmatch(r"\[(\d+) x (.*)\]", kind.strip()):
        size, _ = layout(match[2])
        return [(index * size, match[2]) for index in range(int(match[1]))]
    offset = 0
    found = []
    for member in split(kind.strip()[1:-1]):
        size, alignment = layout(member)
        offset = -(-offset // alignment) * alignment
        found.append((offset, member))
        offset += size
    return found
