"""The kernels: functions over arrays that are compiled for the CPU or for CUDA.

The CPU and CUDA versions of a kernel are in ``name_cpu.py`` and ``name_cuda.py`` of the same folder. Kernels import
neither the host nor the interface.
"""
