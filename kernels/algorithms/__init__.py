"""Kernels of single algorithms."""
