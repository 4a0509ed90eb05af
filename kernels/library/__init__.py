"""What all kernels are made of: atomics, bits, warps, hashes, shared work, and how they are compiled."""
