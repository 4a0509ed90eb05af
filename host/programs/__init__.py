"""Vertex programs and operators: declare, check, compile, run, save."""
