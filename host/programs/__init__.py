"""Vertex programs: declare, check, compile, run, save."""
