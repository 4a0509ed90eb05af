"""After inlining and before optimisation: NVVM intrinsics become calls of the emulated machine.

Sites are numbered here: a function inlined twice gets two sites, and a barrier that LLVM duplicates keeps one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.compile import intrinsics
from gpu_pregel.host.emulator.compile.device_library import HOST
from gpu_pregel.host.emulator.compile.ir_text import NAME, closing, size_and_alignment, split, typed_value
from gpu_pregel.host.emulator.compile.locations import Locations
from gpu_pregel.host.emulator.compile.translate import CHECK, DYNAMIC_SHARED, SHARED
from gpu_pregel.host.emulator.machine.compiled_kernel import BLOCK_FENCE, Site

STATE = "%emu$state"
_CALL = re.compile(
    rf"\s*(?:(%{NAME}) = )?(?:(?:tail|musttail|notail) )?call (?:fast |nnan |contract )*"
    rf'(.*?)(?:@({NAME})|asm (.*?)("[^"]*"), "[^"]*")\('
)
_DEFINE = re.compile(rf"define .*?@({NAME})\(")
_DEBUG = re.compile(r", !dbg !\d+")
PURE = "memory(none) nounwind willreturn"
HOOKS = {
    "emu_load": 4,
    "emu_store": 5,
    "emu_rmw": 6,
    "emu_cas": 6,
    "emu_fence": 3,
    "emu_sync": 7,
    "emu_sreg": 2,
    "emu_shared": 2,
    "emu_check_division": 6,
    "emu_check_shift": 4,
    "emu_check_float": 5,
}
"""The machine's hooks and their numbers of parameters; all parameters and results are 64-bit integers."""
_CHECK_EFFECTS = "memory(inaccessiblemem: readwrite) nounwind"
_ATTRIBUTES = {
    "emu_sync": "nounwind convergent nomerge",
    "emu_fence": "nounwind convergent nomerge",
    "emu_shared": PURE,
    "emu_check_division": _CHECK_EFFECTS,
    "emu_check_shift": _CHECK_EFFECTS,
    "emu_check_float": _CHECK_EFFECTS,
}


def declarations(*, except_in: str = "") -> str:
    """Return declarations of all hooks except those that the text ``except_in`` already declares."""
    return "".join(
        f"declare i64 @{name}({', '.join(['i64'] * count)}) {_ATTRIBUTES.get(name, 'nounwind')}\n"
        for name, count in HOOKS.items()
        if f"declare i64 @{name}(" not in except_in
    )


