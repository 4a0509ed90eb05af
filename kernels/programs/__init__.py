"""Kernels of vertex programs."""
