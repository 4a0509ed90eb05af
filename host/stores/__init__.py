"""Durable stores of runs: what a superstep left, committed exactly once. ``store`` has the interface."""
