"""The compiler of CUDA kernels, Numba-CUDA, as the kernels see it: the only module of theirs that imports it.

Another compiler needs another implementation of this module and of ``host/devices/lowering.py``. Kernels use, of
``cuda``, ``threadIdx``, ``blockIdx``, ``blockDim``, ``gridDim``, ``grid``, ``gridsize``, ``shared.array``,
``syncthreads``, ``syncwarp``, ``ballot_sync``, ``popc``, ``ffs``, ``clz``, ``nanosleep``, ``atomic.add`` of floats and,
for functions that kernels call, ``jit``. All else that they ask of a GPU is in files of this folder that generate LLVM
IR by the other names, and need twins for another compiler.
"""

from __future__ import annotations

from numba import cuda, from_dtype
from numba.cuda import cgutils, types
from numba.cuda.core import callconv, ir, rewrites
from numba.cuda.extending import infer_getattr, intrinsic, lower_builtin, lower_cast, overload
from numba.cuda.typing import templates

__all__ = [
    "callconv",
    "cgutils",
    "cuda",
    "from_dtype",
    "infer_getattr",
    "intrinsic",
    "ir",
    "lower_builtin",
    "lower_cast",
    "overload",
    "rewrites",
    "templates",
    "types",
]
