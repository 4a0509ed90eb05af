"""Reads and writes of Python's objects in kernels that hold the GIL, through Python's C API.

Objects are addresses, int64, as ``id`` returns them. Who calls a kernel keeps them alive. Only objects of the types
that are named here may be passed: no code of users is then called, so that nothing is raised or changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_DOUBLE = ir.DoubleType()


def _function(builder: Any, name: str, result: Any, *parameters: Any) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, parameters), name)


def _call(name: str, result: Any, *parameters: Any) -> Callable[..., Any]:
    """Return the code that calls a function of the C API."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        called = builder.call(_function(builder, name, result, *parameters), arguments)
        return context.get_dummy_value() if isinstance(result, ir.VoidType) else called

    return codegen


@intrinsic
def type_of(typingctx: Any, thing: Any) -> Any:
    """Return the type of an object."""
    return types.int64(types.int64), _call("numba_py_type", _WORD, _WORD)


@intrinsic
def list_item(typingctx: Any, items: Any, index: Any) -> Any:
    """Return an item of a list, or 0 if the list is shorter."""
    return types.int64(types.int64, types.int64), _call("PyList_GetItem", _WORD, _WORD, _WORD)


@intrinsic
def dict_size(typingctx: Any, mapping: Any) -> Any:
    """Return the number of items of a dict."""
    return types.int64(types.int64), _call("PyDict_Size", _WORD, _WORD)


@intrinsic
def dict_value(typingctx: Any, mapping: Any, key: Any) -> Any:
    """Return the value of a key, of type str or int, in a dict, or 0.

    A key of another type and the same hash is asked whether it is equal; ``has_error`` tells if it raises an error.
    """
    return types.int64(types.int64, types.int64), _call("PyDict_GetItemWithError", _WORD, _WORD, _WORD)


@intrinsic
def dict_insert(typingctx: Any, mapping: Any, key: Any, value: Any) -> Any:
    """Set the value of a key of a type that Python itself hashes and compares; return 0, or -1 without memory."""
    return types.int32(types.int64, types.int64, types.int64), _call("PyDict_SetItem", _INT, _WORD, _WORD, _WORD)


@intrinsic
def dict_next(typingctx: Any, mapping: Any, position: Any) -> Any:
    """Return the position after the item at a position of a dict, its key and its value; -1 first after the last item.

    Positions start from 0, and are not indices.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        slots = [cgutils.alloca_once(builder, _WORD) for _ in range(3)]
        builder.store(arguments[1], slots[0])
        pointers = [slot.type for slot in slots]
        found = builder.call(_function(builder, "PyDict_Next", _INT, _WORD, *pointers), [arguments[0], *slots])
        after, key, value = (builder.load(slot) for slot in slots)
        after = builder.select(builder.icmp_signed("!=", found, _INT(0)), after, _WORD(-1))
        return context.make_tuple(builder, signature.return_type, (after, key, value))

    return types.UniTuple(types.int64, 3)(types.int64, types.int64), codegen


@intrinsic
def int_value(typingctx: Any, number: Any) -> Any:
    """Return the value of an object of type int, and whether it exceeds 64 bits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        overflow = cgutils.alloca_once(builder, _INT)
        function = _function(builder, "PyLong_AsLongLongAndOverflow", _WORD, _WORD, overflow.type)
        value = builder.call(function, [arguments[0], overflow])
        exceeds = builder.icmp_signed("!=", builder.load(overflow), _INT(0))
        return context.make_tuple(builder, signature.return_type, (value, builder.zext(exceeds, ir.IntType(8))))

    return types.Tuple((types.int64, types.uint8))(types.int64), codegen


@intrinsic
def float_value(typingctx: Any, number: Any) -> Any:
    """Return the value of an object of type float."""
    return types.float64(types.int64), _call("PyFloat_AsDouble", _DOUBLE, _WORD)


@intrinsic
def new_number(typingctx: Any, value: Any) -> Any:
    """Return a new reference to an int or a float with a value, or 0 without memory."""
    if isinstance(value, types.Float):
        return types.int64(types.float64), _call("PyFloat_FromDouble", _WORD, _DOUBLE)
    return types.int64(types.int64), _call("PyLong_FromLongLong", _WORD, _WORD)


@intrinsic
def release(typingctx: Any, thing: Any) -> Any:
    """Give up a reference to an object."""
    return types.void(types.int64), _call("Py_DecRef", ir.VoidType(), _WORD)


@intrinsic
def has_error(typingctx: Any) -> Any:
    """Return whether the call before has set an error."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.icmp_signed("!=", builder.call(_function(builder, "PyErr_Occurred", _WORD), []), _WORD(0))

    return types.boolean(), codegen


@intrinsic
def clear_error(typingctx: Any) -> Any:
    """Forget the error that a failed call has set; its caller reports it in its own way."""
    return types.void(), _call("PyErr_Clear", ir.VoidType())
