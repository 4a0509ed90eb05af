"""Collects the tests as on a machine that has only what the tests for GPUs need: ``python -m tests.bare_image``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

import pytest

INSTALLED = (
    *("cloudpickle", "cuda-bindings", "cuda-core", "cupy-cuda12x", "cupy-cuda13x", "hypothesis", "networkx", "numba"),
    *("numba-cuda", "numpy", "pyarrow", "pytest", "pytest-xdist", "scipy", "tqdm"),
)
"""What the image of a GPU machine has; what these packages require is installed too."""


def required(names: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of packages and of all that they require, without extras."""
    waiting, seen = list(names), set()
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:
            continue
        yield name
        waiting += [re.split(r"[^\w.-]", one)[0] for one in requirements if "extra ==" not in one]


class Blocker:
    """A finder that hides the modules of all packages that are not on the image."""

    def __init__(self) -> None:
        kept = set(required(INSTALLED))
        self.hidden = {
            module
            for module, owners in packages_distributions().items()
            if not kept & {re.sub(r"[-_.]+", "-", owner).lower() for owner in owners}
        } - {"gpu_pregel", "tests", "benchmarks", "conftest"}

    def find_spec(self, name: str, *_: object) -> None:
        """Raise the error of a missing module."""
        top = name.partition(".")[0]
        if top in self.hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=top)


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocker())
    # Without doctests and rewritten assertions, this takes half the time.
    options = ["-o", "addopts=--import-mode=importlib --strict-markers --strict-config", "--assert=plain"]
    sys.exit(pytest.main([*options, "-p", "xdist", "-p", "no:cacheprovider", "--collect-only", "-q", *sys.argv[1:]]))
