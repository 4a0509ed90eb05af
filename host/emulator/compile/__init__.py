"""Compiles the LLVM IR of a CUDA kernel to native code that calls the emulated machine."""
