"""Reads NetworkX's dicts of dicts into arrays, while the GIL is held: see ``python_objects_cpu``.

Other threads may change the graph between two calls, and each call checks what it reads. All objects are addresses.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit_holding_gil
from gpu_pregel.kernels.library.python_objects_cpu import (
    clear_error,
    dict_next,
    dict_value,
    float_value,
    has_error,
    int_value,
    list_item,
    type_of,
)

_ADDRESS_BITS, _ALIGNMENT_BITS, _PLACE_BITS = 40, 4, 27
"""Of an address, 36 bits are kept, beside 27 bits for a place."""
_NEAR_BITS, _DIGIT_BITS = 6, 12
"""Objects within a kilobyte are not ordered, nor those 16 gigabytes from one another."""
_DIGITS = 1 << _DIGIT_BITS
_EXACT = 1 << 53
"""Integers up to this size are exact as floats."""


@jit_holding_gil
def read_int_neighbors(rows, begin, end, e, kinds, low, table, neighbors):
    """Read the keys of some of the rows, a list of dicts, into ``neighbors`` from ``e`` on; return where they end.

    The keys are integers, and ``table`` has their numbers from ``low`` on. The result is -1 if a key is anything else.
    ``kinds`` has the types dict and int.
    """
    for u in range(begin, end):
        row = list_item(rows, u)
        if type_of(row) != kinds[0]:
            return -1
        position, key, _ = dict_next(row, 0)
        while position >= 0:
            if e == len(neighbors) or type_of(key) != kinds[1]:
                return -1
            value, exceeds = int_value(key)
            if exceeds or value < low or value >= low + len(table):
                return -1
            neighbors[e] = table[value - low]
            e += 1
            position, key, _ = dict_next(row, position)
    return e


@jit_holding_gil
def read_str_neighbors(rows, begin, end, e, kinds, numbers, neighbors):
    """Do the same for keys that are strings, of which the dict ``numbers`` has the numbers.

    ``kinds`` has the types dict and str.
    """
    for u in range(begin, end):
        row = list_item(rows, u)
        if type_of(row) != kinds[0]:
            return -1
        position, key, _ = dict_next(row, 0)
        while position >= 0:
            if e == len(neighbors) or type_of(key) != kinds[1]:
                return -1
            number = dict_value(numbers, key)
            if number == 0:
                return -1
            neighbors[e] = int_value(number)[0]
            e += 1
            position, key, _ = dict_next(row, position)
    return e


@jit_holding_gil
def read_attribute(rows, begin, end, kinds, is_int, name, default, keys, spare, values):
    """Read an attribute of the edges in some of the rows into ``values``, float64; return their number.

    The result is -1 if there are more than the arrays have room for, or a value is not of the type that ``kinds`` has
    after dict: int, of up to 2^53, or float. Edges without the attribute, a string, have ``default``.

    The dicts of attributes, their keys and values are read in the order of their addresses: they lie where the edges
    were added, far from one another in the order of the rows. ``keys`` and ``spare``, int64, are scratch memory.
    """
    count, base = _edge_data(rows, begin, end, kinds, keys)
    if count < 0:
        return -1
    _order_by_digit(keys[:count], _PLACE_BITS + _NEAR_BITS, spare)
    _order_by_digit(spare[:count], _PLACE_BITS + _NEAR_BITS + _DIGIT_BITS, keys)
    for i in range(count):
        data = base + (keys[i] >> _PLACE_BITS << _ALIGNMENT_BITS)
        if type_of(data) != kinds[0]:
            return -1
        value = dict_value(data, name)
        if value == 0:
            if has_error():
                clear_error()
                return -1
            value = default
        if type_of(value) != kinds[1]:
            return -1
        place = keys[i] & ((1 << _PLACE_BITS) - 1)
        if is_int:
            integer, exceeds = int_value(value)
            if exceeds or integer > _EXACT or integer < -_EXACT:
                return -1
            values[place] = integer
        else:
            values[place] = float_value(value)
    return count


@inline
def _edge_data(rows, begin, end, kinds, keys):
    """Write a key for each value of some of the rows; return their number, or -1, and the base of addresses.

    A key consists of the object's address from the base on, and of its place.
    """
    count, base = 0, 0
    for u in range(begin, end):
        row = list_item(rows, u)
        if type_of(row) != kinds[0]:
            return -1, base
        position, _, data = dict_next(row, 0)
        while position >= 0:
            if count == 0:
                base = data >> _ADDRESS_BITS << _ADDRESS_BITS
            offset = data - base
            # Objects of one size are in memory of its own, which is of less than a terabyte.
            is_regular = offset >> _ADDRESS_BITS == 0 and offset & ((1 << _ALIGNMENT_BITS) - 1) == 0
            if count == len(keys) or count >> _PLACE_BITS or not is_regular:
                return -1, base
            keys[count] = offset >> _ALIGNMENT_BITS << _PLACE_BITS | count
            count += 1
            position, _, data = dict_next(row, position)
    return count, base


@inline
def _order_by_digit(keys, shift, ordered):
    """Write the keys in the order of one digit, and else in the order that they have."""
    ends = np.zeros(_DIGITS + 1, np.int64)
    for i in range(len(keys)):
        ends[(keys[i] >> shift & (_DIGITS - 1)) + 1] += 1
    for digit in range(_DIGITS):
        ends[digit + 1] += ends[digit]
    for i in range(len(keys)):
        digit = keys[i] >> shift & (_DIGITS - 1)
        ordered[ends[digit]] = keys[i]
        ends[digit] += 1
