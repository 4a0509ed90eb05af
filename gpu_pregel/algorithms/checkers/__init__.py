"""Slow, independent checkers: each verifies properties of a result of the algorithm of the same name."""
