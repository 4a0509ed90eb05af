"""Kernels that build, generate and partition graphs."""
