"""Kernels that compute what NetworkX does in the order of its dicts, for the backend."""
