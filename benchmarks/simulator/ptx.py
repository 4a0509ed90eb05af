"""Rewriting of PTX for GPGPU-Sim, whose front end reads PTX 7.8 and lacks or miscomputes some instructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from benchmarks.simulator.convergence import converging

VERSION = "7.8"

_ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
_SHARED = re.compile(r"^(?:\.visible )?(\.shared [^;]*?)(\w+)(\[\d+\];)$", re.MULTILINE)
_DROPPED_LINES = re.compile(r"^[ \t]*(?:\.loc|\.file|\.common|\.version|//)[^\n]*(?:\n|\Z)", re.MULTILINE)
_SECTION = re.compile(r"^\s*\.section[^{]*\{[^}]*\}\n?", re.MULTILINE)
_INSTRUCTION = re.compile(r"\s*(@!?%\w+)?\s*([a-z][\w.:]*)\s*(.*?);\s*$")
_INTEGER = re.compile(r"-?\d+|0[xX][0-9a-fA-F]+")
_ORDER_WORDS = {"relaxed", "acquire", "release", "acq_rel", "weak", "volatile", "gpu", "sys", "cta"}
_KNOWN = re.compile(
    "abs|activemask|add|and|atom|bar|bfi|bfind|bra|brev|clz|cvt|cvta|div|ex2|exit|fence|fma|ld|lg2|mad|max|membar|min|"
    "mov|mul|neg|not|or|popc|prmt|rcp|red|rem|ret|rsqrt|selp|setp|shfl|shl|shr|sqrt|st|sub|vote|xor"
)
_HARDWARE_ATOMICS = {
    *(f"{operation}.{kind}" for operation in ("and", "or", "xor", "cas", "exch") for kind in ("b32", "u32", "s32")),
    *(f"{operation}.{kind}" for operation in ("min", "max", "add") for kind in ("u32", "s32")),
    *("cas.b64", "exch.b64", "add.u64", "add.f32", "inc.u32", "dec.u32"),
}
"""Atomic operations that the simulator has; the others become loops of compare-and-swap."""


class UnsupportedInstructionError(Exception):
    """The simulator cannot run an instruction."""


def rewrite(ptx: str, entry: str) -> str:
    """Return PTX of one kernel in the dialect that the simulator reads, with the kernel renamed to ``entry``.

    Raises
    ------
    UnsupportedInstructionError
        The simulator cannot run an instruction of the kernel.
    """
    text = _SECTION.sub("", _DROPPED_LINES.sub("", ptx))
    names = _ENTRY.findall(text)
    if len(names) != 1:
        raise UnsupportedInstructionError(f"the PTX has {len(names)} entries instead of one")
    text = text.replace(names[0], entry)
    shared = [f"\t{kind}{name}{size}" for kind, name, size in _SHARED.findall(text)]
    head, brace, body = _SHARED.sub("", text).partition("\n{\n")
    lines = _Rewriter(entry, body).lines()
    # Only the repair needs the barriers of a warp, which do nothing in the simulator.
    lines = [line for line in converging(lines, f"x_{entry}_") if "bar.warp.sync" not in line]
    return f".version {VERSION}\n{head}{brace}" + "\n".join([*shared, *lines]) + "\n"


class _Rewriter:
    """Rewrites the instructions of one kernel's body."""

    def __init__(self, entry: str, body: str) -> None:
        self._entry = entry
        self._body = body
        self._registers: dict[str, int] = {}
        self._labels = 0
        self._rewrites: dict[str, Callable[[str, list[str]], list[str]]] = {
            "atom": self._atomic,
            "bfi": self._insert_bits,
            "brev": self._reverse_bits,
            "cvt": self._convert,
            "mul": self._multiply,
            "red": self._atomic,
            "xor": self._exclusive_or,
        }

    def lines(self) -> list[str]:
        """Return the lines of the body, preceded by the declarations of further registers."""
        lines = [new for line in self._body.splitlines() for new in self._line(line)]
        declared = [f"\t.reg .{kind} %x_{kind}_<{count}>;" for kind, count in self._registers.items()]
        return declared + lines

    def _line(self, line: str) -> Iterator[str]:
        match = _INSTRUCTION.match(line.split("//", 1)[0])
        if match is None or match[2].startswith("."):
            yield line
            return
        guard, opcode, text = match[1] or "", match[2], match[3]
        if opcode == "nanosleep.u32":
            return
        operands = [_operand(word, opcode) for word in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", text)]
        new = self._instruction(opcode, operands)
        if guard and len(new) > 1:
            # Expansions may contain labels, so that they are skipped as a whole.
            yield from self._skipped(guard, new)
        else:
            yield from (f"\t{guard} {one}" if guard else f"\t{one}" for one in new)

    def _skipped(self, guard: str, instructions: list[str]) -> Iterator[str]:
        label = self._label()
        opposite = guard.replace("@!", "@") if guard.startswith("@!") else guard.replace("@", "@!")
        yield from (f"\t{one}" for one in [f"{opposite} bra {label};", *instructions, f"{label}:"])

    def _instruction(self, opcode: str, operands: list[str]) -> list[str]:
        name = opcode.partition(".")[0]
        if name == "trap":
            return ["exit;"]
        if name in self._rewrites:
            return self._rewrites[name](opcode, operands)
        if _KNOWN.fullmatch(name) is None:
            raise UnsupportedInstructionError(f"{self._entry}: GPGPU-Sim cannot run {opcode}")
        if name in ("ld", "st"):
            opcode = _without_order(opcode)
        elif name in ("fence", "membar"):
            opcode = opcode if opcode == "membar.cta" else "membar.gl"
        elif opcode.startswith("bfind.shiftamt"):
            opcode = f"clz.b{opcode[-2:]}"
        elif name == "shfl":
            operands[0] = self._without_predicate(operands[0])
        return [_join(opcode, operands)]

    def _without_predicate(self, operand: str) -> str:
        register, _, predicate = operand.partition("|")
        if predicate and len(re.findall(rf"{predicate}\b", self._body)) > 1:
            raise UnsupportedInstructionError(f"{self._entry}: GPGPU-Sim miscomputes the predicate of a shuffle")
        return register

    def _register(self, kind: str) -> str:
        number = self._registers.get(kind, 0)
        self._registers[kind] = number + 1
        return f"%x_{kind}_{number}"

    def _label(self) -> str:
        self._labels += 1
        return f"$X_{self._entry}_{self._labels}"

    def _insert_bits(self, opcode: str, operands: list[str]) -> list[str]:
        """Insert bits into a 64-bit register; the simulator's instruction works on 32 bits."""
        if opcode != "bfi.b64":
            return [_join(opcode, operands)]
        result, source, base, start, length = operands
        if not (start.isdecimal() and length.isdecimal()):
            raise UnsupportedInstructionError(f"{self._entry}: GPGPU-Sim cannot run {opcode} at a variable position")
        if (start, length) == ("32", "32"):
            low, high = self._register("b32"), self._register("b32")
            return [f"cvt.u32.u64 {low}, {base};", f"cvt.u32.u64 {high}, {source};", _pack(result, low, high)]
        mask = ((1 << int(length)) - 1) << int(start)
        kept, moved = self._register("b64"), self._register("b64")
        return [
            f"shl.b64 {moved}, {source}, {start};",
            f"and.b64 {moved}, {moved}, {_wide(mask)};",
            f"and.b64 {kept}, {base}, {_wide(~mask)};",
            f"or.b64 {result}, {moved}, {kept};",
        ]

    def _reverse_bits(self, opcode: str, operands: list[str]) -> list[str]:
        """Reverse 64 bits; the simulator's instruction works on 32 bits."""
        if opcode != "brev.b64":
            return [_join(opcode, operands)]
        low, high = self._register("b32"), self._register("b32")
        return [
            f"mov.b64 {{{low}, {high}}}, {operands[1]};",
            f"brev.b32 {low}, {low};",
            f"brev.b32 {high}, {high};",
            _pack(operands[0], high, low),
        ]

    def _convert(self, opcode: str, operands: list[str]) -> list[str]:
        """Convert a 64-bit integer to a float by its halves; the simulator reads an uninitialised value."""
        match = re.fullmatch(r"cvt\.rn\.f(32|64)\.([us])64", opcode)
        if match is None:
            if re.fullmatch(r"cvt\.r[zn]i?\.[us]64\.f(32|64)", opcode):
                raise UnsupportedInstructionError(f"{self._entry}: GPGPU-Sim miscomputes {opcode}")
            return [_join(opcode, operands)]
        low, high = self._register("b32"), self._register("b32")
        small, large, double = (self._register("f64") for _ in range(3))
        # The sum of both halves is rounded once; a float32 is rounded twice, which differs beyond 2^53 at most.
        last = f"mov.f64 {operands[0]}, {double};" if match[1] == "64" else f"cvt.rn.f32.f64 {operands[0]}, {double};"
        return [
            f"mov.b64 {{{low}, {high}}}, {operands[1]};",
            f"cvt.rn.f64.u32 {small}, {low};",
            f"cvt.rn.f64.{match[2]}32 {large}, {high};",
            f"fma.rn.f64 {double}, {large}, 0d41F0000000000000, {small};",
            last,
        ]

    def _exclusive_or(self, opcode: str, operands: list[str]) -> list[str]:
        """Negate a predicate; the simulator takes the literal -1 as false."""
        if opcode == "xor.pred" and operands[-1] == "-1":
            return [_join("not.pred", operands[:-1])]
        return [_join(opcode, operands)]

    def _multiply(self, opcode: str, operands: list[str]) -> list[str]:
        """Return the upper half of a product of 64 bits; the simulator returns the lower half."""
        if opcode not in ("mul.hi.s64", "mul.hi.u64"):
            return [_join(opcode, operands)]
        result, *factors = operands
        a, b = self._register("b64"), self._register("b64")
        halves = [[self._register("b32"), self._register("b32")] for _ in factors]
        lines = [f"mov.b64 {copy}, {factor};" for copy, factor in zip((a, b), factors, strict=True)]
        lines += [f"mov.b64 {{{low}, {high}}}, {copy};" for copy, (low, high) in zip((a, b), halves, strict=True)]
        partial, middle, high, part = (self._register("b64") for _ in range(4))
        (a0, a1), (b0, b1) = halves
        lines += [f"mul.wide.u32 {partial}, {a0}, {b0};", f"shr.u64 {middle}, {partial}, 32;"]
        lines += [f"mul.wide.u32 {high}, {a1}, {b1};"]
        for one, other in ((a0, b1), (a1, b0)):
            lines += [f"mul.wide.u32 {partial}, {one}, {other};", f"shr.u64 {part}, {partial}, 32;"]
            lines += [f"add.s64 {high}, {high}, {part};", f"and.b64 {part}, {partial}, {_wide((1 << 32) - 1)};"]
            lines += [f"add.s64 {middle}, {middle}, {part};"]
        lines += [f"shr.u64 {middle}, {middle}, 32;", f"add.s64 {high}, {high}, {middle};"]
        for one, other in ((a, b), (b, a)) if opcode == "mul.hi.s64" else ():
            lines += [f"shr.s64 {part}, {one}, 63;", f"and.b64 {part}, {part}, {other};"]
            lines += [f"sub.s64 {high}, {high}, {part};"]
        return [*lines, f"mov.b64 {result}, {high};"]

    def _atomic(self, opcode: str, operands: list[str]) -> list[str]:
        """Return an atomic operation, as a loop of compare-and-swap if the simulator lacks it."""
        words = [word for word in opcode.split(".")[1:] if word not in _ORDER_WORDS and "::" not in word]
        space = [word for word in words if word in ("global", "shared")]
        operation, kind = words[-2:]
        wide = kind.endswith("64")
        if opcode.startswith("red"):
            operands = [self._register("b64" if wide else "b32" if kind != "f32" else "f32"), *operands]
        if kind == "u64" and operation in ("cas", "exch"):
            kind = "b64"
        if f"{operation}.{kind}" in _HARDWARE_ATOMICS:
            return [_join(".".join(["atom", *space, operation, kind]), operands)]
        result, place, value = operands
        before, after, found = (self._register("b64" if wide else "b32") for _ in range(3))
        differs, again, done = self._register("pred"), self._label(), self._label()
        bits, compared = ("b64", "s64") if wide else ("b32", "s32")
        where = "".join(f".{one}" for one in space)
        return [
            f"ld{where}.{'u64' if wide else 'u32'} {found}, {place};",
            f"{again}:",
            f"mov.{bits} {before}, {found};",
            *self._combined(operation, kind, after, before, value),
            # A value that stays the same, as most do in minima and maxima, is not written.
            f"setp.eq.{compared} {differs}, {after}, {before};",
            f"@{differs} bra {done};",
            f"atom{where}.cas.{bits} {found}, {place}, {before}, {after};",
            f"setp.ne.{compared} {differs}, {found}, {before};",
            f"@{differs} bra {again};",
            f"{done}:",
            f"mov.{bits} {result}, {found};",
        ]

    def _combined(self, operation: str, kind: str, after: str, before: str, value: str) -> list[str]:
        if operation in ("add", "min", "max") and kind[0] == "f":
            one, other = self._register(kind), self._register(kind)
            moves = [f"mov.b{kind[1:]} {one}, {before};", f"mov.b{kind[1:]} {other}, {value};"]
            return [*moves, f"{operation}.{kind} {one}, {one}, {other};", f"mov.b{kind[1:]} {after}, {one};"]
        if operation in ("add", "min", "max", "and", "or", "xor"):
            kind = {"add": "s64", "min": kind, "max": kind}.get(operation, "b64") if kind.endswith("64") else kind
            return [f"{operation}.{kind} {after}, {before}, {value};"]
        raise UnsupportedInstructionError(f"{self._entry}: GPGPU-Sim cannot run atom.{operation}.{kind}")


def _without_order(opcode: str) -> str:
    """Remove memory order, scope and eviction priority; ordered loads read from the L2 cache."""
    words = opcode.split(".")
    kept = [word for word in words if word not in (*_ORDER_WORDS, "nc") and "::" not in word]
    if words[0] == "ld" and {"relaxed", "acquire", "volatile"} & set(words) and "shared" not in words:
        kept.insert(1 + ("global" in kept), "cg")
    return ".".join(kept)


def _operand(word: str, opcode: str) -> str:
    """Return an operand with an integer as the simulator reads it: with ``atoi``, or as the bits of a double."""
    if _INTEGER.fullmatch(word) is None:
        return word
    number = int(word, 0)
    if -(1 << 31) <= number < 1 << 31:
        return str(number)
    if opcode.endswith("64"):
        return _wide(number)
    return str(number - (1 << 32))


def _wide(number: int) -> str:
    """Return a 64-bit integer as the bits of a double, unless it has 32 bits."""
    number &= (1 << 64) - 1
    signed = number - (1 << 64) if number >> 63 else number
    return str(signed) if -(1 << 31) <= signed < 1 << 31 else f"0d{number:016X}"


def _pack(result: str, low: str, high: str) -> str:
    return f"mov.b64 {result}, {{{low}, {high}}};"


def _join(opcode: str, operands: list[str]) -> str:
    return f"{opcode} {', '.join(operands)};" if operands else f"{opcode};"
