"""The NVVM intrinsics and inline assembly that the emulated device supports; all others are refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "emu.nvvm."
"""Replaces the prefix ``llvm.nvvm.`` so that LLVM does not interpret these intrinsics itself."""

SPECIAL_REGISTERS = {
    f"{PREFIX}read.ptx.sreg.{name}": code
    for code, name in enumerate(
        [f"{group}.{axis}" for group in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"] + ["laneid", "warpsize"]
    )
}
ACTIVE_MASK = 14
_ASSEMBLY_REGISTERS = {
    "activemask.b32 $0;": ACTIVE_MASK,
    "mov.u32 $0, %laneid;": 12,
    **{f"mov.u32 $0, %lanemask_{name};": 15 + index for index, name in enumerate(("eq", "le", "lt", "ge", "gt"))},
}

BARRIER, BARRIER_COUNT, BARRIER_AND, BARRIER_OR, WARP_BARRIER = range(5)
VOTES = {0: 5, 1: 6, 2: 7, 3: 8}
"""Kind of vote by the intrinsic's mode: all, any, uniform, ballot."""
MATCH_ANY, MATCH_ALL = 9, 10
SHUFFLES = {0: 11, 1: 12, 2: 13, 3: 14}
"""Kind of shuffle by the intrinsic's mode: index, up, down, butterfly."""
GRID_BARRIER = 15

BARRIERS = {
    f"{PREFIX}barrier0": BARRIER,
    f"{PREFIX}barrier0.popc": BARRIER_COUNT,
    f"{PREFIX}barrier0.and": BARRIER_AND,
    f"{PREFIX}barrier0.or": BARRIER_OR,
    f"{PREFIX}barrier.cta.sync.aligned.all": BARRIER,
    f"{PREFIX}barrier.cta.red.popc.aligned.all": BARRIER_COUNT,
    f"{PREFIX}barrier.cta.red.and.aligned.all": BARRIER_AND,
    f"{PREFIX}barrier.cta.red.or.aligned.all": BARRIER_OR,
}
FENCES = {f"{PREFIX}membar.{level}": code for code, level in enumerate(("cta", "gl", "sys"))}
FENCE_SCOPES = {"block": 0, "workgroup": 0, "device": 1, "agent": 1}
"""Fence level by the scope of an LLVM fence; a fence without a scope is system-wide."""
_ASSEMBLY_FENCES = re.compile(r"(?:membar\.(cta|gl|sys)|fence\.(?:acq_rel|sc)\.(cta|gpu|sys));?")
_FENCE_LEVELS = {"cta": 0, "gl": 1, "gpu": 1, "sys": 2}

_ASSEMBLY_LOAD = re.compile(
    r"ld(?:\.volatile|\.relaxed\.(?:cta|gpu|sys)|\.weak)?(?:\.global)?(?:\.(?:ca|cg|cs|lu|cv|nc))?"
    r"(?:\.L1::(?:evict_first|evict_last|no_allocate))?\.[busf](8|16|32|64) "
    r"\$0, ?\[\$1\];"
)
_ASSEMBLY_STORE = re.compile(
    r"st(?:\.volatile|\.relaxed\.(?:cta|gpu|sys)|\.weak)?(?:\.global)?(?:\.(?:cg|cs|wb|wt))?\.[busf](8|16|32|64) "
    r"\[\$0\], ?\$1;"
)
_ASSEMBLY_NOTHING = frozenset({"nanosleep.u32 $0;"})

HOST_INTRINSICS = re.compile(
    r"llvm\.(?:ctpop|ctlz|cttz|bitreverse|bswap|fshl|fshr|abs|smin|smax|umin|umax|scmp|ucmp"
    r"|[su](?:add|sub|mul)\.with\.overflow|[su](?:add|sub|shl)\.sat|fpto[su]i\.sat"
    r"|sqrt|fabs|fma|fmuladd|floor|ceil|trunc|rint|nearbyint|round|roundeven|copysign|canonicalize|is\.fpclass"
    r"|minnum|maxnum|minimum|maximum|minimumnum|maximumnum"
    r"|assume|expect|lifetime|mem(?:cpy|move|set)|experimental\.noalias\.scope\.decl|dbg)\b"
)
"""LLVM intrinsics that have the same meaning on every target."""


@dataclass(frozen=True)
class Assembly:
    """The effect of an inline assembly string.

    Attributes
    ----------
    kind : {"register", "dynamic size", "fence", "load", "store", "nothing"}
    code : int
        Code of the special register, or level of the fence; for a load or store, 0 if it is not atomic, 1 if it is, and
        2 if its scope is the block.
    """

    kind: str
    code: int = 0


def parse_assembly(text: str) -> Assembly | None:
    """Return the effect of inline assembly, or None if it is not supported."""
    text = re.sub(r"\s+", " ", text).strip()
    if text in _ASSEMBLY_REGISTERS:
        return Assembly("register", _ASSEMBLY_REGISTERS[text])
    if text == "mov.u32 $0, %dynamic_smem_size;":
        return Assembly("dynamic size")
    if match := _ASSEMBLY_FENCES.fullmatch(text):
        return Assembly("fence", _FENCE_LEVELS[match[1] or match[2]])
    for kind, pattern in (("load", _ASSEMBLY_LOAD), ("store", _ASSEMBLY_STORE)):
        if match := pattern.fullmatch(text):
            is_atomic = match[1] in ("32", "64") and (".relaxed" in text or ".volatile" in text)
            return Assembly(kind, 0 if not is_atomic else 2 if ".relaxed.cta" in text else 1)
    return Assembly("nothing") if text in _ASSEMBLY_NOTHING else None
