"""An optional device that runs CUDA kernels on GPGPU-Sim, a simulator of GPUs with a timing model."""
