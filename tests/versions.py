"""Tries versions of numba-cuda with versions of cuda-core and cuda-bindings; no GPU is needed.

``python -m tests.versions`` installs each version by pip into its own temporary folder, puts a combination of folders
before the installed packages, lowers kernels of connected components and links them for several chips, and prints a row
per combination. ``--numba`` tries another version of Numba. NVIDIA's compilers are those installed; ``--here`` tries
the packages of an environment as they are, such as one with the extra ``cuda12``.
"""

from __future__ import annotations

import argparse
import email
import itertools
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

NUMBA_CUDA = ("0.26.0", "0.27.0", "0.28.2", "0.29.0", "0.30.0", "0.30.1", "0.30.2", "0.30.3", "0.30.4")
CUDA_CORE = ("0.5.1", "0.7.0", "1.0.1", "1.2.2")
CUDA_BINDINGS = ("13.0.3", "13.5.0")
CHIPS = ((7, 0), (7, 5), (8, 0), (9, 0), (10, 0))


def link_kernels() -> str:
    """Lower and link kernels with the packages of this process; return the chips that the compilers do not know."""
    from gpu_pregel.host.devices.launches import link
    from gpu_pregel.host.programs.compiler import compile_for_cuda
    from gpu_pregel.kernels.algorithms.components_cuda import compress
    from tests.programs import LABELS

    program = compile_for_cuda(LABELS, offset=np.dtype(np.uint32), weight=None)
    unknown = set()
    for chip, kernel in itertools.product(CHIPS, (compress, program.pull, program.push, program.apply)):
        try:
            code, entry, _ = link(kernel, chip)
        except Exception as error:
            if chip >= (7, 5):
                raise
            unknown.add(f"(without sm_{chip[0]}{chip[1]}: {type(error).__name__})")
            continue
        assert f".text.{entry}".encode() in code
    return " ".join(sorted(unknown))


def _install(folder: Path, *packages: str) -> Path:
    """Install packages, each as ``name==version``, into a folder of their own, without what they depend on."""
    target = folder / packages[0]
    if not target.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), *packages]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    return target


def _is_allowed(numba_cuda: Path, **versions: str) -> bool:
    """Whether the metadata of numba-cuda allows versions of other packages."""
    (metadata,) = numba_cuda.glob("numba_cuda-*/METADATA")
    lines = email.message_from_string(metadata.read_text()).get_all("Requires-Dist") or []
    required = [one for one in map(Requirement, lines) if one.marker is None]
    return all(one.specifier.contains(versions[one.name]) for one in required if one.name in versions)


def _try(folders: list[Path], cache: Path) -> str:
    """Link in a new process; return its output, or the last line of its error."""
    path = os.pathsep.join([*map(str, folders), str(Path(__file__).parent.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "tests.versions", "--here"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.stdout.strip() if done.returncode == 0 else f"fails: {done.stderr.strip().splitlines()[-1]}"


def main() -> None:
    """Print a row per combination."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--here", action="store_true", help="link with the packages of this process")
    parser.add_argument("--numba", nargs="+", metavar="NAME==VERSION", help="another Numba, and its llvmlite")
    parser.add_argument("--numba-cuda", nargs="+", metavar="VERSION", default=NUMBA_CUDA)
    options = parser.parse_args()
    if options.here:
        names = ("numba", "numba-cuda", "cuda-core", "cuda-bindings", "cuda-toolkit")
        print("links with", *(f"{name} {version(name)}" for name in names), link_kernels())
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        common = [_install(folder, *options.numba)] if options.numba else []
        for numba_cuda, core, bindings in itertools.product(options.numba_cuda, CUDA_CORE, CUDA_BINDINGS):
            packages = (f"numba-cuda=={numba_cuda}", f"cuda-core=={core}", f"cuda-bindings=={bindings}")
            first = _install(folder, packages[0])
            if _is_allowed(first, **{"cuda-core": core, "cuda-bindings": bindings}):
                folders = common + [_install(folder, package) for package in packages]
                print(*packages, _try(folders, folder / "-".join(packages)), flush=True)


if __name__ == "__main__":
    main()
