"""After optimisation: every load, store and atomic operation that is not on a thread's own stack becomes a call.

What the optimiser removed, NVIDIA's would have removed too; what is left is counted and checked, one site each.
"""

from __future__ import annotations

import re

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.compile import intrinsics
from gpu_pregel.host.emulator.compile.intrinsic_calls import STATE
from gpu_pregel.host.emulator.compile.ir_text import NAME, layout, members, split, typed_value
from gpu_pregel.host.emulator.compile.locations import Locations, Site

_OPERATIONS = {
    name: code
    for code, name in enumerate(("xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "fadd"))
}
_MEMORY = re.compile(rf"\s*(?:(%{NAME}) = )?(load|store|atomicrmw|cmpxchg|fence)\b (.*)$")
_POINTER = re.compile(
    rf"\s*(%{NAME}) = (?:(alloca) .*|(getelementptr) .*?, (ptr [^,]+)(?:,.*)?|(phi) ptr (.*)"
    rf"|(select) i1 [^,]+, (ptr .+), (ptr .+)|(bitcast|freeze) (ptr .*?)(?: to ptr)?)$"
)
_SUFFIX = re.compile(r",? !\w.*$")
_DEBUG = re.compile(r", !dbg !\d+")
_ORDERINGS = frozenset({"unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"})
_CONSTANT = re.compile(rf"(@{NAME}) = .*?\bconstant (\[.*?\](?= [^x])|\{{.*?\}}|\w+)")
_END_OF_BLOCK = re.compile(r"\s*(ret|br|switch|unreachable)\b")
_CASE = re.compile(rf"\s*i\d+ -?\d+, label %({NAME})")
_LABEL = re.compile(rf"({NAME}):")
_LOCAL_CHECK = """
define internal void @"emu.local"(i64 %s, i64 %offset, i64 %last, i64 %size, i64 %site, i1 %writes) noinline {
  %bad = icmp ugt i64 %offset, %last
  br i1 %bad, label %fault, label %fine
fault:
  ; Address 0 is in no array, which is what the runtime will say.
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


class Instrumenting:
    """Rewrites the text of one optimised module, adding to the sites of its kernel."""

    def __init__(self, kernel: str, sites: list[Site], fallback: tuple[str, int]) -> None:
        self.checks_local = False
        self._arrays: dict[str, int] = {}
        self._kernel = kernel
        self._sites = sites
        self._fallback = fallback
        self._out: list[str] = []
        self._count = 0

    @property
    def local_bytes(self) -> int:
        """Bytes of a thread's local arrays."""
        return sum(self._arrays.values())

    def run(self, text: str) -> str:
        """Return the module's text with hooks in place of memory accesses."""
        lines = text.splitlines()
        self._locations = Locations(lines, self._fallback)
        constants = [match for line in lines if line[:1] == "@" and (match := _CONSTANT.match(line))]
        self._constants = {match[1]: _bytes(match[2]) for match in constants}
        begin = next((index for index, line in enumerate(lines) if line.startswith("define ")), len(lines))
        self._out += lines[:begin]
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
        self._own = self._stack_pointers(lines)
        self._refuse_endless_loops(lines)
        for line in lines:
            match = _MEMORY.match(line)
            if match is not None:
                self._access(line, match[1], match[2], match[3])
                continue
            if " call " in line and re.search(r"@llvm\.mem(?:cpy|move|set)\b", line):
                self._block(line)
            self._out.append(line)

    def _stack_pointers(self, lines: list[str]) -> set[str]:
        """Names of the pointers into the thread's own stack."""
        sources: dict[str, list[str]] = {}
        for line in lines:
            match = _POINTER.match(_SUFFIX.sub("", line)) if " = " in line else None
            if match is None:
                continue
            name = match[1]
            if match[2]:
                sources[name] = []
                self._arrays[name] = _bytes(split(line.split(" alloca ", 1)[1])[0])
            elif match[3]:
                sources[name] = [match[4]]
            elif match[5]:
                sources[name] = [f"ptr {value}" for value in re.findall(rf"\[ ([^,]+), %{NAME} \]", match[6])]
            elif match[7]:
                sources[name] = [match[8], match[9]]
            else:
                sources[name] = [match[11]]
        # All whose sources are all on the stack; a loop of phis is so unless something else comes in.
        self._sources = {name: [typed_value(one)[1] for one in found] for name, found in sources.items()}
        known = sources.keys() | self._constants.keys()
        while bad := {name for name in known & sources.keys() if not known.issuperset(self._sources[name])}:
            known -= bad
        return known & sources.keys()

    def _array_of(self, pointer: str) -> str | None:
        """The local or constant array that a pointer is derived from; None if it may be one of several."""
        seen = {pointer}
        waiting = [pointer]
        found = set()
        while waiting:
            name = waiting.pop()
            found |= {name} & (self._arrays.keys() | self._constants.keys())
            waiting += [one for one in self._sources.get(name, []) if one not in seen]
            seen.update(waiting)
        return found.pop() if len(found) == 1 else None

    def _size_of(self, array: str) -> int:
        return self._arrays.get(array) or self._constants.get(array, 0)

    def _refuse_endless_loops(self, lines: list[str]) -> None:
        """From every block an end of the kernel can be reached, or who comes there stays for good."""
        label = ""
        first: dict[str, str] = {}
        comes_from: dict[str, list[str]] = {}
        for line in lines[1:]:
            if match := _LABEL.match(line):
                label = match[1]
            elif match := _END_OF_BLOCK.match(line):
                followers = ["end"] if match[1] in ("ret", "unreachable") else re.findall(rf"label %({NAME})", line)
                for follower in followers:
                    comes_from.setdefault(follower, []).append(label)
            elif match := _CASE.match(line):
                comes_from.setdefault(match[1], []).append(label)
            if line.strip() and not _LABEL.match(line):
                first.setdefault(label, line)
        waiting, ending = ["end"], set()
        while waiting:
            block = waiting.pop()
            if block not in ending:
                ending.add(block)
                waiting += comes_from.get(block, [])
        for block, line in first.items():
            if block not in ending:
                raise self._refusal(line, "a loop that never ends: what it waits for is read before it only")

    def _refusal(self, line: str, problem: str) -> EmulationError:
        file, number = self._locations.of(line)
        return EmulationError(f"kernel {self._kernel}, {file.rsplit('/', 1)[-1]} line {number}: {problem}")

    def _is_own(self, pointer: str) -> bool:
        if pointer.startswith("%"):
            return pointer in self._own
        if pointer.startswith("@"):
            return pointer in self._constants
        match = re.search(rf"@{NAME}", pointer)
        return "getelementptr" in pointer and match is not None and match[0] in self._constants

    def _block(self, line: str) -> None:
        """Copies and fills of the stack are left to the host."""
        begin = line.index("(")
        arguments = [typed_value(one) for one in split(line[begin + 1 : line.rindex(")")])]
        pointers = arguments[:1] if "@llvm.memset" in line else arguments[:2]
        if not all(self._is_own(value) for _, value in pointers):
            raise self._refusal(line, "copies or fills memory in one piece, which the emulated device does not know")

    def _local(self, line: str, operation: str, parts: list[str], pointer: str) -> None:
        """Check that an access to a local or constant array is inside; in which of several it is is not known."""
        if pointer in self._arrays or operation not in ("load", "store") or not pointer.startswith("%"):
            return
        array = self._array_of(pointer)
        kind = parts[0] if operation == "load" else typed_value(parts[0])[0]
        if array is None or _is_aggregate(kind):
            return
        self.checks_local = True
        offset = self._new()
        address, base = self._address(pointer), self._address(array)
        self._emit(f"{offset} = sub i64 {address}, {base}")
        size, site = _size(kind), self._site("check", line)
        self._emit(
            f'call void @"emu.local"(i64 {STATE}, i64 {offset}, i64 {self._size_of(array) - size}, '
            f"i64 {size}, i64 {site}, i1 {str(operation == 'store').lower()})"
        )

    def _access(self, line: str, result: str | None, operation: str, rest: str) -> None:
        self._locations.of(line)
        debug = _DEBUG.search(rest)
        self._debug = debug[0] if debug else ""
        rest = _SUFFIX.sub("", rest)
        if operation == "fence":
            self._fence(line, rest)
            return
        parts = split(re.sub(r"^(?:weak |volatile |atomic )+", "", rest))
        scope = re.search(r'syncscope\("([^"]*)"\)', rest)
        ordering = [word for word in re.split(r"[\s,]+", rest) if word in _ORDERINGS]
        self._level = intrinsics.FENCE_SCOPES.get(scope[1], 2) if scope else 2
        if operation in ("load", "store"):
            pointer = _pointer(parts[1])
        else:
            pointer = _pointer(re.sub(r"^\w+ (?=ptr)", "", parts[0]))
        if self._is_own(pointer):
            self._local(line, operation, parts, pointer)
            self._out.append(line)
            return
        self._order_before(line, ordering)
        address = self._address(pointer)
        try:
            if operation == "load":
                self._load(line, result or "", parts[0], address, atomic=bool(ordering))
            elif operation == "store":
                kind, value = typed_value(parts[0])
                self._store(line, kind, value, address, atomic=bool(ordering))
            elif operation == "atomicrmw":
                self._read_modify_write(line, result or self._new(), parts, address)
            else:
                self._compare_and_swap(line, result or self._new(), parts, address)
        except (ValueError, KeyError):
            raise self._refusal(line, f"accesses memory in a way not known here: {line.strip()}") from None
        self._order_after(line, ordering)

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

    def _fence(self, line: str, rest: str) -> None:
        scope = re.search(r'syncscope\("([^"]*)"\)', rest)
        if scope is None or scope[1] != "singlethread":
            self._hook("emu_fence", intrinsics.FENCE_SCOPES.get(scope[1], 2) if scope else 2, self._site("fence", line))

    def _order_before(self, line: str, ordering: list[str]) -> None:
        if {"release", "acq_rel", "seq_cst"} & set(ordering):
            self._hook("emu_fence", self._level, self._site("fence", line))

    def _order_after(self, line: str, ordering: list[str]) -> None:
        if {"acquire", "acq_rel", "seq_cst"} & set(ordering):
            self._hook("emu_fence", self._level, self._site("fence", line))

    def _address(self, pointer: str) -> str:
        result = self._new()
        self._emit(f"{result} = ptrtoint ptr {pointer} to i64")
        return result

    def _wide(self, kind: str, value: str) -> str:
        """The bits of a value, as 64 of them."""
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
        """Define ``result`` from 64 bits."""
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

    def _load(self, line: str, result: str, kind: str, address: str, *, atomic: bool) -> None:
        if _is_aggregate(kind):
            self._load_parts(line, result, kind, address)
        elif atomic:
            # An atomic operation that changes nothing: the runtime knows no atomic load.
            site = self._site("atomic", line)
            self._define(result, kind, self._hook("emu_rmw", address, _size(kind), _OPERATIONS["or"], 0, site))
        else:
            self._define(result, kind, self._hook("emu_load", address, _size(kind), self._site("load", line)))

    def _store(self, line: str, kind: str, value: str, address: str, *, atomic: bool) -> None:
        if _is_aggregate(kind):
            self._store_parts(line, kind, value, address)
            return
        bits = self._wide(kind, value)
        if atomic:
            self._hook("emu_rmw", address, _size(kind), _OPERATIONS["xchg"], bits, self._site("atomic", line))
        else:
            self._hook("emu_store", address, _size(kind), bits, self._site("store", line))

    def _load_parts(self, line: str, result: str, kind: str, address: str) -> None:
        """A struct, array or vector is loaded part by part."""
        whole = "poison"
        parts = _parts(kind)
        for index, (offset, part) in enumerate(parts):
            value = self._new()
            self._load(line, value, part, self._offset(address, offset), atomic=False)
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
            self._store(line, part, element, self._offset(address, offset), atomic=False)

    def _offset(self, address: str, offset: int) -> str:
        result = self._new()
        self._emit(f"{result} = add i64 {address}, {offset}")
        return result

    def _read_modify_write(self, line: str, result: str, parts: list[str], address: str) -> None:
        operation = parts[0].split(" ", 1)[0]
        kind, value = typed_value(re.sub(r" (?:syncscope\(.*?\) )?\w+$", "", parts[1]))
        bits, size = self._wide(kind, value), _size(kind)
        if operation == "fsub":
            negative = self._new()
            self._emit(f"{negative} = fneg {kind} {value}")
            operation, bits = "fadd", self._wide(kind, negative)
        site = self._site("atomic", line)
        self._define(result, kind, self._hook("emu_rmw", address, size, _OPERATIONS[operation], bits, site))

    def _compare_and_swap(self, line: str, result: str, parts: list[str], address: str) -> None:
        kind, expected = typed_value(parts[1])
        _, desired = typed_value(re.sub(r" (?:syncscope\(.*?\) )?\w+ \w+$", "", parts[2]))
        before, after = self._wide(kind, expected), self._wide(kind, desired)
        old = self._hook("emu_cas", address, _size(kind), before, after, self._site("atomic", line))
        value, same, pair = self._new(), self._new(), self._new()
        self._define(value, kind, old)
        self._emit(f"{same} = icmp eq i64 {old}, {before}")
        self._emit(f"{pair} = insertvalue {{ {kind}, i1 }} poison, {kind} {value}, 0")
        self._emit(f"{result} = insertvalue {{ {kind}, i1 }} {pair}, i1 {same}, 1")


def _bytes(kind: str) -> int:
    """Size of a type; of one that is not known, more than any array has."""
    try:
        return layout(kind)[0]
    except ValueError:
        return 1 << 40


def _pointer(text: str) -> str:
    """The pointer operand of an access, without what follows it."""
    value = text.removeprefix("ptr ")
    if value.startswith(("%", "@")):
        match = re.match(rf"[%@]{NAME}", value)
        return match[0] if match else value
    return re.sub(r"(?<=\)) .*$", "", value)


def _is_aggregate(kind: str) -> bool:
    return kind[0] in "{[<"


def _parts(kind: str) -> list[tuple[int, str]]:
    if match := re.fullmatch(r"<(\d+) x (\w+)>", kind):
        size, _ = layout(match[2])
        return [(index * size, match[2]) for index in range(int(match[1]))]
    return members(kind)


def _size(kind: str) -> int:
    size, _ = layout(kind)
    if size not in (1, 2, 4, 8) or (kind[0] == "i" and kind != "i1" and int(kind[1:]) != 8 * size):
        raise ValueError(kind)
    return size
