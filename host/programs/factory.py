"""Makes a program's kernels and the state of its run for the device that it runs on."""

from __future__ import annotations

from typing import Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.partitions import cut_ranges
from gpu_pregel.host.programs.checked_state import CheckedState
from gpu_pregel.host.programs.compiler import CompiledProgram, compile_for_cuda, compile_program
from gpu_pregel.host.programs.cpu_state import CpuState
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.python_state import InterpretedProgram, PythonState, interpret_program
from gpu_pregel.host.programs.state import ProgramState
from gpu_pregel.host.traverse.exchange import LOCAL, Exchange


def compile_for_device(target: Device, graph: Graph, program: VertexProgram, *, check: bool = False) -> CompiledProgram:
    """Return a program's kernels for a device and the edges of a graph, on the CPU with checks if ``check``.

    Raises
    ------
    ArgumentError
        The device cannot check.
    """
    if check and target.name.startswith("cuda"):
        raise ArgumentError(
            f"check=True is not possible on device {target.name!r}: use device='emulated', which runs the same kernels "
            f"with checks, or device='cpu'"
        )
    if isinstance(target, PythonDevice):
        return interpret_program(program)
    weight = None if graph.weights is None else graph.weights.dtype
    if target.is_host:
        return compile_program(program, weight=weight, check=check)
    return compile_for_cuda(program, offset=graph._on(target).offset, weight=weight)


def make_state(
    target: Device,
    graph: Graph,
    compiled: CompiledProgram,
    *,
    always: bool,
    partitions: int = 1,
    with_pull: bool = True,
    push_limit: int | None = None,
    exchange: Exchange = LOCAL,
    checked: VertexProgram | None = None,
) -> ProgramState:
    """Make the state of a run on a device, with the partitions of the graph.

    Parameters
    ----------
    target : Device
    graph : Graph
    compiled : CompiledProgram
        For this device.
    always : bool
        Whether every vertex applies in every superstep.
    partitions : int
    with_pull : bool
        Whether supersteps may pull.
    push_limit : int or None
        The most active edges with which a superstep that follows a push may push too; None for any number.
    exchange : Exchange
    checked : VertexProgram, optional
        The program, if it was compiled with checks: a superstep that fails on the CPU is repeated in Python.
    """
    if isinstance(compiled, InterpretedProgram):
        cut_ranges(graph.out_degrees, partitions)
        return PythonState(compiled, graph, target, always=always)
    parts = graph._partitions(partitions, with_pull=with_pull, threads=thread_count(target.threads))
    if isinstance(target, CpuDevice) and checked is not None:
        return CheckedState(compiled, checked, graph, parts, target, always=always)
    out_degrees = graph.out_degrees
    in_degrees = graph.in_degrees if compiled.uses_in_degree else out_degrees
    if isinstance(target, CpuDevice):
        return CpuState(compiled, parts, out_degrees, in_degrees, target, always=always, exchange=exchange)
    from gpu_pregel.host.programs.cuda_state import CudaState
    from gpu_pregel.host.programs.failures import FailureReport

    arrays = (compiled, parts, out_degrees, in_degrees, graph._on(target), target)
    failures = FailureReport(compiled, graph, target)
    options: dict[str, Any] = {"always": always, "push_limit": push_limit, "exchange": exchange}
    if target.name.startswith("emulated") and exchange is LOCAL:
        from gpu_pregel.host.programs.emulated_state import EmulatedState

        return EmulatedState(compiled.declaration, graph, *arrays, failures, **options)
    return CudaState(*arrays, failures, **options)
