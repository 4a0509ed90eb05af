"""Workflows on the agent runtime, and the page of a run."""
