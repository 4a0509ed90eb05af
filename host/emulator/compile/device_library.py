"""LLVM IR definitions of the functions that NVIDIA links into kernels: libdevice, and atomics that need a loop.

Functions with an exactly rounded result return it here too; others (exponentials, trigonometry) use the host's math
library and may differ from the GPU in the last one or two places.
"""

from __future__ import annotations

import ctypes
import functools
import re

_INTRINSIC_1 = ("ceil", "floor", "fabs", "sqrt", "trunc", "rint", "nearbyint", "round")
_HOST_1 = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp10", "exp2",
    "expm1", "j0", "j1", "lgamma", "log", "log10", "log1p", "log2", "logb", "sin", "sinh", "tan", "tanh", "tgamma",
    "y0", "y1",
)  # fmt: skip
_HOST_2 = ("atan2", "fdim", "fmod", "hypot", "nextafter", "pow", "remainder")
_HOST_OTHER = {
    "ldexp": ("number", ("number", "i32")),
    "scalbn": ("number", ("number", "i32")),
    "frexp": ("number", ("number", "ptr")),
    "modf": ("number", ("number", "ptr")),
    "sincos": ("void", ("number", "ptr", "ptr")),
    "jn": ("number", ("i32", "number")),
    "yn": ("number", ("i32", "number")),
    "ilogb": ("i32", ("number",)),
}
"""Result and parameter types of the other functions in the host's math library."""
_INTRINSIC_2 = {"copysign": "copysign", "fmax": "maximumnum", "fmin": "minimumnum"}
_ROUND = {"rn": "roundeven", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_INTEGER_2 = {
    "min": "smin.i32", "max": "smax.i32", "umin": "umin.i32", "umax": "umax.i32",
    "llmin": "smin.i64", "llmax": "smax.i64", "ullmin": "umin.i64", "ullmax": "umax.i64",
}  # fmt: skip
_HIGH = {"mulhi": ("sext", 32), "umulhi": ("zext", 32), "mul64hi": ("sext", 64), "umul64hi": ("zext", 64)}
_BITS = {
    "double_as_longlong": ("double", "i64"), "longlong_as_double": ("i64", "double"),
    "float_as_int": ("float", "i32"), "int_as_float": ("i32", "float"),
}  # fmt: skip
_COUNTS = {"popc": ("ctpop", 32), "popcll": ("ctpop", 64), "clz": ("ctlz", 32), "clzll": ("ctlz", 64)}
_SUFFIX = {"double": "f64", "float": "f32"}
_INT = {"double": "i64", "float": "i32"}
_NUMBERS = {"int": ("i32", "s"), "uint": ("i32", "u"), "ll": ("i64", "s"), "ull": ("i64", "u")}
_CLASSES = {
    "finitef": ("float", 504), "isfinited": ("double", 504), "isinff": ("float", 516), "isinfd": ("double", 516),
    "isnanf": ("float", 3), "isnand": ("double", 3),
}  # fmt: skip


def definition(name: str) -> str | None:
    """Return the LLVM IR of a function with declarations of its callees, or None if it is not supported."""
    if name.startswith("__nv_"):
        return _libdevice(name)
    if name == "cudaCGGetIntrinsicHandle":
        return _define("i64", name, ["i32"], "ret i64 1")
    if name.startswith(("___numba_atomic_", "emu.nvvm.atomic.load.")):
        return _atomic(name)
    return None


@functools.cache
def _math_library() -> ctypes.CDLL:
    return ctypes.CDLL("libm.so.6")


def host_address(name: str) -> int | None:
    """Return the address of a function in the host's math library."""
    return ctypes.cast(getattr(_math_library(), name), ctypes.c_void_p).value


CALLED_BY_LLVM = tuple(
    f"{name}{suffix}"
    for name in ("fmod", "fma", "ceil", "floor", "trunc", "rint", "nearbyint", "round", "roundeven")
    for suffix in ("", "f")
)
"""Functions that LLVM may call for an instruction that the processor lacks."""


def _define(result: str, name: str, parameters: list[str], body: str) -> str:
    names = ", ".join(f"{kind} %{letter}" for kind, letter in zip(parameters, "abcd", strict=False))
    return f'define weak_odr {result} @"{name}"({names}) alwaysinline nounwind {{\n{body}\n}}\n'


HOST = "emu.host."
"""Prefix of the host's functions, so that LLVM does not recognise and replace them."""
_HOST_EFFECTS = "memory(none) nounwind willreturn"


def _host(stem: str, kind: str) -> str:
    return f"{HOST}{stem}{'f' if kind == 'float' else ''}"


def _forward(name: str, result: str, callee: str, parameters: list[str]) -> str:
    arguments = ", ".join(f"{kind} %{letter}" for kind, letter in zip(parameters, "abcd", strict=False))
    returned = "ret void" if result == "void" else f"ret {result} %r"
    call = f'{"" if result == "void" else "%r = "}call {result} @"{callee}"({arguments})'
    effects = "" if "ptr" in parameters or not callee.startswith(HOST) else f" {_HOST_EFFECTS}"
    declared = f'declare {result} @"{callee}"({", ".join(parameters)}){effects}\n'
    return _define(result, name, parameters, f"  {call}\n  {returned}") + declared


def _libdevice(name: str) -> str | None:
    base = name.removeprefix("__nv_").removeprefix("fast_")
    for kind, stem in (("float", base.removesuffix("f")), ("double", base)):
        if kind == "float" and stem == base:
            continue
        if text := _number_function(name, stem, kind):
            return text
    return (
        _integer_function(name, base)
        or _bit_function(name, base)
        or _conversion(name, base)
        or _rounded_arithmetic(name, base)
    )


def _number_function(name: str, stem: str, kind: str) -> str | None:
    """Return a floating-point function; ``stem`` is its name without the suffix f."""
    suffix = _SUFFIX[kind]
    if stem in _INTRINSIC_1:
        return _forward(name, kind, f"llvm.{stem}.{suffix}", [kind])
    if stem in _INTRINSIC_2:
        return _forward(name, kind, f"llvm.{_INTRINSIC_2[stem]}.{suffix}", [kind, kind])
    if stem == "fma":
        return _forward(name, kind, f"llvm.fma.{suffix}", [kind] * 3)
    if stem in _HOST_1 or stem in _HOST_2:
        return _forward(name, kind, _host(stem, kind), [kind] * (1 if stem in _HOST_1 else 2))
    if stem in _HOST_OTHER:
        result, parameters = _HOST_OTHER[stem]
        kinds = [kind if one == "number" else one for one in parameters]
        callee = _host("ldexp" if stem == "scalbn" else stem, kind)
        return _forward(name, kind if result == "number" else result, callee, kinds)
    if stem in ("llrint", "llround"):
        return _to_integer(name, kind, "i64", "s", {"llrint": "roundeven", "llround": "round"}[stem])
    return _composite_function(name, stem, kind)


def _composite_function(name: str, stem: str, kind: str) -> str | None:
    """Return a floating-point function that consists of several instructions."""
    suffix = _SUFFIX[kind]
    if stem == "fdivide":
        return _define(kind, name, [kind, kind], f"  %r = fdiv {kind} %a, %b\n  ret {kind} %r")
    if stem == "powi":
        callee = _host("pow", kind)
        body = f'  %f = sitofp i32 %b to {kind}\n  %r = call {kind} @"{callee}"({kind} %a, {kind} %f)\n  ret {kind} %r'
        declared = f'declare {kind} @"{callee}"({kind}, {kind}) {_HOST_EFFECTS}\n'
        return _define(kind, name, [kind, "i32"], body) + declared
    if stem in ("rsqrt", "rcbrt"):
        callee = f"llvm.sqrt.{suffix}" if stem == "rsqrt" else _host("cbrt", kind)
        effects = "" if stem == "rsqrt" else f" {_HOST_EFFECTS}"
        body = f'  %s = call {kind} @"{callee}"({kind} %a)\n  %r = fdiv {kind} 1.0, %s\n  ret {kind} %r'
        return _define(kind, name, [kind], body) + f'declare {kind} @"{callee}"({kind}){effects}\n'
    if stem == "saturate":
        body = (
            f"  %l = call {kind} @llvm.maximumnum.{suffix}({kind} %a, {kind} 0.0)\n"
            f"  %r = call {kind} @llvm.minimumnum.{suffix}({kind} %l, {kind} 1.0)\n  ret {kind} %r"
        )
        names = (f"llvm.maximumnum.{suffix}", f"llvm.minimumnum.{suffix}")
        return _define(kind, name, [kind], body) + "".join(f"declare {kind} @{one}({kind}, {kind})\n" for one in names)
    return None


def _integer_function(name: str, base: str) -> str | None:
    if base in _INTEGER_2:
        kind = _INTEGER_2[base][-3:]
        return _forward(name, kind, f"llvm.{_INTEGER_2[base]}", [kind, kind])
    if base in ("abs", "llabs"):
        kind = "i32" if base == "abs" else "i64"
        body = f"  %r = call {kind} @llvm.abs.{kind}({kind} %a, i1 false)\n  ret {kind} %r"
        return _define(kind, name, [kind], body) + f"declare {kind} @llvm.abs.{kind}({kind}, i1)\n"
    if base in _HIGH:
        extend, width = _HIGH[base]
        kind, wide = f"i{width}", f"i{2 * width}"
        body = (
            f"  %x = {extend} {kind} %a to {wide}\n  %y = {extend} {kind} %b to {wide}\n  %p = mul {wide} %x, %y\n"
            f"  %h = lshr {wide} %p, {width}\n  %r = trunc {wide} %h to {kind}\n  ret {kind} %r"
        )
        return _define(kind, name, [kind, kind], body)
    return None


def _bit_function(name: str, base: str) -> str | None:
    if base in ("brev", "brevll"):
        kind = "i32" if base == "brev" else "i64"
        return _forward(name, kind, f"llvm.bitreverse.{kind}", [kind])
    if base in ("ffs", "ffsll"):
        kind = "i32" if base == "ffs" else "i64"
        narrow = "  %w = add i32 %c, 1" if kind == "i32" else "  %t = trunc i64 %c to i32\n  %w = add i32 %t, 1"
        body = (
            f"  %c = call {kind} @llvm.cttz.{kind}({kind} %a, i1 false)\n{narrow}\n"
            f"  %z = icmp eq {kind} %a, 0\n  %r = select i1 %z, i32 0, i32 %w\n  ret i32 %r"
        )
        return _define("i32", name, [kind], body) + f"declare {kind} @llvm.cttz.{kind}({kind}, i1)\n"
    if base in _COUNTS:
        intrinsic, width = _COUNTS[base]
        kind, flag = f"i{width}", ", i1 false" if intrinsic == "ctlz" else ""
        narrow = "  %r = trunc i64 %c to i32\n  ret i32 %r" if width == 64 else "  ret i32 %c"
        body = f"  %c = call {kind} @llvm.{intrinsic}.{kind}({kind} %a{flag})\n{narrow}"
        declared = f"declare {kind} @llvm.{intrinsic}.{kind}({kind}{', i1' if flag else ''})\n"
        return _define("i32", name, [kind], body) + declared
    return None


def _conversion(name: str, base: str) -> str | None:
    if base in _BITS:
        source, target = _BITS[base]
        return _define(target, name, [source], f"  %r = bitcast {source} %a to {target}\n  ret {target} %r")
    if base in _CLASSES:
        kind, mask = _CLASSES[base]
        intrinsic = f"llvm.is.fpclass.{_SUFFIX[kind]}"
        body = f"  %c = call i1 @{intrinsic}({kind} %a, i32 {mask})\n  %r = zext i1 %c to i32\n  ret i32 %r"
        return _define("i32", name, [kind], body) + f"declare i1 @{intrinsic}({kind}, i32)\n"
    if match := re.fullmatch(r"(double|float)2(u?int|u?ll)_(rn|rz|rd|ru)", base):
        integer, sign = _NUMBERS[match[2]]
        return _to_integer(name, match[1], integer, sign, _ROUND[match[3]])
    if match := re.fullmatch(r"(u?int|u?ll)2(double|float)_rn", base):
        integer, sign = _NUMBERS[match[1]]
        body = f"  %r = {sign}itofp {integer} %a to {match[2]}\n  ret {match[2]} %r"
        return _define(match[2], name, [integer], body)
    if base == "double2float_rn":
        return _define("float", name, ["double"], "  %r = fptrunc double %a to float\n  ret float %r")
    if base in ("double2hiint", "double2loint"):
        shift = 32 if base == "double2hiint" else 0
        body = f"  %i = bitcast double %a to i64\n  %s = lshr i64 %i, {shift}\n  %r = trunc i64 %s to i32\n  ret i32 %r"
        return _define("i32", name, ["double"], body)
    if base == "hiloint2double":
        body = (
            "  %h = zext i32 %a to i64\n  %s = shl i64 %h, 32\n  %l = zext i32 %b to i64\n  %i = or i64 %s, %l\n"
            "  %r = bitcast i64 %i to double\n  ret double %r"
        )
        return _define("double", name, ["i32", "i32"], body)
    if base in ("signbitd", "signbitf"):
        kind = "double" if base == "signbitd" else "float"
        integer = _INT[kind]
        body = f"  %i = bitcast {kind} %a to {integer}\n  %n = icmp slt {integer} %i, 0\n  %r = zext i1 %n to i32"
        return _define("i32", name, [kind], f"{body}\n  ret i32 %r")
    return None


def _to_integer(name: str, kind: str, integer: str, sign: str, rounding: str) -> str:
    """Return a saturating conversion to an integer."""
    suffix = _SUFFIX[kind]
    convert = f"llvm.fpto{sign}i.sat.{integer}.{suffix}"
    body = (
        f"  %w = call {kind} @llvm.{rounding}.{suffix}({kind} %a)\n"
        f"  %r = call {integer} @{convert}({kind} %w)\n  ret {integer} %r"
    )
    declared = f"declare {kind} @llvm.{rounding}.{suffix}({kind})\ndeclare {integer} @{convert}({kind})\n"
    return _define(integer, name, [kind], body) + declared


def _rounded_arithmetic(name: str, base: str) -> str | None:
    """Return an arithmetic function that rounds to nearest; other rounding modes are not supported."""
    match = re.fullmatch(r"([df])(add|sub|mul|div|rcp|sqrt)_rn|(f)(rsqrt)_rn|(fmaf?)_rn", base)
    if match is None:
        return None
    if match[5]:
        kind = "float" if match[5] == "fmaf" else "double"
        return _forward(name, kind, f"llvm.fma.{_SUFFIX[kind]}", [kind] * 3)
    kind = "double" if (match[1] or match[3]) == "d" else "float"
    operation = match[2] or match[4]
    if operation == "sqrt":
        return _forward(name, kind, f"llvm.sqrt.{_SUFFIX[kind]}", [kind])
    if operation == "rsqrt":
        return _number_function(name, "rsqrt", kind)
    if operation == "rcp":
        return _define(kind, name, [kind], f"  %r = fdiv {kind} 1.0, %a\n  ret {kind} %r")
    return _define(kind, name, [kind, kind], f"  %r = f{operation} {kind} %a, %b\n  ret {kind} %r")


def _atomic(name: str) -> str | None:
    if match := re.fullmatch(r"emu\.nvvm\.atomic\.load\.add\.f(32|64)(\.\w+)?", name):
        return _add(name, "float" if match[1] == "32" else "double")
    if name == "___numba_atomic_double_add":
        return _add(name, "double")
    if match := re.fullmatch(r"emu\.nvvm\.atomic\.load\.(inc|dec)\.32(\.\w+)?|___numba_atomic_u64_(inc|dec)", name):
        return _wrapping(name, "i32" if match[1] else "i64", match[1] or match[3])
    if match := re.fullmatch(r"___numba_atomic_(float|double)_sub", name):
        return _loop(name, match[1], f"  %new.f = fsub {match[1]} %old.f, %b", "")
    if match := re.fullmatch(r"___numba_atomic_(float|double)_(nan)?(min|max)", name):
        return _extreme(name, match[1], bool(match[2]), match[3])
    return None


def _add(name: str, kind: str) -> str:
    body = f"  %r = atomicrmw fadd ptr %a, {kind} %b monotonic\n  ret {kind} %r"
    return _define(kind, name, ["ptr", kind], body)


def _wrapping(name: str, kind: str, operation: str) -> str:
    if operation == "inc":
        step = (
            f"  %small = icmp ult {kind} %old, %b\n  %more = add {kind} %old, 1\n"
            f"  %new = select i1 %small, {kind} %more, {kind} 0"
        )
    else:
        step = (
            f"  %less = add {kind} %old, -1\n  %small = icmp ult {kind} %less, %b\n"
            f"  %new = select i1 %small, {kind} %less, {kind} %b"
        )
    return _swap_until(name, kind, kind, step, f"  ret {kind} %old")


def _loop(name: str, kind: str, step: str, condition: str) -> str:
    integer = _INT[kind]
    before = f"  %old.f = bitcast {integer} %old to {kind}\n"
    after = f"\n  %new = bitcast {kind} %new.f to {integer}{condition}"
    result = f"  %r = bitcast {integer} %old to {kind}\n  ret {kind} %r"
    return _swap_until(name, kind, integer, before + step + after, result)


def _extreme(name: str, kind: str, ignores_nan: bool, which: str) -> str:
    """Return an atomic min or max that treats NaN as Numba-CUDA does: variants that ignore NaN never store one."""
    order = {("max", False): "olt", ("min", False): "ogt", ("max", True): "ult", ("min", True): "ugt"}
    test = f"  %better = fcmp {order[which, ignores_nan]} {kind} %old.f, %b\n"
    if ignores_nan:
        test += f"  %number = fcmp ord {kind} %b, %b\n  %takes = and i1 %better, %number\n"
    else:
        test += "  %takes = and i1 %better, true\n"
    return _loop(name, kind, f"{test}  %new.f = select i1 %takes, {kind} %b, {kind} %old.f", "")


def _swap_until(name: str, kind: str, integer: str, step: str, result: str) -> str:
    body = (
        f"  %first = load atomic {integer}, ptr %a monotonic, align {int(integer[1:]) // 8}\n  br label %attempt\n"
        f"attempt:\n  %old = phi {integer} [ %first, %0 ], [ %seen, %attempt ]\n{step}\n"
        f"  %pair = cmpxchg ptr %a, {integer} %old, {integer} %new monotonic monotonic\n"
        f"  %seen = extractvalue {{ {integer}, i1 }} %pair, 0\n  %same = extractvalue {{ {integer}, i1 }} %pair, 1\n"
        f"  br i1 %same, label %done, label %attempt\ndone:\n{result}"
    )
    return _define(kind, name, ["ptr", kind], body)
