"""Translation of Numba-CUDA's LLVM IR to the IR of this machine, one module at a time before linking.

Pointers become opaque, NVVM intrinsics are renamed, shared arrays become offsets, debug metadata is reduced to lines,
and each division, shift and conversion is preceded by a check of its operands. The checks are inserted before linking
because inlining folds constants, which would remove a division by a constant zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_pregel.host.emulator.compile.intrinsics import PREFIX
from gpu_pregel.host.emulator.compile.ir_text import (
    NAME,
    VALUE,
    closing,
    opaque,
    size_and_alignment,
    smallest_number,
)

SHARED = "emu.shared"
DYNAMIC_SHARED = "emu.dynamic_shared_memory"
_DYNAMIC_ALIGNMENT = 16
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
_MIN_FILL_ELEMENTS = 64
"""Zeroed arrays of at least this length are filled with memset; LLVM would emit one store per element."""
_FILL = "llvm.memset.p0.i64"
_DEFINED = re.compile(rf"define .*?@({NAME})\(")
_DECLARED = re.compile(rf"declare .*?@({NAME})\(")


@dataclass
class SharedLayout:
    """The layout of a kernel's arrays in the shared memory of a block.

    Attributes
    ----------
    size : int
        Bytes allocated so far.
    granule : int
        Size of the smallest elements.
    """

    size: int = 0
    granule: int = 8

    def place(self, kind: str, alignment: int) -> int:
        """Allocate a value of type ``kind`` and return its offset."""
        size, natural = size_and_alignment(kind)
        alignment = max(alignment, natural)
        offset = -(-self.size // alignment) * alignment
        self.size = offset + size
        self.granule = min(self.granule, smallest_number(kind))
        return offset

    def place_dynamic(self, size: int) -> int:
        """Allocate the dynamic array, after all others, and return its offset."""
        offset = -(-self.size // _DYNAMIC_ALIGNMENT) * _DYNAMIC_ALIGNMENT
        if size:
            self.size = offset + size
        return offset


@dataclass
class HostModule:
    """A module that llvmlite can parse.

    Attributes
    ----------
    text : str
    declared, defined : set of str
        Names of the functions that it declares and defines.
    local_bytes : int
        Size of its local arrays.
    """

    text: str
    declared: set[str]
    defined: set[str]
    local_bytes: int


@dataclass
class _ModuleBuilder:
    shared: dict[str, int | None]
    entry: str
    out: list[str] = field(default_factory=list)
    checks: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    local_bytes: int = 0
    fills: bool = False


def translate(text: str, entry: str, shared: SharedLayout, header: str) -> HostModule:
    """Translate one module; ``header`` states the data layout and the triple of this machine."""
    lines = text.splitlines()
    module = _ModuleBuilder(_place_shared(lines, shared), entry)
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
    return HostModule("\n".join([header, *module.out, ""]), module.declared, module.defined, module.local_bytes)


def check_declaration(name: str) -> str:
    """Return the declaration of a check such as ``division.i32``."""
    what, kind = name.split(".")
    parameters = {"division": f"{kind}, {kind}, i64", "shift": kind, "float": f"{kind}, i64, i64"}[what]
    return f'declare void @"{CHECK}{name}"({parameters})'


def _place_shared(lines: Iterable[str], shared: SharedLayout) -> dict[str, int | None]:
    """Return the offsets of the module's shared arrays; None for a dynamic array."""
    found: dict[str, int | None] = {}
    for line in lines:
        if line.startswith("@") and " addrspace(3) " in line and (match := _SHARED_GLOBAL.match(line)):
            kind = opaque(match[3])
            if size_and_alignment(kind)[0] == 0:
                found[match[1]] = None
                shared.granule = min(shared.granule, smallest_number(kind.replace("[0 x", "[1 x", 1)))
            else:
                found[match[1]] = shared.place(kind, int(match[4] or 1))
    return found


def _global(module: _ModuleBuilder, line: str) -> None:
    if line.startswith('@"llvm.used"') or _name_before(line) in module.shared:
        return
    # Numba's environment pointer, which kernels do not use.
    module.out.append(opaque(line.replace(" = common global ", " = internal global ", 1)))


def _name_before(line: str) -> str:
    return line.split(" = ", 1)[0]


def _metadata(module: _ModuleBuilder, line: str) -> None:
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
        # Types and variables: unused once the debug intrinsics have been removed.
        module.out.append(f"!{number} = !{{}}")


