"""Measurements of gpu_pregel beside its peers; ``python -m benchmarks --help`` lists them, NOTES.md explains them."""
