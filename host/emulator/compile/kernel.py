"""Compilation of a kernel's LLVM IR to native code that calls the emulated machine for everything a GPU would do."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.binding as llvm

from gpu_pregel.errors import GpuPregelError
from gpu_pregel.host.emulator.compile import device_library
from gpu_pregel.host.emulator.compile.access_calls import AccessRewriter
from gpu_pregel.host.emulator.compile.intrinsic_calls import IntrinsicRewriter, declarations
from gpu_pregel.host.emulator.compile.ir_text import NAME, closing, split, typed_value
from gpu_pregel.host.emulator.compile.locations import located_error
from gpu_pregel.host.emulator.compile.translate import HostModule, SharedLayout, translate
from gpu_pregel.host.emulator.machine import layout, runtime
from gpu_pregel.host.emulator.machine.compiled_kernel import CompiledKernel
from gpu_pregel.kernels.library.parameters import Parameter

_lock = threading.RLock()
_CALLEE = re.compile(rf'@"?({re.escape(device_library.HOST)}\w+)')
_DEFINE = re.compile(rf"^define [^\n]*?@({NAME})\(", re.MULTILINE)
_CONSTANT_ARRAY = re.compile(rf"^(@{NAME} = [^\n]*?)(constant \[)", re.MULTILINE)


@dataclass(frozen=True)
class LoweredKernel:
    """A CUDA kernel as LLVM IR for NVVM, with its declaration.

    Attributes
    ----------
    name : str
        Name of the kernel in messages.
    modules : tuple of str
        LLVM IR of the kernel, followed by that of the functions it calls.
    entry : str
        Name of the kernel's function in the first module.
    parameters : tuple of str
        Names of the parameters.
    layout : tuple
        How the code takes each argument.
    dynamic_shared : int
        Bytes of shared memory per block beside the arrays of fixed size.
    racy : frozenset of str
        Array parameters that are exempt from race detection.
    relaxed : frozenset of str
        Array parameters of which plain reads count as atomic.
    location : (str, int)
        File and first line of the kernel's source.
    """

    name: str
    modules: tuple[str, ...]
    entry: str
    parameters: tuple[str, ...]
    layout: tuple[Parameter, ...]
    dynamic_shared: int
    racy: frozenset[str]
    relaxed: frozenset[str]
    location: tuple[str, int]


@dataclass(frozen=True)
class NativeCode:
    """A kernel's machine code for this processor, which other processes can load.

    Attributes
    ----------
    kernel : CompiledKernel
        Its entry is 0.
    code : bytes
        An object file.
    callees : tuple of str
        The functions of this process that the code calls, without those of the machine.
    """

    kernel: CompiledKernel
    code: bytes
    callees: tuple[str, ...]


def compile_kernel(kernel: LoweredKernel) -> NativeCode:
    """Compile a kernel for the emulated device.

    Raises
    ------
    EmulationError
        The kernel uses a feature that the emulated device does not support; the message names kernel, file and line.
    """
    try:
        with _lock:
            return _compile(kernel)
    except (RuntimeError, ValueError) as error:
        if isinstance(error, GpuPregelError):
            raise
        # LLVM rejected the translated text, or the text could not be translated.
        problem = f"cannot be translated for the emulated device: {error}"
        raise located_error(kernel.name, kernel.location, problem) from error


def load_kernel(native: NativeCode) -> CompiledKernel:
    """Load a kernel into this process."""
    with _lock:
        _target_machine()
        # An unresolved symbol would end the process, so all symbols are registered first.
        runtime.load_machine()
        for name in native.callees:
            llvm.add_symbol(name, device_library.host_address(name.removeprefix(device_library.HOST)))
        # The engine owns its target machine, and needs the context until it is deleted.
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly("", _engine_context()), _new_target_machine())
        engine.set_object_cache(getbuffer_func=lambda _: native.code)
        engine.finalize_object()
        return replace(native.kernel, entry=int(engine.get_function_address("emu_entry")), _engine=engine)


def _compile(kernel: LoweredKernel) -> NativeCode:
    machine = _target_machine()
    context = llvm.create_context()
    shared = SharedLayout()
    texts = _translated_modules(kernel, shared, machine)
    module = _link_and_inline(machine, [llvm.parse_assembly(text, context) for text in texts], kernel.entry)
    dynamic = shared.place_dynamic(kernel.dynamic_shared)
    intrinsics = IntrinsicRewriter(kernel.name, kernel.entry, kernel.location, (dynamic, kernel.dynamic_shared))
    # Otherwise LLVM replaces a comparison of an element by a test of bits, and no index is checked.
    text = _CONSTANT_ARRAY.sub(r"\1externally_initialized \2", intrinsics.run(str(module)))
    module = llvm.parse_assembly(text, context)
    _optimise(machine, module)
    accesses = AccessRewriter(kernel.name, intrinsics.sites, kernel.location)
    text = accesses.run(str(module))
    text += declarations(except_in=text) + _entry_function(text, kernel.entry)
    compiled = CompiledKernel(
        name=kernel.name,
        entry=0,
        sites=intrinsics.sites,
        shared_bytes=shared.size,
        dynamic_shared=kernel.dynamic_shared,
        shared_granule=shared.granule,
        local_bytes=accesses.local_bytes,
        uses_grid_barrier=intrinsics.uses_grid_barrier,
        parameters=kernel.parameters,
        layout=kernel.layout,
        racy=kernel.racy,
        relaxed=kernel.relaxed,
    )
    code = machine.emit_object(llvm.parse_assembly(text, llvm.create_context()))
    return NativeCode(compiled, code, tuple(sorted(set(_CALLEE.findall(text)))))


def _translated_modules(kernel: LoweredKernel, shared: SharedLayout, machine: Any) -> list[str]:
    """Return the kernel's modules for this machine, and modules of the library functions that they call."""
    header = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    modules = [translate(text, kernel.entry, shared, header) for text in kernel.modules]
    local_bytes = sum(module.local_bytes for module in modules)
    limit = layout.STACK_BYTES // 2
    if local_bytes > limit:
        problem = f"local arrays need {local_bytes} bytes per thread; the limit on the emulated device is {limit}"
        raise located_error(kernel.name, kernel.location, problem)
    return [module.text for module in modules] + _library_texts(modules, header)