def _declaration(module: _ModuleBuilder, line: str) -> None:
    if "llvm.dbg." in line:
        return
    line = opaque(_rename_intrinsics(line))
    match = _DECLARED.match(line)
    if match is not None:
        module.declared.add(match[1].strip('"'))
    module.out.append(line)


def _rename_intrinsics(line: str) -> str:
    return line.replace('@"llvm.nvvm.', f'@"{PREFIX}') if "llvm.nvvm." in line else line


def _function(module: _ModuleBuilder, body: list[str]) -> None:
    module.out.append(_function_header(module, body[0]))
    divisors = _divisors(body)
    for line, following in zip(body[1:], [*body[2:], ""], strict=True):
        if "llvm.dbg." in line:
            continue
        if _ARITHMETIC.search(line):
            _check(module, line)
        elif divisors and (zero := _IS_ZERO.match(line)) and zero[3] in divisors:
            _check_guard(module, line, following, zero, divisors[zero[3]])
        module.out.append(opaque(_rename_intrinsics(_instruction(module, line))))


def _function_header(module: _ModuleBuilder, line: str) -> str:
    """Return the header of a function, which is inlined unless it is the kernel."""
    header = opaque(line)
    match = _DEFINED.match(header)
    name = match[1].strip('"') if match else ""
    module.defined.add(name)
    if name == module.entry or match is None:
        return header
    end = closing(header, match.end() - 1) + 1
    attributes = re.sub(r"\b(?:noinline|optnone|alwaysinline)\b", "", header[end:])
    # Weak, so that linking keeps the definition in any order of modules; made internal after linking.
    return f"{header[:end].replace(' linkonce_odr ', ' weak_odr ', 1)} alwaysinline {attributes}"


def _instruction(module: _ModuleBuilder, line: str) -> str:
    """Return an instruction with its shared addresses, local arrays and address spaces translated."""
    if "addrspace(3)" in line and (cast := _SHARED_CAST.match(line)):
        return _shared_address(module, cast)
    if " = alloca [" in line and (array := _ALLOCATION.match(line)):
        module.local_bytes += size_and_alignment(array[1])[0]
        return line
    if " zeroinitializer," in line and (zeroed := _ZEROED.match(line)) and int(zeroed[2]) >= _MIN_FILL_ELEMENTS:
        module.fills = True
        return f"  call void @{_FILL}(ptr {zeroed[3]}, i8 0, i64 {size_and_alignment(zeroed[1])[0]}, i1 false)"
    # Constant memory is ordinary memory on this machine.
    return line.replace("addrspacecast", "bitcast")


def _shared_address(module: _ModuleBuilder, cast: re.Match[str]) -> str:
    offset = module.shared[cast[2]]
    if offset is None:
        return f'  {cast[1]} = call ptr @"{DYNAMIC_SHARED}"(){cast[3]}'
    return f'  {cast[1]} = call ptr @"{SHARED}"(i64 {offset}){cast[3]}'


def _divisors(body: list[str]) -> dict[str, set[str]]:
    """Return the divisors of the function's divisions, each with its dividends."""
    found: dict[str, set[str]] = {}
    for line in body:
        match = _OPERATION.match(line) if _ARITHMETIC.search(line) else None
        if match and CHECK_OF[match[1]] == "division" and match[4].startswith("%"):
            found.setdefault(match[4], set()).add(match[3])
    return found


def _check_guard(module: _ModuleBuilder, line: str, following: str, zero: re.Match[str], dividends: set[str]) -> None:
    """Check a division that Numba guards by a branch marked as unlikely, which returns zero for a zero divisor."""
    if f"br i1 {zero[1]}," in following and "!prof" in following:
        # Of several dividends, some may be defined only after this line.
        dividend = next(iter(dividends)) if len(dividends) == 1 else "0"
        kind = zero[2]
        _call_check(module, f"division.{kind}", f"{kind} {dividend}, {kind} {zero[3]}, i64 0", line)


def _check(module: _ModuleBuilder, line: str) -> None:
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


def _call_check(module: _ModuleBuilder, name: str, arguments: str, line: str) -> None:
    location = _DEBUG_LOCATION.search(line)
    module.checks.add(name)
    suffix = f", {location[0]}" if location else ""
    module.out.append(f'  call void @"{CHECK}{name}"({arguments}){suffix}')
