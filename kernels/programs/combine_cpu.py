"""Atomic combination of messages on the CPU, by compare-and-swap."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, load, store
from gpu_pregel.kernels.library.bits_cpu import bits_of_float, float_of_bits
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.programs.functions import Functions
from gpu_pregel.kernels.traverse.fields import make_cast


def make_combine_at(functions: Functions) -> Any:
    """``combine_at(inbox_bits, v, message)``: combine a message into v's inbox.

    The inbox of floats or bools is passed as unsigned integers of the same size.
    """
    if functions.takes_any:
        return _make_take_first(functions)
    combine, cast = functions.combine, make_cast(device, functions.message)
    kind = functions.message.dtypes[0].kind

    @device
    def combine_floats(bits, message):
        return bits_of_float(cast(combine(float_of_bits(bits), message)))

    @device
    def combine_bools(bits, message):
        return np.uint8(1) if cast(combine(bits != 0, message)) else np.uint8(0)

    @device
    def combine_integers(bits, message):
        return cast(combine(bits, message))

    combined = {"f": combine_floats, "b": combine_bools}.get(kind, combine_integers)

    def combine_at(inbox_bits, v, message):
        old = load(inbox_bits, v)
        while True:
            new = combined(old, message)
            if new == old or compare_and_swap(inbox_bits, v, old, new):
                return
            old = load(inbox_bits, v)

    return device(combine_at)


def _make_take_first(functions: Functions) -> Any:
    """``combine_at`` where all messages are equal: store the first one; racing threads store the same."""
    message, identity = functions.message.dtypes[0], functions.identity
    nothing = identity.view(f"u{message.itemsize}") if message.kind in "fb" else identity

    @device
    def bits_of_message(message):
        return bits_of_float(message)

    @device
    def unchanged(message):
        return message

    bits_of = bits_of_message if message.kind == "f" else unchanged

    def take_first(inbox_bits, v, message):
        if load(inbox_bits, v) == nothing:
            store(inbox_bits, v, bits_of(message))

    return device(take_first)
