"""Kernels of vertex programs and operators."""
