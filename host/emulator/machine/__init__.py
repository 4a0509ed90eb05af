"""The emulated machine: threads, warps, blocks, memory, and the faults it reports."""
