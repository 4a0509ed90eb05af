"""The master's side: threads, devices, memory, and the building of CSR; later partitions, frontiers and supersteps.

Imports kernels, never the algorithms or the interface.
"""
