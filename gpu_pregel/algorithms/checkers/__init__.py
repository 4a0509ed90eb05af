"""Slow, independent checkers, each of which verifies the result of the algorithm of the same name."""
