"""Random numbers of the class ``random.Random``, drawn from its state: MT19937.

Makoto Matsumoto, Takuji Nishimura: Mersenne Twister, ACM TOMACS 8 (1), 1998. A state is the 624 words and the position
of the next one, uint32[625], as ``Random.getstate`` returns them.
"""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline

_WORDS = 624
_SHIFT = 397


@inline
def next_word(state):
    """Draw 32 bits."""
    if state[_WORDS] >= _WORDS:
        for i in range(_WORDS):
            mixed = (state[i] & 0x80000000) | (state[(i + 1) % _WORDS] & 0x7FFFFFFF)
            word = state[(i + _SHIFT) % _WORDS] ^ (mixed >> 1)
            state[i] = word ^ 0x9908B0DF if mixed & 1 else word
        state[_WORDS] = 0
    bits = state[state[_WORDS]] | 0
    state[_WORDS] += 1
    bits ^= bits >> 11
    bits ^= (bits << 7) & 0x9D2C5680
    bits ^= (bits << 15) & 0xEFC60000
    return bits ^ (bits >> 18)


@inline
def next_below(state, bound):
    """Draw an integer below a bound of at most 2^32 - 1, as ``Random.choice`` and ``Random.shuffle`` do."""
    width = 0
    while bound >> width:
        width += 1
    drawn = next_word(state) >> (32 - width)
    while drawn >= bound:
        drawn = next_word(state) >> (32 - width)
    return drawn


@inline
def next_float(state):
    """Draw a float from [0, 1), as ``Random.random`` does."""
    high = next_word(state) >> 5
    low = next_word(state) >> 6
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0)
