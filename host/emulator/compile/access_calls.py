"""After optimisation: loads, stores and atomics outside the thread's own stack become calls of the emulated machine.

The accesses that remain are those that NVIDIA's compiler would keep too. Each is checked and counted as a site.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpu_pregel.host.emulator.compile import intrinsics
from gpu_pregel.host.emulator.compile.endless_loops import endless_loop
from gpu_pregel.host.emulator.compile.intrinsic_calls import STATE
from gpu_pregel.host.emulator.compile.ir_text import NAME, members, size_and_alignment, split, typed_value
from gpu_pregel.host.emulator.compile.locations import Locations
from gpu_pregel.host.emulator.compile.stack_arrays import StackArrays, constant_tables
from gpu_pregel.host.emulator.machine import layout
from gpu_pregel.host.emulator.machine.compiled_kernel import BLOCK_FENCE, Site

_NAMES = ("xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "fadd", "load", "store")
_OPERATIONS = {name: code for code, name in enumerate(_NAMES)}
_MEMORY = re.compile(rf"\s*(?:(%{NAME}) = )?(load|store|atomicrmw|cmpxchg|fence)\b (.*)$")
_SUFFIX = re.compile(r",? !\w.*$")
_DEBUG = re.compile(r", !dbg !\d+")
_SCOPE = re.compile(r'syncscope\("([^"]*)"\)')
_ORDERINGS = frozenset({"unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"})
_RELEASES = frozenset({"release", "acq_rel", "seq_cst"})
_ACQUIRES = frozenset({"acquire", "acq_rel", "seq_cst"})
_LOCAL_CHECK = """
define internal void @"emu.local"(i64 %s, i64 %offset, i64 %last, i64 %size, i64 %site, i1 %writes) noinline {
  %bad = icmp ugt i64 %offset, %last
  br i1 %bad, label %fault, label %fine
fault:
  ; Address 0 is outside every array, so the machine reports a fault.
  br i1 %writes, label %write, label %read
read:
  call i64 @emu_load(i64 %s, i64 0, i64 %size, i64 %site)
  br label %fine
write:
  call i64 @emu_store(i64 %s, i64 0, i64 %size, i64 0, i64 %site)
  br label %fine
fine:
  ret void
}
"""


@dataclass(frozen=True)
class _Access:
    """A parsed memory instruction or fence."""

    line: str
    result: str | None
    operation: str
    operands: list[str]
    orderings: frozenset[str]
    scope: str | None
    debug: str

    @property
    def level(self) -> int:
        """The fence level of its scope; system-wide if it names no scope."""
        return 2 if self.scope is None else intrinsics.FENCE_SCOPES.get(self.scope, 2)

    @property
    def pointer(self) -> str:
        """The pointer operand."""
        if self.operation in ("load", "store"):
            return _pointer(self.operands[1])
        return _pointer(re.sub(r"^\w+ (?=ptr)", "", self.operands[0]))

    @property
    def accessed_type(self) -> str:
        """The type that a load or store moves."""
        return self.operands[0] if self.operation == "load" else typed_value(self.operands[0])[0]


def _parse(line: str, match: re.Match[str]) -> _Access:
    debug = _DEBUG.search(match[3])
    rest = _SUFFIX.sub("", match[3])
    scope = _SCOPE.search(rest)
    return _Access(
        line=line,
        result=match[1],
        operation=match[2],
        operands=split(re.sub(r"^(?:weak |volatile |atomic )+", "", rest)),
        orderings=_ORDERINGS.intersection(re.split(r"[\s,]+", rest)),
        scope=scope[1] if scope else None,
        debug=debug[0] if debug else "",
    )


class AccessRewriter:
    """Rewrites the text of one optimised module and appends to its kernel's sites."""

    def __init__(self, kernel: str, sites: list[Site], fallback: tuple[str, int]) -> None:
        self.checks_local = False
        self.local_bytes = 0
        """Bytes of a thread's local arrays."""
        self._kernel = kernel
        self._sites = sites
        self._fallback = fallback
        self._out: list[str] = []
        self._count = 0
        self._debug = ""

    def run(self, text: str) -> str:
        """Return the module's text with calls of hooks in place of memory accesses."""
        lines = text.splitlines()
        self._locations = Locations(lines, self._kernel, self._fallback)
        self._constants = constant_tables(lines)
        begin = 0
        while begin < len(lines):
            if not lines[begin].startswith("define "):
                self._out.append(lines[begin])
                begin += 1
                continue
            end = lines.index("}", begin)
            self._function(lines[begin : end + 1])
            begin = end + 1
        return "\n".join(self._out) + "\n" + (_LOCAL_CHECK if self.checks_local else "")

    def _function(self, lines: list[str]) -> None:
        self._locations.start_function(lines[0])
        self._stack = StackArrays(lines, self._constants)
        self.local_bytes += sum(self._stack.sizes.values())
        if (line := endless_loop(lines)) is not None:
            problem = "infinite loop: its condition is loaded only once, before the loop; use an atomic operation"
            raise self._locations.error(line, problem)
        for line in lines:
            match = _MEMORY.match(line)
            if match is not None:
                self._access(_parse(line, match))
                continue
            if " call " in line and re.search(r"@llvm\.mem(?:cpy|move|set)\b", line):
                self._check_block_operation(line)
            self._out.append(line)

    def _check_block_operation(self, line: str) -> None:
        """Allow copies and fills of the stack, which run natively, and refuse all others."""
        begin = line.index("(")
        arguments = [typed_value(one) for one in split(line[begin + 1 : line.rindex(")")])]
        pointers = arguments[:1] if "@llvm.memset" in line else arguments[:2]
        if not all(value in self._stack for _, value in pointers):
            problem = "copies or fills a block of memory, which the emulated device does not support"
            raise self._locations.error(line, problem)

    def _check_local(self, access: _Access) -> None:
        """Emit a bounds check of an access to a local or constant array, if it is clear which array is meant."""
        pointer = access.pointer
        is_whole = pointer in self._stack.sizes or pointer in self._constants
        if is_whole or access.operation not in ("load", "store"):
            return
        array, kind = self._stack.array_of(pointer), access.accessed_type
        if array is None or _is_aggregate(kind):
            return
        self.checks_local = True
        offset = self._new()
        address, base = self._address(pointer), self._address(array)
        self._emit(f"{offset} = sub i64 {address}, {base}")
        size, site = _size(kind), self._site("check", access.line)
        self._emit(
            f'call void @"emu.local"(i64 {STATE}, i64 {offset}, i64 {self._stack.size_of(array) - size}, '
            f"i64 {size}, i64 {site}, i1 {str(access.operation == 'store').lower()})"
        )

    def _access(self, access: _Access) -> None:
        self._locations.of(access.line)
        self._debug = access.debug
        if access.operation == "fence":
            if access.scope != "singlethread":
                self._fence(access)
            return
        if access.pointer in self._stack:
            self._check_local(access)
            self._out.append(access.line)
            return
        if access.orderings & _RELEASES:
            self._fence(access)
        address = self._address(access.pointer)
        try:
            self._call_hook(access, address)
        except (ValueError, KeyError):
            raise self._locations.error(access.line, f"unsupported memory access: {access.line.strip()}") from None
        if access.orderings & _ACQUIRES:
            self._fence(access)

    def _call_hook(self, access: _Access, address: str) -> None:
        line, operands, is_atomic = access.line, access.operands, bool(access.orderings)
        if access.operation == "load":
            scope = _scope(access) if is_atomic else None
            self._load(line, access.result or "", operands[0], address, scope)
        elif access.operation == "store":
            kind, value = typed_value(operands[0])
            self._store(line, kind, value, address, _scope(access) if is_atomic else None)
        elif access.operation == "atomicrmw":
            self._read_modify_write(line, access.result or self._new(), operands, address, _scope(access))
        else:
            self._compare_and_swap(line, access.result or self._new(), operands, address, _scope(access))

    def _new(self) -> str:
        self._count += 1
        return f"%emu$m{self._count}"

    def _site(self, kind: str, line: str) -> int:
        self._sites.append(Site(kind, *self._locations.of(line)))
        return len(self._sites) - 1

    def _emit(self, text: str) -> None:
        self._out.append(f"  {text}{self._debug}")

    def _hook(self, name: str, *arguments: str | int) -> str:
        result = self._new()
        joined = ", ".join(f"i64 {argument}" for argument in (STATE, *arguments))
        self._emit(f"{result} = call i64 @{name}({joined})")
        return result

    def _fence(self, access: _Access) -> None:
        self._hook("emu_fence", access.level, self._site("fence" if access.level else BLOCK_FENCE, access.line))

    def _address(self, pointer: str) -> str:
        result = self._new()
        self._emit(f"{result} = ptrtoint ptr {pointer} to i64")
        return result

    def _widen(self, kind: str, value: str) -> str:
        """Emit the conversion of a value to its bits, zero-extended to 64."""
        result = self._new()
        if kind == "ptr":
            self._emit(f"{result} = ptrtoint ptr {value} to i64")
        elif kind == "double":
            self._emit(f"{result} = bitcast double {value} to i64")
        elif kind in ("float", "half"):
            integer = "i32" if kind == "float" else "i16"
            bits = self._new()
            self._emit(f"{bits} = bitcast {kind} {value} to {integer}")
            self._emit(f"{result} = zext {integer} {bits} to i64")
        elif kind == "i64":
            self._emit(f"{result} = add i64 {value}, 0")
        else:
            self._emit(f"{result} = zext {kind} {value} to i64")
        return result

    def _define(self, result: str, kind: str, bits: str) -> None:
        """Emit the definition of ``result`` from 64 bits."""
        if kind == "ptr":
            self._emit(f"{result} = inttoptr i64 {bits} to ptr")
        elif kind in ("double", "i64"):
            self._emit(f"{result} = bitcast i64 {bits} to {kind}")
        elif kind in ("float", "half"):
            integer = "i32" if kind == "float" else "i16"
            narrow = self._new()
            self._emit(f"{narrow} = trunc i64 {bits} to {integer}")
            self._emit(f"{result} = bitcast {integer} {narrow} to {kind}")
        else:
            self._emit(f"{result} = trunc i64 {bits} to {kind}")

    def _load(self, line: str, result: str, kind: str, address: str, scope: int | None) -> None:
        """Emit a load, which is atomic if it has a scope."""
        if _is_aggregate(kind):
            self._load_parts(line, result, kind, address)
        elif scope is not None:
            site, operation = self._site("atomic", line), _OPERATIONS["load"] | scope
            self._define(result, kind, self._hook("emu_rmw", address, _size(kind), operation, 0, site))
        else:
            self._define(result, kind, self._hook("emu_load", address, _size(kind), self._site("load", line)))

    def _store(self, line: str, kind: str, value: str, address: str, scope: int | None) -> None:
        """Emit a store, which is atomic if it has a scope."""
        if _is_aggregate(kind):
            self._store_parts(line, kind, value, address)
            return
        bits = self._widen(kind, value)
        if scope is not None:
            operation = _OPERATIONS["store"] | scope
            self._hook("emu_rmw", address, _size(kind), operation, bits, self._site("atomic", line))
        else:
            self._hook("emu_store", address, _size(kind), bits, self._site("store", line))

    def _load_parts(self, line: str, result: str, kind: str, address: str) -> None:
        """Load a struct, array or vector one member at a time."""
        whole = "poison"
        parts = _parts(kind)
        for index, (offset, part) in enumerate(parts):
            value = self._new()
            self._load(line, value, part, self._offset(address, offset), None)
            named = result if index == len(parts) - 1 else self._new()
            if kind.startswith("<"):
                self._emit(f"{named} = insertelement {kind} {whole}, {part} {value}, i32 {index}")
            else:
                self._emit(f"{named} = insertvalue {kind} {whole}, {part} {value}, {index}")
            whole = named

    def _store_parts(self, line: str, kind: str, value: str, address: str) -> None:
        for index, (offset, part) in enumerate(_parts(kind)):
            element = self._new()
            if kind.startswith("<"):
                self._emit(f"{element} = extractelement {kind} {value}, i32 {index}")
            else:
                self._emit(f"{element} = extractvalue {kind} {value}, {index}")
            self._store(line, part, element, self._offset(address, offset), None)

    def _offset(self, address: str, offset: int) -> str:
        result = self._new()
        self._emit(f"{result} = add i64 {address}, {offset}")
        return result

    def _read_modify_write(self, line: str, result: str, parts: list[str], address: str, scope: int) -> None:
        operation = parts[0].split(" ", 1)[0]
        kind, value = typed_value(re.sub(r" (?:syncscope\(.*?\) )?\w+$", "", parts[1]))
        bits, size = self._widen(kind, value), _size(kind)
        if operation == "fsub":
            negative = self._new()
            self._emit(f"{negative} = fneg {kind} {value}")
            operation, bits = "fadd", self._widen(kind, negative)
        site = self._site("atomic", line)
        code = _OPERATIONS[operation] | scope
        self._define(result, kind, self._hook("emu_rmw", address, size, code, bits, site))

    def _compare_and_swap(self, line: str, result: str, parts: list[str], address: str, scope: int) -> None:
        kind, expected = typed_value(parts[1])
        _, desired = typed_value(re.sub(r" (?:syncscope\(.*?\) )?\w+ \w+$", "", parts[2]))
        before, after = self._widen(kind, expected), self._widen(kind, desired)
        old = self._hook("emu_cas", address, _size(kind) | scope, before, after, self._site("atomic", line))
        value, same, pair = self._new(), self._new(), self._new()
        self._define(value, kind, old)
        self._emit(f"{same} = icmp eq i64 {old}, {before}")
        self._emit(f"{pair} = insertvalue {{ {kind}, i1 }} poison, {kind} {value}, 0")
        self._emit(f"{result} = insertvalue {{ {kind}, i1 }} {pair}, i1 {same}, 1")


def _scope(access: _Access) -> int:
    """Return the bit that an atomic of block scope adds to the operation or size that it passes."""
    return 0 if access.level else layout.IN_BLOCK


def _pointer(text: str) -> str:
    """Return the pointer operand of an access without its attributes."""
    value = text.removeprefix("ptr ")
    if value.startswith(("%", "@")):
        match = re.match(rf"[%@]{NAME}", value)
        return match[0] if match else value
    return re.sub(r"(?<=\)) .*$", "", value)


def _is_aggregate(kind: str) -> bool:
    return kind[0] in "{[<"


def _parts(kind: str) -> list[tuple[int, str]]:
    if match := re.fullmatch(r"<(\d+) x (\w+)>", kind):
        size, _ = size_and_alignment(match[2])
        return [(index * size, match[2]) for index in range(int(match[1]))]
    return members(kind)


def _size(kind: str) -> int:
    size, _ = size_and_alignment(kind)
    if size not in (1, 2, 4, 8) or (kind[0] == "i" and kind != "i1" and int(kind[1:]) != 8 * size):
        raise ValueError(kind)
    return size
