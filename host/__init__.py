"""The engine: everything that runs on the host.

It imports kernels, never algorithms or other modules of the public interface.
"""
