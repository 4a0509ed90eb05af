"""From the LLVM IR of Numba-CUDA to that of this machine, module by module, before they are linked.

Pointers become opaque, NVVM's intrinsics get names that LLVM leaves alone, arrays in shared memory become offsets,
debug information shrinks to lines, and division, shift and conversion are preceded by a call that checks their
operands. Here, not after linking: inlining folds constants, and a division by a constant zero would be gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_pregel.host.emulator.compile.intrinsics import PREFIX
from gpu_pregel.host.emulator.compile.ir_text import NAME, VALUE, closing, layout, opaque, smallest

SHARED = "emu.shared"
DYNAMIC_SHARED = "emu.dynamic_shared_memory"
CHECK = "emu.check."
CHECK_OF = {
    "sdiv": "division", "udiv": "division", "srem": "division", "urem": "division",
    "shl": "shift", "lshr": "shift", "ashr": "shift",
    "fptosi": "float", "fptoui": "float",
}  # fmt: skip

_SHARED_GLOBAL = re.compile(rf"(@{NAME}) = (.*?)addrspace\(3\) global (.+?)(?: undef)?(?:, align (\d+))?$")
_SHARED_CAST = re.compile(rf"\s*(%{NAME}) = addrspacecast .* addrspace\(3\)\* (@{NAME}) to .*?((?:, *!.*)?)$")
_ARITHMETIC = re.compile(r" = (?:[su]div |[su]rem |shl |[la]shr |fpto[su]i )")
_OPERATION = re.compile(
    rf"\s*%{NAME} = (\w+) (?:(?:nuw|nsw|exact) )*(i\d+|float|double|half) ({VALUE})(?:, ({VALUE})| to (i\d+))"
)
_DEBUG_LOCATION = re.compile(r"!dbg !\d+")
_IS_ZERO = re.compile(rf"\s*(%{NAME}) = icmp eq (i\d+) (%{NAME}), 0\b")
_METADATA = re.compile(r"!(\d+) = (.*)")
_KEPT_METADATA = re.compile(r"(?:distinct )?!DI(?:File|CompileUnit|Subprogram|Location|LexicalBlock\w*|Namespace)\(")
_ALLOCATION = re.compile(rf"\s*%{NAME} = alloca (\[.*\])(?:,|$)")
_ZEROED = re.compile(rf"\s*store (\[(\d+) x .*\]) zeroinitializer, .*\* (%{NAME})")
_MANY = 64
_FILL = "llvm.memset.p0.i64"
_DEFINED = re.compile(rf"define .*?@({NAME})\(")
_DECLARED = re.compile(rf"declare .*?@({NAME})\(")


@dataclass
class SharedMemory:
    """Where the arrays of a kernel lie in the shared memory of its block."""

    size: int = 0
    granule: int = 8
    """Size of the smallest elements."""

    def place(self, kind: str, alignment: int) -> int:
        """Reserve room for a value of type ``kind``."""
        size, natural = layout(kind)
        alignment = max(alignment, natural)
        offset = -(-self.size // alignment) * alignment
        self.size = offset + size
        self.granule = min(self.granule, smallest(kind))
        return offset


@dataclass
class Translated:
    """A module that llvmlite can read, and the names of functions that it leaves to others."""

    text: str
    declared: set[str]
    defined: set[str]
    local_bytes: int
    """Of local arrays."""


@dataclass
class _Module:
    header: str
    shared: dict[str, int | None]
    is_entry: str
    out: list[str] = field(default_factory=list)
    checks: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    local_bytes: int = 0
    fills: bool = False


def translate(text: str, entry: str, shared: SharedMemory, header: str) -> Translated:
    """Translate one module; ``header`` has the data layout and triple of this machine."""
    lines = text.splitlines()
    module = _Module(header, _place_shared(lines, shared), entry)
    body: list[str] | None = None
    for line in lines:
        if body is not None:
            body.append(line)
            if line.startswith("}"):
                _function(module, body)
                body = None
        elif line.startswith("define "):
            body = [line]
        elif line.startswith("!"):
            _metadata(module, line)
        elif line.startswith("@"):
            _global(module, line)
        elif line.startswith("declare "):
            _declaration(module, line)
        elif line and not line.startswith((";", "target ")):
            module.out.append(opaque(line))
    if module.shared:
        module.out += [f'declare ptr @"{SHARED}"(i64)', f'declare ptr @"{DYNAMIC_SHARED}"()']
    module.out += [check_declaration(name) for name in sorted(module.checks)]
    if module.fills:
        module.out.append(f"declare void @{_FILL}(ptr, i8, i64, i1)")
    return Translated("\n".join([header, *module.out, ""]), module.declared, module.defined, module.local_bytes)


def check_declaration(name: str) -> str:
    """Declare a check such as ``division.i32``."""
    what, kind = name.split(".")
    parameters = {"division": f"{kind}, {kind}, i64", "shift": kind, "float": f"{kind}, i64, i64"}[what]
    return f'declare void @"{CHECK}{name}"({parameters})'


def _place_shared(lines: Iterable[str], shared: SharedMemory) -> dict[str, int | None]:
    """Offsets of the module's arrays in shared memory; None for one whose size a launch gives."""
    found: dict[str, int | None] = {}
    for line in lines:
        if line.startswith("@") and " addrspace(3) " in line and (match := _SHARED_GLOBAL.match(line)):
            kind = opaque(match[3])
            if layout(kind)[0] == 0:
                found[match[1]] = None
            else:
                found[match[1]] = shared.place(kind, int(match[4] or 1))
    return found