class IntrinsicRewriter:
    """Rewrites the text of one linked and inlined module.

    ``dynamic_shared`` has the offset and the size of the dynamic array in shared memory.
    """

    def __init__(self, kernel: str, entry: str, fallback: tuple[str, int], dynamic_shared: tuple[int, int]) -> None:
        self.sites: list[Site] = []
        self.uses_grid_barrier = False
        self._kernel = kernel
        self._entry = entry
        self._fallback = fallback
        self._dynamic_offset, self._dynamic_size = dynamic_shared
        self._checks: set[str] = set()
        self._count = 0
        self._out: list[str] = []

    def run(self, text: str) -> str:
        """Return the module's text with calls of hooks in place of intrinsics."""
        lines = text.splitlines()
        self._locations = Locations(lines, self._kernel, self._fallback)
        self._defined = {match[1].strip('"') for line in lines if (match := _DEFINE.match(line))}
        inside = False
        for line in lines:
            if line.startswith("define "):
                inside = True
                self._out.append(self._header(line))
            elif line.startswith("}"):
                inside = False
                self._out.append(line)
            elif inside and " call " in line:
                self._instruction(line)
            elif (
                not line.startswith(("declare ", "; Function Attrs"))
                or " @llvm." in line
                or not self._is_replaced(line)
            ):
                self._out.append(line)
        self._out += [declarations(), *(_check_definition(name) for name in sorted(self._checks))]
        return "\n".join(self._out) + "\n"

    @staticmethod
    def _is_replaced(line: str) -> bool:
        """Whether a declaration names a function whose calls this class replaces."""
        return ("@emu." in line or "cudaCG" in line) and f"@{HOST}" not in line

    def _header(self, line: str) -> str:
        """Insert the machine's state as the first parameter of the kernel."""
        self._locations.start_function(line)
        match = _DEFINE.match(line)
        if match is None or match[1].strip('"') != self._entry:
            name = _plain_name(match[1] if match else line)
            raise self._recursion(line, name)
        begin, end = match.end(), closing(line, match.end() - 1)
        parameters = line[begin:end]
        comma = ", " if parameters else ""
        return f'{line[:begin]}i64 {STATE}{comma}{parameters}) nounwind noinline "no-builtins"{line[end + 1 :]}'

    def _recursion(self, line: str, name: str) -> EmulationError:
        return self._unsupported(line, f"function {name} is recursive")

    def _unsupported(self, line: str, problem: str) -> EmulationError:
        return self._locations.error(line, f"{problem}, which the emulated device does not support")

    def _instruction(self, line: str) -> None:
        match = _CALL.match(line)
        if match is None:
            raise self._unsupported(line, f"calls a function through a pointer ({line.strip()})")
        self._locations.of(line)
        name = match[3].strip('"') if match[3] else None
        end = closing(line, match.end() - 1)
        arguments = [typed_value(argument) for argument in split(line[match.end() : end])]
        debug = _DEBUG.search(line, end)
        call = _Call(line, match[1], arguments, debug[0] if debug else "")
        if name is None:
            self._assembly(call, match[5].strip('"'), match[2].strip())
        elif name.startswith(CHECK):
            self._check(call, name)
        elif name in self._defined:
            raise self._recursion(line, _plain_name(name))
        elif name.startswith(HOST):
            self._out.append(line)
        elif not name.startswith("llvm."):
            self._intrinsic(call, name)
        elif intrinsics.HOST_INTRINSICS.match(name):
            self._out.append(line)
        else:
            raise self._unsupported(line, f"uses {name}")

    def _new(self) -> str:
        self._count += 1
        return f"%emu$h{self._count}"

    def _site(self, kind: str, call: _Call) -> int:
        self.sites.append(Site(kind, *self._locations.of(call.line)))
        return len(self.sites) - 1

    def _emit(self, text: str, call: _Call) -> None:
        self._out.append(f"  {text}{call.debug}")

    def _hook(self, call: _Call, name: str, *arguments: str | int, attributes: str = "") -> str:
        result = self._new()
        joined = ", ".join(f"i64 {argument}" for argument in (STATE, *arguments))
        self._emit(f"{result} = call i64 @{name}({joined}){attributes}", call)
        return result

    def _widen(self, call: _Call, index: int) -> str:
        """Return an argument of a call, zero-extended to 64 bits."""
        kind, value = call.arguments[index]
        if value.lstrip("-").isdigit():
            return str(int(value) % (1 << int(kind[1:])))
        if value in ("true", "false"):
            return "1" if value == "true" else "0"
        if kind == "i64":
            return value
        result = self._new()
        self._emit(f"{result} = zext {kind} {value} to i64", call)
        return result

    def _constant(self, call: _Call, index: int) -> int:
        value = call.arguments[index][1]
        if not value.isdigit():
            raise self._locations.error(call.line, "the mode of a warp operation must be a constant")
        return int(value)

    def _narrow(self, call: _Call, bits: str, kind: str = "i32") -> None:
        """Emit the definition of the call's result from 64 bits."""
        if call.result is not None:
            self._emit(f"{call.result} = {'trunc' if kind != 'i64' else 'bitcast'} i64 {bits} to {kind}", call)

    def _pair(self, call: _Call, number: str, predicate: str) -> None:
        """Emit the definition of the call's result, a number and a predicate, from two 64-bit values."""
        if call.result is None:
            return
        narrow, truth, first = self._new(), self._new(), self._new()
        self._emit(f"{narrow} = trunc i64 {number} to i32", call)
        self._emit(f"{truth} = icmp ne i64 {predicate}, 0", call)
        self._emit(f"{first} = insertvalue {{ i32, i1 }} poison, i32 {narrow}, 0", call)
        self._emit(f"{call.result} = insertvalue {{ i32, i1 }} {first}, i1 {truth}, 1", call)

    def _register(self, call: _Call, code: int) -> None:
        pure = "" if code == intrinsics.ACTIVE_MASK else f" {PURE}"
        self._narrow(call, self._hook(call, "emu_sreg", code, attributes=pure))

    def _sync(self, call: _Call, kind: int, *operands: str | int) -> str:
        padded = (*operands, 0, 0, 0, 0)[:4]
        return self._hook(call, "emu_sync", kind, *padded, self._site("sync", call))

    def _intrinsic(self, call: _Call, name: str) -> None:
        if name in intrinsics.SPECIAL_REGISTERS:
            self._register(call, intrinsics.SPECIAL_REGISTERS[name])
        elif name in (SHARED, DYNAMIC_SHARED):
            if name == DYNAMIC_SHARED and not self._dynamic_size:
                raise self._locations.error(
                    call.line, "shared array without a size: declare its kernel's dynamic_shared"
                )
            address = self._hook(call, "emu_shared", self._widen(call, 0) if name == SHARED else self._dynamic_offset)
            self._emit(f"{call.result} = inttoptr i64 {address} to ptr", call)
        elif name in intrinsics.BARRIERS:
            kind = intrinsics.BARRIERS[name]
            predicate = self._widen(call, len(call.arguments) - 1) if kind != intrinsics.BARRIER else 0
            self._narrow(call, self._sync(call, kind, 0, predicate))
        elif name in intrinsics.FENCES:
            self._fence(call, intrinsics.FENCES[name])
        elif name == "cudaCGSynchronize":
            self.uses_grid_barrier = True
            self._sync(call, intrinsics.GRID_BARRIER)
            self._narrow(call, "0")
        else:
            self._warp_operation(call, name)

    def _fence(self, call: _Call, level: int) -> None:
        self._hook(call, "emu_fence", level, self._site("fence" if level else BLOCK_FENCE, call))

    def _warp_operation(self, call: _Call, name: str) -> None:
        operation = name.removeprefix(intrinsics.PREFIX)
        if operation == "bar.warp.sync":
            self._sync(call, intrinsics.WARP_BARRIER, self._widen(call, 0))
        elif operation == "vote.sync":
            kind = intrinsics.VOTES[self._constant(call, 1)]
            bits = self._sync(call, kind, self._widen(call, 0), self._widen(call, 2))
            self._pair(call, bits, bits)
        elif match := re.fullmatch(r"match\.(any|all)\.sync\.i(32|64)p?", operation):
            kind = intrinsics.MATCH_ANY if match[1] == "any" else intrinsics.MATCH_ALL
            bits = self._sync(call, kind, self._widen(call, 0), self._widen(call, 1), match[2])
            if match[1] == "any":
                self._narrow(call, bits)
            else:
                self._pair(call, bits, self._high(call, bits))
        elif operation == "shfl.sync.i32":
            kind = intrinsics.SHUFFLES[self._constant(call, 1)]
            bits = self._sync(call, kind, *(self._widen(call, index) for index in (0, 2, 3, 4)))
            self._pair(call, bits, self._high(call, bits))
        else:
            shown = name.replace(intrinsics.PREFIX, "llvm.nvvm.")
            raise self._unsupported(call.line, f"uses {shown}")

    def _high(self, call: _Call, bits: str) -> str:
        high = self._new()
        self._emit(f"{high} = lshr i64 {bits}, 32", call)
        return high

    def _assembly(self, call: _Call, text: str, kind: str) -> None:
        text = re.sub(r"\\([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), text)
        effect = intrinsics.parse_assembly(text)
        if effect is None:
            raise self._unsupported(call.line, f"uses the inline assembly {text!r}")
        if effect.kind == "register":
            self._register(call, effect.code)
        elif effect.kind == "dynamic size":
            self._narrow(call, str(self._dynamic_size))
        elif effect.kind == "fence":
            self._fence(call, effect.code)
        elif effect.kind == "load":
            # Volatile, so that LLVM neither removes nor duplicates the access.
            order = _order(kind, effect.code)
            self._emit(f"{call.result} = load{order[0]} volatile {kind}, ptr {call.arguments[0][1]}{order[1]}", call)
        elif effect.kind == "store":
            stored, value = call.arguments[1]
            order = _order(stored, effect.code)
            self._emit(f"store{order[0]} volatile {stored} {value}, ptr {call.arguments[0][1]}{order[1]}", call)

    def _check(self, call: _Call, name: str) -> None:
        checked = name.removeprefix(CHECK)
        self._checks.add(checked)
        arguments = ", ".join(f"{kind} {value}" for kind, value in call.arguments)
        self._emit(
            f'call void @"emu.checked.{checked}"(i64 {STATE}, {arguments}, i64 {self._site("check", call)})', call
        )


def _order(kind: str, code: int) -> tuple[str, str]:
    """Return the words of an access before and after its operands; empty for code 0, with block scope for code 2."""
    if code == 0:
        return "", ""
    scope = ' syncscope("block")' if code == 2 else ""
    return " atomic", f"{scope} monotonic, align {size_and_alignment(kind)[0]}"


def _plain_name(mangled: str) -> str:
    """Return the name of a Python function from its mangled name."""
    name, rest = mangled, mangled.strip('"').removeprefix("_ZN")
    while match := re.match(r"(\d+)", rest):
        end = match.end() + int(match[1])
        name, rest = rest[match.end() : end], rest[end:]
    return name


class _Call:
    """A parsed call: its line, the name of its result, its arguments and its debug location."""

    def __init__(self, line: str, result: str | None, arguments: list[tuple[str, str]], debug: str) -> None:
        self.line = line
        self.result = result
        self.arguments = arguments
        self.debug = debug


def _check_definition(name: str) -> str:
    """Return the definition of an inlined check, which calls the machine only if an operand is invalid."""
    what, kind = name.split(".")
    makers: dict[str, Callable[[str], tuple[str, str, str]]] = {
        "division": _division,
        "shift": _shift,
        "float": _float,
    }
    parameters, body, hook = makers[what](kind)
    return (
        f'define internal void @"emu.checked.{name}"(i64 %s, {parameters}, i64 %site) alwaysinline nounwind {{\n{body}'
        f'  br i1 %bad, label %fault, label %fine, !prof !{{!"branch_weights", i32 1, i32 100000}}\n'
        f"fault:\n{hook}  br label %fine\nfine:\n  ret void\n}}\n"
    )


def _extend(kind: str, name: str) -> str:
    if kind == "i64":
        return f"  %{name}.w = add i64 %{name}, 0\n"
    return f"  %{name}.w = {'zext' if int(kind[1:]) < 64 else 'trunc'} {kind} %{name} to i64\n"


def _division(kind: str) -> tuple[str, str, str]:
    width = int(kind[1:])
    body = (
        f"  %zero = icmp eq {kind} %b, 0\n  %least = icmp eq {kind} %a, {-(1 << (width - 1))}\n"
        f"  %minus = icmp eq {kind} %b, -1\n  %signed.t = icmp ne i64 %signed, 0\n"
        f"  %both = and i1 %least, %minus\n  %over = and i1 %both, %signed.t\n  %bad = or i1 %zero, %over\n"
    )
    hook = (
        _extend(kind, "a") + _extend(kind, "b") + f"  call i64 @emu_check_division(i64 %s, i64 %a.w, i64 %b.w, "
        f"i64 {width}, i64 %signed, i64 %site)\n"
    )
    return f"{kind} %a, {kind} %b, i64 %signed", body, hook


def _shift(kind: str) -> tuple[str, str, str]:
    width = int(kind[1:])
    hook = _extend(kind, "a") + f"  call i64 @emu_check_shift(i64 %s, i64 %a.w, i64 {width}, i64 %site)\n"
    return f"{kind} %a", f"  %bad = icmp uge {kind} %a, {width}\n", hook


def _float(kind: str) -> tuple[str, str, str]:
    """Accept values strictly between the integers next to the range, because conversion truncates towards zero."""
    widen = "  %d = fpext float %a to double\n" if kind == "float" else "  %d = fadd double %a, -0.0\n"
    body = widen + (
        # 2 ** bits, or half of it for signed integers, as a double constructed from its exponent.
        "  %top.bits = sub i64 %bits, %signed\n  %biased = add i64 %top.bits, 1023\n"
        "  %shifted = shl i64 %biased, 52\n  %top = bitcast i64 %shifted to double\n"
        "  %signed.t = icmp ne i64 %signed, 0\n  %minus.top = fneg double %top\n"
        "  %below = fsub double %minus.top, 1.0\n"
        "  %bottom = select i1 %signed.t, double %below, double -1.0\n"
        # For 64 bits the integer below the range is not a double: compare with the smallest integer itself.
        "  %equal = fcmp oeq double %bottom, %minus.top\n"
        "  %strict = fcmp ogt double %d, %bottom\n  %loose = fcmp oge double %d, %bottom\n"
        "  %over.bottom = select i1 %equal, i1 %loose, i1 %strict\n  %under.top = fcmp olt double %d, %top\n"
        "  %good = and i1 %over.bottom, %under.top\n  %bad = xor i1 %good, true\n"
    )
    hook = (
        "  %d.bits = bitcast double %d to i64\n"
        "  call i64 @emu_check_float(i64 %s, i64 %d.bits, i64 %bits, i64 %signed, i64 %site)\n"
    )
    return f"{kind} %a, i64 %bits, i64 %signed", body, hook
