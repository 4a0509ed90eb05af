"""Faults planted in the code, each of which a test must find: ``python -m tests.mutants``."""