def _global(module: _Module, line: str) -> None:
    if line.startswith('@"llvm.used"') or _name_before(line) in module.shared:
        return
    # Numba's pointer to its environment, which no kernel uses.
    module.out.append(opaque(line.replace(" = common global ", " = internal global ", 1)))


def _name_before(line: str) -> str:
    return line.split(" = ", 1)[0]


def _metadata(module: _Module, line: str) -> None:
    match = _METADATA.match(line)
    if match is None:
        if not line.startswith("!nvvm"):
            module.out.append(line)
        return
    number, content = match.groups()
    if _KEPT_METADATA.match(content):
        module.out.append(line)
    elif "!DISubroutineType(" in content:
        module.out.append(f"!{number} = !DISubroutineType(types: !{{}})")
    elif re.match(r'!\{\s*(?:i\d|!")', content):
        module.out.append(line)
    else:
        # Types and variables, which nothing asks for once the debug intrinsics are gone.
        module.out.append(f"!{number} = !{{}}")


def _declaration(module: _Module, line: str) -> None:
    if "llvm.dbg." in line:
        return
    line = opaque(_renamed(line))
    match = _DECLARED.match(line)
    if match is not None:
        module.declared.add(match[1].strip('"'))
    module.out.append(line)


def _renamed(line: str) -> str:
    return line.replace('@"llvm.nvvm.', f'@"{PREFIX}') if "llvm.nvvm." in line else line


def _function(module: _Module, body: list[str]) -> None:
    header = opaque(body[0])
    match = _DEFINED.match(header)
    name = match[1].strip('"') if match else ""
    module.defined.add(name)
    if name != module.is_entry and match is not None:
        end = closing(header, match.end() - 1) + 1
        attributes = re.sub(r"\b(?:noinline|optnone|alwaysinline)\b", "", header[end:])
        # Weak, so that linking keeps it whatever comes first; internal once all is linked.
        header = f"{header[:end].replace(' linkonce_odr ', ' weak_odr ', 1)} alwaysinline {attributes}"
    module.out.append(header)
    divisors = _divisors(body)
    for index in range(1, len(body)):
        line = body[index]
        if "llvm.dbg." in line:
            continue
        if _ARITHMETIC.search(line):
            _check(module, line)
        elif divisors and (zero := _IS_ZERO.match(line)) and zero[3] in divisors:
            _check_guard(module, line, body[index + 1], zero, divisors[zero[3]])
        if "addrspace(3)" in line and (cast := _SHARED_CAST.match(line)):
            line = _shared_address(module, cast)
        elif " = alloca [" in line and (array := _ALLOCATION.match(line)):
            module.local_bytes += layout(array[1])[0]
        elif " zeroinitializer," in line and (zeroed := _ZEROED.match(line)) and int(zeroed[2]) >= _MANY:
            # LLVM would store the elements one by one.
            module.fills = True
            line = f"  call void @{_FILL}(ptr {zeroed[3]}, i8 0, i64 {layout(zeroed[1])[0]}, i1 false)"
        elif "addrspacecast" in line:
            # Of constants, which are memory like any other here.
            line = line.replace("addrspacecast", "bitcast")
        module.out.append(opaque(_renamed(line)))


def _shared_address(module: _Module, cast: re.Match[str]) -> str:
    offset = module.shared[cast[2]]
    if offset is None:
        return f'  {cast[1]} = call ptr @"{DYNAMIC_SHARED}"(){cast[3]}'
    return f'  {cast[1]} = call ptr @"{SHARED}"(i64 {offset}){cast[3]}'


def _divisors(body: list[str]) -> dict[str, set[str]]:
    """Values that are divided by somewhere, and what is divided by each."""
    found: dict[str, set[str]] = {}
    for line in body:
        match = _OPERATION.match(line) if _ARITHMETIC.search(line) else None
        if match and CHECK_OF[match[1]] == "division" and match[4].startswith("%"):
            found.setdefault(match[4], set()).add(match[3])
    return found


def _check_guard(module: _Module, line: str, following: str, zero: re.Match[str], dividends: set[str]) -> None:
    """Numba steps around a division by zero and gives zero; the branch that does so is marked as unlikely."""
    if f"br i1 {zero[1]}," in following and "!prof" in following:
        # With several dividends it is not known here which of them is defined already.
        dividend = next(iter(dividends)) if len(dividends) == 1 else "0"
        kind = zero[2]
        _call_check(module, f"division.{kind}", f"{kind} {dividend}, {kind} {zero[3]}, i64 0", line)


def _check(module: _Module, line: str) -> None:
    match = _OPERATION.match(line)
    if match is None:
        raise ValueError(f"cannot read: {line}")
    operation, kind, first, second, target = match.groups()
    what = CHECK_OF[operation]
    signed = operation in ("sdiv", "srem", "fptosi")
    if what == "float":
        _call_check(module, f"float.{kind}", f"{kind} {first}, i64 {target[1:]}, i64 {int(signed)}", line)
        return
    if second.lstrip("-").isdigit():
        constant = int(second)
        if (0 <= constant < int(kind[1:])) if what == "shift" else constant not in (0, -1):
            return
    if what == "shift":
        _call_check(module, f"shift.{kind}", f"{kind} {second}", line)
    else:
        _call_check(module, f"division.{kind}", f"{kind} {first}, {kind} {second}, i64 {int(signed)}", line)


def _call_check(module: _Module, name: str, arguments: str, line: str) -> None:
    location = _DEBUG_LOCATION.search(line)
    module.checks.add(name)
    suffix = f", {location[0]}" if location else ""
    module.out.append(f'  call void @"{CHECK}{name}"({arguments}){suffix}')
