"""Benchmarks of gpu_pregel and its peers: ``python -m benchmarks --help`` lists them, NOTES.md explains them."""
