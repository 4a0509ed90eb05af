"""Durable stores of runs. ``store`` has the protocol, ``database`` the interface that each database implements."""
