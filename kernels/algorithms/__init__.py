"""Kernels that belong to one algorithm each."""
