"""Implementations of functions of NetworkX, a module for each family."""
