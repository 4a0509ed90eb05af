"""The device `emulated`: the LLVM IR that Numba-CUDA generates, run on the CPU, strictly, a fiber per GPU thread."""
