"""``gpu-pregel warm``: compile the kernels of algorithms into the cache, for container images."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.cli import _common
from gpu_pregel.cli._warm_record import processor
from gpu_pregel.errors import ArgumentError, DeviceError, WriteError

_THREADS = 4
"""A single thread has other kernels than several, whose number makes no difference."""


class Target(NamedTuple):
    """What kernels are compiled for: the CPU, or a chip such as "sm_90", by running on a device."""

    name: str
    device: str
    capability: tuple[int, int] | None = None


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "warm",
        help="compile the kernels of algorithms into the cache, for a container image",
        description="Compile the kernels of algorithms into the cache, so that later processes only load them: as a "
        "step of a container image, for one. Each algorithm is run on small graphs of all kinds. Kernels for the CPU "
        "are those of this machine's processor; where images run on other processors, set NUMBA_CPU_NAME, such as to "
        "x86-64-v3, for this command and for later ones.",
        epilog=_common.example("warm cc bfs --device cpu"),
    )
    parser.add_argument(
        "algorithms", nargs="*", metavar="ALGORITHM", help="command or function of an algorithm (default: all)"
    )
    parser.add_argument("--device", default="cpu", metavar="NAME", help="cpu (default), cuda or cuda:N")
    parser.add_argument(
        "--compute-capability",
        type=_capabilities,
        metavar="X.Y[,X.Y]",
        help="with --device cuda, compile for GPUs of these compute capabilities, such as 9.0, without a GPU "
        "(default: that of the GPU)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")
    parser.set_defaults(run=run)


def _capabilities(text: str) -> list[tuple[int, int]]:
    """Parse compute capabilities separated by commas; an argparse type."""
    found = [re.fullmatch(r"(\d+)\.(\d)", part.strip()) for part in text.split(",")]
    if None in found:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form X.Y, such as 9.0")
    return [(int(match[1]), int(match[2])) for match in found if match]


def run(options: argparse.Namespace) -> None:
    """Compile what is not cached, and report how much it was."""
    entries = _entries(options.algorithms)
    targets = _targets(options)
    folder = _folder()
    facts = [_warm(target, entries) for target in targets]
    for target, counts in zip(targets, facts, strict=True):
        _report(target, counts)
    size = _cache_size()
    _common.print_line("cache", f"{folder}: {size}")
    if options.json:
        _common.print_json({"folder": folder, "size": size, "targets": facts})


def _entries(names: list[str]) -> list[Algorithm]:
    """Return the entries of commands or functions, in the order of the registry."""
    known = {name: entry for entry in ALGORITHMS for name in (entry.command, entry.name)}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            commands = ", ".join(entry.command for entry in ALGORITHMS)
            raise ArgumentError(f"unknown algorithm {name!r}: {hint}algorithms: {commands}")
    chosen = {known[name].command for name in names}
    return [entry for entry in ALGORITHMS if not names or entry.command in chosen]


def _targets(options: argparse.Namespace) -> list[Target]:
    """Return what to compile for; raise if this machine cannot."""
    kind = options.device.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise DeviceError(f"kernels are compiled for the devices 'cpu', 'cuda' and 'cuda:N', not {options.device!r}")
    if kind == "cpu":
        if options.compute_capability:
            raise ArgumentError("--compute-capability applies only to --device cuda")
        return [Target("cpu", "cpu")]
    if options.compute_capability:
        for capability in options.compute_capability:
            _check_minimum(capability)
        return [_target_without_gpu(capability) for capability in options.compute_capability]
    from gpu_pregel.errors import GpuPregelError
    from gpu_pregel.host.devices import get_device

    try:
        device: Any = get_device(options.device)
    except GpuPregelError as error:
        raise DeviceError(
            f"{error}; without a GPU, as in docker build, name those that the image will run on: "
            f"--compute-capability 9.0 for an H100"
        ) from error
    capability = device.gpu.compute_capability
    return [Target(_chip(capability), options.device, capability)]


def _check_minimum(capability: tuple[int, int]) -> None:
    from gpu_pregel.host.devices.cuda import MIN_COMPUTE_CAPABILITY

    if capability < MIN_COMPUTE_CAPABILITY:
        text, minimum = (".".join(map(str, version)) for version in (capability, MIN_COMPUTE_CAPABILITY))
        raise ArgumentError(f"--compute-capability {text}: at least {minimum} is required")


def _target_without_gpu(capability: tuple[int, int]) -> Target:
    """Return a target whose kernels run on the emulated device; raise if NVIDIA's compilers cannot compile for it."""
    from gpu_pregel.errors import GpuPregelError
    from gpu_pregel.host.arguments import require

    text = ".".join(map(str, capability))
    require("numba_cuda", f"compiling for compute capability {text}", "gpu-pregel[cuda13]")
    try:
        from gpu_pregel.host.devices.launches import check_linker
        from gpu_pregel.host.devices.lowering import load_nvvm

        load_nvvm()
        check_linker(capability)
    except GpuPregelError:
        raise
    except Exception as error:  # a library is missing; packages differ in their errors
        raise DeviceError(
            f"compiling for compute capability {text} needs NVIDIA's compilers, which cannot be loaded ({error}): "
            f"pip install gpu-pregel[cuda13]"
        ) from error
    return Target(_chip(capability), "emulated", capability)


def _chip(capability: tuple[int, int]) -> str:
    return "sm_{}{}".format(*capability)


