"""Runs that need both rooms below: vertex programs that agents compute."""
