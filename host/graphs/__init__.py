"""Graphs: CSR construction, vertex numbering, partitions, device copies, interchange and generators."""