def _folder() -> str:
    """Return the folder of the cache, or raise if kernels cannot be saved there."""
    from gpu_pregel.kernels.library.cache import cache_directory, is_writable

    _common.check_cache_limit()
    folder = cache_directory()
    if folder is None or not is_writable():
        raise WriteError(
            f"the cache of compiled kernels{'' if folder is None else f' in {folder}'} cannot be written: set "
            f"NUMBA_CACHE_DIR to a folder that this user can write, and that of the image can read"
        )
    return folder


def _cache_size() -> str:
    from gpu_pregel.host.devices.memory import format_bytes
    from gpu_pregel.kernels.library.cache import cache_limit, cache_size

    return f"{format_bytes(cache_size())} of at most {format_bytes(cache_limit())}"


class Step(NamedTuple):
    """A part of the work that the bar shows: the graphs, or an algorithm."""

    name: str
    calls: Iterator[Any]
    """Compiles as it is consumed."""


def _steps(target: Target, entries: list[Algorithm]) -> Iterator[Step]:
    if target.device == "cpu":
        yield Step("graphs", _graphs())
    for entry in entries:
        yield Step(entry.command, _calls(target, entry))


def _graphs() -> Iterator[Any]:
    """Make graphs of all kinds, save them as text and in the native format, and read them; yield each graph."""
    from gpu_pregel.algorithms._sample_calls import make_graphs
    from gpu_pregel.io import read_graph

    made = []
    for graph in make_graphs(_THREADS):
        made.append(graph)
        yield graph
    with TemporaryDirectory() as folder:
        for number, graph in enumerate(made):
            for suffix in (".el", ".pregel"):
                path = Path(folder, f"{number}{suffix}")
                graph.save(path, lossy=True)
                yield read_graph(path)
        # Without the number of vertices that a saved graph notes.
        plain = Path(folder, "plain.el")
        for directed in (False, True) if made else ():
            plain.write_text("0 1\n1 2\n")
            yield read_graph(plain, directed=directed)


def _calls(target: Target, entry: Algorithm) -> Iterator[Any]:
    """Call an algorithm on all kinds of graphs, and yield after each call."""
    from gpu_pregel.algorithms._sample_calls import FEW_VERTICES, arguments, graphs

    function = entry.load()
    is_cpu = target.device == "cpu"
    for graph in graphs(entry, large=is_cpu):
        few = graph.num_vertices < FEW_VERTICES
        for threads in ((1, _THREADS) if few else (_THREADS,)) if is_cpu else (None,):
            for values in arguments(entry, graph):
                result = function(graph, **values, device=target.device, threads=threads)
                result.describe()
                yield result


def _warm(target: Target, entries: list[Algorithm]) -> dict[str, Any]:
    """Compile for a target what its record does not say to be cached; return the counts."""
    from gpu_pregel.cli._warm_record import PREFIX, WarmRecord, load_record, save_record
    from gpu_pregel.host.superstep.progress import COUNTS, ProgressBar
    from gpu_pregel.kernels.library.cache import kind_of, recorded_use

    with _common.stopwatch() as working:
        record = load_record(target.name) or WarmRecord(frozenset(), frozenset())
        if record.missing():
            record = WarmRecord(frozenset(), frozenset())
        done, files = set(record.steps), set(record.files)
        left = [step for step in _steps(target, entries) if step.name not in done]
        bar = ProgressBar(bar_format=COUNTS, shown=_common.show_progress())
        with recorded_use() as use, _linking(target), bar:
            for number, step in enumerate(left):
                before = len(use.saved)
                with _common.stopwatch() as compiling:
                    for _ in step.calls:
                        bar.update(number, len(left), f"warming {step.name}")
                done.add(step.name)
                kinds = (target.name, "other")
                files |= {name for name in use.loaded | use.saved if kind_of(name) in kinds and PREFIX not in name}
                save_record(target.name, done, files)
                if not _common.show_progress() and len(use.saved) > before + 1:  # the record is one
                    _common.print_seconds("warm", compiling.seconds, f"  {step.name}")
    kernels = {name for name in files if kind_of(name) == target.name}
    compiled = kernels & use.saved
    return {
        "target": target.name,
        "algorithms": [entry.command for entry in entries],
        "compiled": len(compiled),
        "already_cached": len(kernels) - len(compiled),
        "seconds": working.seconds,
    }


@contextmanager
def _linking(target: Target) -> Iterator[None]:
    """Compile each kernel that the emulated device runs for the GPU, too, if that is what stands in for it."""
    capability = target.capability
    if target.device != "emulated" or capability is None:
        yield
        return
    from gpu_pregel.host.devices import get_device
    from gpu_pregel.host.devices.compiled_kernels import kernel_digest
    from gpu_pregel.host.devices.launches import link

    device: Any = get_device("emulated")
    linked: set[str | None] = set()

    def link_once(kernel: Any) -> None:
        digest = kernel_digest(kernel)
        if digest is not None and digest not in linked:
            linked.add(digest)
            link(kernel, capability)

    device.on_kernel = link_once
    try:
        yield
    finally:
        device.on_kernel = None


def _report(target: Target, counts: dict[str, Any]) -> None:
    """Print how many kernels were compiled for a target, and how many were cached before."""
    name = f"the CPU ({processor()})" if target.name == "cpu" else target.name
    what = f"{counts['compiled']:,} kernels" if counts["compiled"] else "nothing"
    text = f"  {what} for {name}; {counts['already_cached']:,} kernels were already cached"
    _common.print_seconds("compiled", counts["seconds"], text)
