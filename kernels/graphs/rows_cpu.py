"""Kernels that parse a text table of names on the CPU, without a copy of the fields.

They handle rows of one line without escaped quotes. Anything else, a fault included, makes them give up.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.graphs.strings_cpu import (
    BATCH,
    STATE,
    THREADS,
    finish_chunk,
    has_room,
    hash_bytes,
    insert,
    prefetch_record,
    prefetch_slot,
)
from gpu_pregel.kernels.library.atomics_cpu import load, store
from gpu_pregel.kernels.library.bits_cpu import popcount
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.memory_cpu import add_to_word, address_of, byte_at, number_at, word_at
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

PLAIN, END, RETURN, QUOTE, SEPARATOR = 0, 1, 2, 3, 4
"""Kinds of bytes; a table of 256 of them describes the format."""
SCRATCH = STATE + 7 * BATCH
"""Length of a row of ``scratch``."""
_BEGINS, _ENDS, _KEYS, _ROWS = STATE, STATE + 2 * BATCH, STATE + 4 * BATCH, STATE + 6 * BATCH
COMMENTS, ROWS, IRREGULAR = 0, 1, 2
_TAB, _FEED, _BLANK, _HASH, _PERCENT, _PLUS, _MINUS, _POINT, _ZERO, _NINE = 9, 10, 32, 35, 37, 43, 45, 46, 48, 57
_MOST_DIGITS = 15
"""float64 represents all integers with up to this number of digits."""
_INEXACT = 2.0**53
_FEEDS = np.uint64(0x0A0A0A0A0A0A0A0A)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)


@jit
def count_lines(work, text, counts):
    """Write the number of line feeds in each chunk to ``counts``."""
    first, last = claim(work)
    while first < last:
        count = 0
        place, end = address_of(text) + first, address_of(text) + last
        while place + 8 <= end:
            # Bytes that are zero get their uppermost bit set.
            word = word_at(place) ^ _FEEDS
            count += popcount(~(((word & _LOW) + _LOW) | word | _LOW))
            place += 8
        while place < end:
            count += byte_at(place) == _FEED
            place += 1
        counts[first // work[CHUNK]] = count
        first, last = claim(work)


@inline
def _end_of_field(place, kinds):
    """Return the place after the bytes of the field at ``place``, quotes included; -1 if it is not a simple field."""
    if byte_at(kinds + byte_at(place)) == QUOTE:
        place += 1
        kind = byte_at(kinds + byte_at(place))
        while kind != QUOTE:
            if kind == END or kind == RETURN:
                return np.int64(-1)
            place += 1
            kind = byte_at(kinds + byte_at(place))
        place += 1
    else:
        while byte_at(kinds + byte_at(place)) == PLAIN:
            place += 1
    kind = byte_at(kinds + byte_at(place))
    if kind == END or kind == SEPARATOR or (kind == RETURN and byte_at(place + 1) == _FEED):
        return place
    return np.int64(-1)


@inline
def _without_blanks(first, last, kinds):
    """Return the limits of a field without quotes and the blanks around it."""
    if first < last and byte_at(kinds + byte_at(first)) == QUOTE:
        first += 1
        last -= 1
    while first < last and (byte_at(first) == _BLANK or byte_at(first) == _TAB):
        first += 1
    while first < last and (byte_at(last - 1) == _BLANK or byte_at(last - 1) == _TAB):
        last -= 1
    return first, last


@inline
def _weight(first, last):
    """Return the number that a field holds; NaN if it is not a finite decimal number below 2^53."""
    place = first
    is_negative = place < last and byte_at(place) == _MINUS
    if is_negative or (place < last and byte_at(place) == _PLUS):
        place += 1
    digits = 0
    decimals = 0
    has_point = False
    mantissa = 0
    while place < last and digits <= _MOST_DIGITS:
        letter = byte_at(place)
        if _ZERO <= letter <= _NINE:
            mantissa = 10 * mantissa + (letter - _ZERO)
            digits += 1
            decimals += has_point
        elif letter == _POINT and not has_point:
            has_point = True
        else:
            break
        place += 1
    if place == last and 0 < digits <= _MOST_DIGITS:
        # Both are exact, so that the quotient is rounded once.
        power = 1.0
        for _ in range(decimals):
            power *= 10.0
        value = mantissa / power
        return -value if is_negative else value
    for place in range(first, last):
        letter = byte_at(place)
        # Digits, the signs, the point and the letter e.
        if not (_ZERO <= letter <= _NINE or letter in (_PLUS, _MINUS, _POINT, 69, 101)):
            return np.nan
    if first == last:
        return np.nan
    value, end = number_at(first)
    return value if end == last and abs(value) < _INEXACT else np.nan


@inline
def _skip_line(place, kinds, separator_is_tab, comments):
    """Return the place after the line if it is blank or a comment, otherwise ``place``; -1 if it is irregular."""
    start = place
    while byte_at(place) == _BLANK or byte_at(place) == _TAB:
        if byte_at(place) == _TAB and separator_is_tab:
            return np.int64(-1)
        place += 1
    letter = byte_at(place)
    if (letter == _HASH or letter == _PERCENT) and comments != ROWS:
        if comments == IRREGULAR:
            return np.int64(-1)
        while byte_at(place) != _FEED:
            if byte_at(kinds + byte_at(place)) == RETURN and byte_at(place + 1) != _FEED:
                return np.int64(-1)
            place += 1
        return place + 1
    if letter == _FEED:
        return place + 1
    if byte_at(kinds + letter) == RETURN and byte_at(place + 1) == _FEED:
        return place + 2
    if byte_at(kinds + letter) == QUOTE and place != start:
        return np.int64(-1)
    return start


@jit
def parse_rows(
    work, text, begin, lines, position, kinds, columns, table, arena, counters, scratch, src, dst, weights, faults
):
    """Write the codes of sources and destinations and the weights of the lines, until there is no room in the table.

    Parameters
    ----------
    text : uint8[b]
        Ends with a line feed.
    begin : int
        Where the claimed bytes begin.
    lines : int64[chunks]
        Number of line feeds before each chunk.
    position : int
        Number of lines before the text.
    kinds : uint8[256]
        The kind of each byte.
    columns : int64[5]
        The positions of source, destination and weight (or -1), the number of columns, and what lines are that begin
        with a comment mark: ``COMMENTS``, ``ROWS`` or ``IRREGULAR``.
    src, dst, weights : uint32[lines], uint32[lines], float64[lines]
        Lines that are blank or comments keep the code 0.
    faults : int64[1]
        Set to 1 if this kernel cannot handle a line.
    """
    letters, end, kinds_address = address_of(text), address_of(text) + len(text), address_of(kinds)
    slots, arena_address, counters_address = len(table), address_of(arena), address_of(counters)
    table_address = address_of(table)
    separator_is_tab = kinds[_TAB] == SEPARATOR
    me = add_to_word(counters_address + 8 * THREADS, 1)
    state = address_of(scratch) + 8 * me * scratch.shape[1]
    while has_room(counters_address, slots):
        first, last = claim(work)
        if first == last or load(faults, 0):
            break
        first += begin
        last += begin
        row = lines[first // work[CHUNK]]
        if first > 0 and text[first - 1] != _FEED:
            while text[first] != _FEED:
                first += 1
            first += 1
            row += 1
        place, stop = letters + first, letters + last
        while place < stop:
            size = 0
            while place < stop and size < BATCH:
                start = place
                place = _skip_line(start, kinds_address, separator_is_tab, columns[4])
                if place != start and place >= 0:
                    row += 1
                    continue
                column = 0
                weight_begin = start
                weight_end = start
                while place >= 0:
                    field = place
                    place = _end_of_field(field, kinds_address)
                    if column == columns[0]:
                        scratch[me, _BEGINS + 2 * size] = field
                        scratch[me, _ENDS + 2 * size] = place
                    elif column == columns[1]:
                        scratch[me, _BEGINS + 2 * size + 1] = field
                        scratch[me, _ENDS + 2 * size + 1] = place
                    elif column == columns[2]:
                        weight_begin = field
                        weight_end = place
                    column += 1
                    if place < 0 or byte_at(kinds_address + byte_at(place)) != SEPARATOR:
                        break
                    place += 1
                if place < 0 or column != columns[3]:
                    store(faults, 0, 1)
                    return
                place += 1 + (byte_at(place) != _FEED)
                for item in range(2 * size, 2 * size + 2):
                    field, field_end = _without_blanks(
                        scratch[me, _BEGINS + item], scratch[me, _ENDS + item], kinds_address
                    )
                    if field == field_end:
                        store(faults, 0, 1)
                        return
                    key = hash_bytes(field, field_end, end)
                    prefetch_slot(key, table_address, slots)
                    scratch[me, _BEGINS + item] = field
                    scratch[me, _ENDS + item] = field_end
                    scratch[me, _KEYS + item] = np.int64(key)
                if columns[2] >= 0:
                    weight_begin, weight_end = _without_blanks(weight_begin, weight_end, kinds_address)
                    weights[row] = _weight(weight_begin, weight_end)
                    if np.isnan(weights[row]):
                        store(faults, 0, 1)
                        return
                scratch[me, _ROWS + size] = row
                row += 1
                size += 1
            for item in range(2 * size):
                prefetch_record(np.uint64(scratch[me, _KEYS + item]), table_address, slots, arena_address)
            for item in range(2 * size):
                where = scratch[me, _ROWS + (item >> 1)]
                code = insert(
                    scratch[me, _BEGINS + item],
                    scratch[me, _ENDS + item],
                    end,
                    np.uint64(scratch[me, _KEYS + item]),
                    2 * (position + where) + (item & 1),
                    table_address,
                    slots,
                    arena_address,
                    counters_address,
                    state,
                )
                if item & 1:
                    dst[where] = code
                else:
                    src[where] = code
        finish_chunk(counters_address, state)
