"""Compiles what most tests need into the cache on disk, while the processes of pytest collect the tests.

``python -m tests.common_kernels``. Otherwise each of them compiles it at the same time.
"""

from __future__ import annotations

import numpy as np

import gpu_pregel as gp
from gpu_pregel.host.emulator.machine.runtime import load_machine


def main() -> None:
    """Compile the emulated machine, and the kernels that build graphs."""
    load_machine()
    for weight in (None, np.ones(2, np.int64), np.ones(2), np.ones(2, np.float32)):
        gp.Graph.from_edgelist([0, 1], [1, 2], weight)


if __name__ == "__main__":
    main()
