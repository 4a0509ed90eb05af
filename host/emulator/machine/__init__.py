"""The emulated machine: threads, warps, blocks, memory and fault detection; it does not import the compiler."""
