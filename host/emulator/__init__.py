"""The emulator behind the device ``emulated``: runs Numba-CUDA's LLVM IR on the CPU, with one fiber per GPU thread."""
