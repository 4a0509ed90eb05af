"""Kernels for the weights of a CSR that is built on CUDA: they follow the sorted slots of ``csr_cuda``.

Weights are given as unsigned integers of their bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.graphs.csr_cuda import thread_item
from gpu_pregel.kernels.library.atomics_cuda import store_relaxed
from gpu_pregel.kernels.library.compiler_cuda import types
from gpu_pregel.kernels.library.jit_cuda import device, kernel

NOT_NUMBERS, UNSORTED = 2, 3
"""Places in ``facts``: whether a weight is NaN, and whether the weights of parallel edges are unsorted."""
UNSIGNED, SIGNED, FLOAT = 0, 1, 2
"""Kinds of weights."""
_KEYS = types.uint64[::1]
_SLOTS = types.uint32[::1]


def _make_order(bits: int) -> Any:
    sign = np.uint64(1 << (bits - 1))
    every = np.uint64((1 << bits) - 1)

    @device
    def order(weight, kind):
        """Return an unsigned integer that is ordered as the weight with these bits; 0 and -0 are equal."""
        number = np.uint64(weight)
        if kind == np.uint32(UNSIGNED):
            return number
        if kind == np.uint32(FLOAT) and number == sign:
            return sign
        if kind == np.uint32(FLOAT) and number & sign != np.uint64(0):
            return number ^ every
        return number ^ sign

    return order


def _make_take_weights(word: Any, bits: int, infinity: int) -> Any:
    order = _make_order(bits)
    highest = np.uint64((1 << (bits - 1)) - 1)
    limit = np.uint64(infinity)

    @kernel(_KEYS, _SLOTS, word[::1], types.uint32, word[::1], types.uint64[::1])
    def take_weights(keys, slots, weight, kind, weights, facts):
        """Write the weight of every stored edge; note NaN, and parallel edges whose weights do not ascend."""
        e = thread_item()
        if e >= np.uint64(len(weights)):
            return
        given = np.uint64(len(weight))
        slot = np.uint64(slots[e])
        own = weight[slot if slot < given else np.uint64(slot - given)]
        weights[e] = own
        if kind == np.uint32(FLOAT) and np.uint64(own) & highest > limit:
            store_relaxed(facts, NOT_NUMBERS, np.uint64(1))
        if e > np.uint64(0) and keys[e - np.uint64(1)] == keys[e]:
            slot = np.uint64(slots[e - np.uint64(1)])
            before = weight[slot if slot < given else np.uint64(slot - given)]
            if order(before, kind) > order(own, kind):
                store_relaxed(facts, UNSORTED, np.uint64(1))

    return take_weights


take_weights_32 = _make_take_weights(types.uint32, 32, 0x7F800000)
take_weights_64 = _make_take_weights(types.uint64, 64, 0x7FF0000000000000)


def _make_order_weights(word: Any, bits: int) -> Any:
    order = _make_order(bits)

    @kernel(word[::1], types.uint32, _KEYS)
    def order_weights(weight, kind, keys):
        """Write a key that is ordered as the weight for every slot."""
        e = thread_item()
        given = np.uint64(len(weight))
        if e < np.uint64(len(keys)):
            keys[e] = order(weight[e if e < given else np.uint64(e - given)], kind)

    return order_weights


order_weights_32 = _make_order_weights(types.uint32, 32)
order_weights_64 = _make_order_weights(types.uint64, 64)
