"""A kernel of Numba-CUDA made into native code for this machine, which asks the runtime for all that a GPU would do."""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpu_pregel.errors import EmulationError, GpuPregelError, MissingPackageError
from gpu_pregel.host.devices.lowering import Lowered, lower
from gpu_pregel.host.emulator.compile import device_library
from gpu_pregel.host.emulator.compile.access_calls import Instrumenting
from gpu_pregel.host.emulator.compile.intrinsic_calls import Hooking, declarations
from gpu_pregel.host.emulator.compile.ir_text import NAME, closing, split, typed_value
from gpu_pregel.host.emulator.compile.locations import Site
from gpu_pregel.host.emulator.compile.translate import SharedMemory, Translated, translate
from gpu_pregel.host.emulator.machine import layout, runtime

_lock = threading.RLock()
_DEFINE = re.compile(rf"^define [^\n]*?@({NAME})\(", re.MULTILINE)


class KernelLike(Protocol):
    """What is asked of a kernel's declaration (``gpu_pregel.kernels.library.jit_cuda.Kernel``)."""

    @property
    def function(self) -> Any:
        """Plain Python."""

    @property
    def signature(self) -> tuple[Any, ...]:
        """Numba's types of its arguments."""

    @property
    def racy(self) -> frozenset[str]:
        """Array arguments that are accessed in no order on purpose."""

    @property
    def name(self) -> str:
        """What messages call it."""


@dataclass(frozen=True)
class CompiledKernel:
    """A kernel as native code.

    Attributes
    ----------
    name : str
        Of the Python function.
    entry : int
        Address of ``void emu_entry(int64 state)``.
    sites : list of Site
        By the numbers that the code passes to the runtime.
    shared_bytes : int
        Static shared memory of a block.
    shared_granule : int
        Size of the smallest elements in it.
    local_bytes : int
        Local arrays of a thread, which lie on its stack.
    uses_grid_barrier : bool
        Whether only a cooperative launch will do.
    parameters : tuple of str
        Names of the arguments.
    argument_types : tuple
        Numba's types of the arguments.
    racy : frozenset of str
        Array arguments that threads access in no order on purpose.
    seconds : dict of str to float
        What compiling took, by stage.
    """

    name: str
    entry: int
    sites: list[Site]
    shared_bytes: int
    shared_granule: int
    local_bytes: int
    uses_grid_barrier: bool
    parameters: tuple[str, ...]
    argument_types: tuple[Any, ...]
    racy: frozenset[str]
    seconds: dict[str, float]
    _alive: Any = field(repr=False, default=None)


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


def compile_kernel(kernel: KernelLike) -> CompiledKernel:
    """Compile a kernel for the emulated device.

    Raises
    ------
    EmulationError
        The kernel uses what the emulated device does not know; kernel, file and line are named.
    MissingPackageError
        numba-cuda is not installed.
    """
    clock = _Clock()
    lowered = lower(kernel.function, kernel.signature)
    clock.lap("lower")
    code = kernel.function.__code__
    fallback = (code.co_filename, code.co_firstlineno)
    try:
        with _lock:
            text, sites, facts = native_text(kernel.name, lowered, fallback, clock)
            engine, entry = _load(text)
    except (RuntimeError, ValueError) as error:
        if isinstance(error, GpuPregelError):
            raise
        # LLVM could not read what was made of the kernel, or there was no making it.
        raise EmulationError(
            f"kernel {kernel.name}, {os.path.basename(fallback[0])} line {fallback[1]}: cannot be translated for the "
            f"emulated device: {error}"
        ) from error
    clock.lap("generate")
    return CompiledKernel(
        name=kernel.name,
        entry=entry,
        sites=sites,
        parameters=tuple(code.co_varnames[: code.co_argcount]),
        argument_types=tuple(kernel.signature),
        racy=frozenset(kernel.racy),
        seconds=clock.seconds,
        _alive=engine,
        **facts,
    )


