"""Readers and writers of graphs, and writers of results."""

from gpu_pregel.io._formats import check_input, check_output, read_graph, save_graph
from gpu_pregel.io.results import save_result

__all__ = ["check_input", "check_output", "read_graph", "save_graph", "save_result"]
