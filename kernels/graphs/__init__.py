"""Kernels that build, check, generate and partition graphs."""
