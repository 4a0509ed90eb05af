"""Graphs: building CSR, numbering, partitions, copies on devices, interchange, generators."""
