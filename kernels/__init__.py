"""Edge, vertex and bitmap kernels, and the kernels that build and read graphs.

A kernel is one function over arrays. Twins for the CPU and for CUDA lie side by side as ``name_cpu.py`` and
``name_cuda.py``. Nothing here imports the host or the interface.
"""
