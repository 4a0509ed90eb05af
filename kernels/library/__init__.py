"""Building blocks of kernels: atomics, bits, warps, hashes, shared work; decorators, fingerprints and the cache."""
