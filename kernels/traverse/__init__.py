"""Kernels of the traversal engine."""
