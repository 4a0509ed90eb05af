"""Faults of partitions and their copies on devices."""

from __future__ import annotations

from tests.mutants.fault import Fault

FAULTS = (
    Fault(
        "part alpha",
        "host/graphs/partitions.py",
        "ALPHA_PER_PARTITION * (partitions - 1)",
        "ALPHA_PER_PARTITION * partitions",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "part first word",
        "host/graphs/partitions.py",
        "prepend=words[:1] + 1",
        "prepend=words[:1]",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "hubs tail",
        "host/graphs/partitions.py",
        "np.minimum(begins + hub_edges, edges.ends[rows])",
        "begins + hub_edges",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "hub word side",
        "host/graphs/partitions.py",
        'side="right") - 1',
        'side="left")',
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "hub bit",
        "host/graphs/partitions.py",
        "np.uint64(1) << (vertices % WORD_BITS)",
        "np.uint64(1) << (hubs.rows % WORD_BITS)",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "block places",
        "host/graphs/partitions.py",
        "places = np.ascontiguousarray(stops.T) - counts",
        "places = np.ascontiguousarray(stops.T) - counts[::-1]",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "block bound",
        "kernels/graphs/partition_cpu.py",
        "for u in range(b * block, min((b + 1) * block, len(indptr) - 1)):\n                e = indptr[u]\n                while e < indptr[u + 1]:\n                    part = _partition_of(np.int64(indices[e]), bounds)\n                    end",
        "for u in range(b * block, min((b + 1) * block - (b > 0), len(indptr) - 1)):\n                e = indptr[u]\n                while e < indptr[u + 1]:\n                    part = _partition_of(np.int64(indices[e]), bounds)\n                    end",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "hubs equal",
        "host/graphs/partitions.py",
        "np.flatnonzero(lengths > hub_edges)",
        "np.flatnonzero(lengths >= hub_edges)",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "cut round down",
        "host/graphs/partitions.py",
        "WORD_BITS * round(int(np.searchsorted(load, target)) / WORD_BITS)",
        "WORD_BITS * (int(np.searchsorted(load, target)) // WORD_BITS)",
        "tests/host/graphs/test_partitions.py",
    ),
    Fault(
        "whole bitmap",
        "host/graphs/partitions.py",
        "if n % WORD_BITS:",
        "if n % WORD_BITS > 1:",
        "tests/host/graphs/test_partitions.py",
    ),
)