def native_text(
    name: str, lowered: Lowered, fallback: tuple[str, int], clock: _Clock | None = None
) -> tuple[str, list[Site], dict[str, Any]]:
    """LLVM IR of a kernel with all its calls of the runtime, its sites, and what is known of it."""
    clock = clock or _Clock()
    llvm, machine = _llvm()
    context = llvm.create_context()
    shared = SharedMemory()
    texts = _translated(name, lowered, fallback, shared, machine)
    clock.lap("translate")
    module = _linked(llvm, machine, [llvm.parse_assembly(text, context) for text in texts], lowered.entry)
    clock.lap("link and inline")
    hooking = Hooking(name, lowered.entry, fallback)
    text = hooking.run(str(module))
    clock.lap("hooks")
    module = llvm.parse_assembly(text, context)
    _optimise(llvm, machine, module)
    clock.lap("optimise")
    instrumenting = Instrumenting(name, hooking.sites, fallback)
    text = instrumenting.run(str(module))
    text += declarations(except_in=text) + _entry(text, lowered.entry)
    clock.lap("instrument")
    facts = {
        "shared_bytes": shared.size,
        "shared_granule": shared.granule,
        "local_bytes": instrumenting.local_bytes,
        "uses_grid_barrier": hooking.uses_grid_barrier,
    }
    return text, hooking.sites, facts


def _translated(
    name: str, lowered: Lowered, fallback: tuple[str, int], shared: SharedMemory, machine: Any
) -> list[str]:
    """The kernel's modules for this machine, and those of the libraries that they need."""
    header = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    modules = [translate(text, lowered.entry, shared, header) for text in lowered.modules]
    local_bytes = sum(module.local_bytes for module in modules)
    if local_bytes > layout.STACK_BYTES // 2:
        raise EmulationError(
            f"kernel {name}, {os.path.basename(fallback[0])} line {fallback[1]}: its local arrays take {local_bytes} "
            f"bytes of each thread: the emulated device has {layout.STACK_BYTES // 2}"
        )
    return [module.text for module in modules] + _library_texts(modules, header)


@functools.cache
def _llvm() -> tuple[Any, Any]:
    """LLVM, and this machine."""
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise MissingPackageError("the emulated device needs llvmlite: pip install gpu-pregel[emulated]") from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, jit=True
    )
    for name in device_library.CALLED_BY_LLVM:
        llvm.add_symbol(name, device_library.host_address(name))
    return llvm, machine


def _library_texts(modules: Sequence[Translated], header: str) -> list[str]:
    """A module with each function of NVIDIA's libraries that these modules call and that is known here."""
    import llvmlite.binding as llvm

    defined = set().union(*(module.defined for module in modules))
    wanted = sorted(set().union(*(module.declared for module in modules)) - defined)
    texts = []
    for name in wanted:
        text = device_library.definition(name)
        if text is None:
            continue
        for callee in re.findall(rf"^declare .*?@({NAME})\(", text, re.MULTILINE):
            callee = callee.strip('"')
            if callee.startswith(device_library.HOST):
                llvm.add_symbol(callee, device_library.host_address(callee.removeprefix(device_library.HOST)))
        texts.append(f"{header}\n{text}")
    return texts


def _linked(llvm: Any, machine: Any, modules: list[Any], entry: str) -> Any:
    """One module, in which all functions have become part of the kernel."""
    module, *others = modules
    for other in others:
        module.link_in(other)
    for function in module.functions:
        if not function.is_declaration and function.name != entry:
            function.linkage = "internal"
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return module


def _optimise(llvm: Any, machine: Any, module: Any) -> None:
    tuning = llvm.create_pipeline_tuning_options(2)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_interleaving = False
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


def _entry(text: str, kernel: str) -> str:
    """The function that takes a kernel's arguments from the slots that the state points to, and calls it."""
    match = next(one for one in _DEFINE.finditer(text) if one[1].strip('"') == kernel)
    parameters = [typed_value(one)[0] for one in split(text[match.end() : closing(text, match.end() - 1)])][1:]
    lines = ["%slots.at = inttoptr i64 %state to ptr", "%slots = load i64, ptr %slots.at"]
    arguments = ["i64 %state"]
    for index, kind in enumerate(parameters):
        slot, value = f"%slot{index}", f"%argument{index}"
        lines.append(f"{slot}.i = add i64 %slots, {8 * index}")
        lines.append(f"{slot}.p = inttoptr i64 {slot}.i to ptr")
        lines.append(f"{value} = load {kind}, ptr {slot}.p")
        arguments.append(f"{kind} {value}")
    lines += [f"call void @{match[1]}({', '.join(arguments)})", "ret void"]
    return "\ndefine void @emu_entry(i64 %state) nounwind {\n  " + "\n  ".join(lines) + "\n}\n"


def _load(text: str) -> tuple[Any, int]:
    llvm, machine = _llvm()
    # A symbol that LLVM cannot find would end the process: the runtime's are made known first.
    runtime.machine()
    module = llvm.parse_assembly(text, llvm.create_context())
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine, engine.get_function_address("emu_entry")