@functools.cache
def processor() -> tuple[str, str]:
    """Return the name and the features of this processor, for which code is compiled."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.cache
def _target_machine() -> Any:
    """Initialise LLVM and return the target machine of this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in device_library.CALLED_BY_LLVM:
        llvm.add_symbol(name, device_library.host_address(name))
    return _new_target_machine()


@functools.cache
def _engine_context() -> Any:
    return llvm.create_context()


def _new_target_machine() -> Any:
    """Return a target machine that generates code quickly: ``_optimise`` has done what changes the accesses."""
    name, features = processor()
    return llvm.Target.from_default_triple().create_target_machine(cpu=name, features=features, opt=0, jit=True)


def _library_texts(modules: Sequence[HostModule], header: str) -> list[str]:
    """Return a module for each supported function of NVIDIA's libraries that ``modules`` call."""
    defined = set().union(*(module.defined for module in modules))
    missing = sorted(set().union(*(module.declared for module in modules)) - defined)
    texts = []
    for name in missing:
        text = device_library.definition(name)
        if text is not None:
            texts.append(f"{header}\n{text}")
    return texts


def _link_and_inline(machine: Any, modules: list[Any], entry: str) -> Any:
    """Link the modules and inline all functions into the kernel."""
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


def _optimise(machine: Any, module: Any) -> None:
    tuning = llvm.create_pipeline_tuning_options(2)
    tuning.loop_vectorization = False
    tuning.slp_vectorization = False
    tuning.loop_interleaving = False
    tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)


def _entry_function(text: str, kernel: str) -> str:
    """Return a function that loads the kernel's arguments from the slots of the state block and calls the kernel."""
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
