"""The state of a run on a CUDA device, phase by phase: launches, readbacks, saving and restoring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from gpu_pregel.host.programs.cuda_state import BATCH
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.state import Activity
from gpu_pregel.host.traverse.directions import PULL_SHARE
from gpu_pregel.kernels.library.jit_cuda import Kernel
from tests.devices import CUDA_DEVICES, EMULATED, EMULATED_DEVICES, emulated
from tests.programs import HOPS, LABELS, RANKS, SUMS


def path(n: int) -> gp.Graph:
    return gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n), num_vertices=n)


def begin(graph: gp.Graph, program: gp.VertexProgram, device: Any, partitions: int = 1, *, forced: bool = True) -> Any:
    """Return the state of a run before superstep 0."""
    always, limit = program.active == "always", None if forced else (graph.num_stored_edges - 1) // PULL_SHARE
    compiled = compile_for_device(device, graph, program)
    return make_state(device, graph, compiled, always=always, partitions=partitions, push_limit=limit)


class Recording(EmulatedDevice):
    """An emulated device that records the names of the kernels that it launches."""

    def __init__(self) -> None:
        super().__init__(0, EmulatedMemory())
        self.names: list[str] = []

    def launch(self, kernel: Kernel, size: int, *arguments: Any, **options: Any) -> None:
        self.names.append(kernel.name)
        super().launch(kernel, size, *arguments, **options)

    def taken(self) -> list[str]:
        names, self.names = self.names, []
        return names


@EMULATED
def test_a_superstep_takes_few_launches_and_one_readback() -> None:
    device = Recording()
    run = begin(path(300), LABELS, device)
    activity = run.initialise()
    assert activity == Activity(300, 598)
    assert device.taken() == ["initialise"]
    (step,) = run.execute("pull", 1, activity, (), BATCH)
    assert device.taken() == ["dense_signal", "pull", "apply_messages"]
    assert step == (Activity(299, 597), 300, ())
    (step,) = run.execute("push", 2, step.activity, (), 1)
    assert device.taken() == ["list_frontier", "chain"]
    (step,) = run.execute("push", 3, step.activity, (), 1)
    assert device.taken() == ["chain"]
    assert device.memory.readbacks == 4


@pytest.mark.parametrize("direction", ["push", "pull"])
@pytest.mark.parametrize("device", ["cpu", pytest.param("emulated", marks=EMULATED)])
def test_a_superstep_leaves_nothing_in_the_inboxes(device: str, direction: str) -> None:
    """A set bit of ``touched`` without a message would make every later superstep visit the vertex."""
    target = get_device(device)
    for partitions in (1, 2):
        run = begin(path(300), LABELS, target, partitions)
        run.execute(direction, 1, run.initialise(), (), 1)
        assert not target.download(run.vertices.touched).any()
        assert (target.download(run.vertices.inbox[0]) == 2**32 - 1).all()


@EMULATED
def test_launches_for_long_rows_and_partitions() -> None:
    device, leaves = Recording(), np.arange(1, 2_000)
    star = gp.Graph.from_edgelist(np.zeros_like(leaves), leaves)
    # The first of two partitions has the hub and few leaves, so its share of the hub's row is short.
    for partitions, names in ((1, ["pull", "dense_slot"]), (2, ["pull", "pull", "dense_slot"])):
        run = begin(star, LABELS, device, partitions)
        activity = run.initialise()
        device.taken()
        run.execute("pull", 1, activity, (), 1)
        assert device.taken() == ["dense_signal", *names, "apply_messages"]


@EMULATED
def test_pushes_to_partitions_are_launched_in_batches_and_end_with_the_frontier() -> None:
    device = Recording()
    graph = gp.Graph.from_edgelist(np.arange(5), np.arange(1, 6), num_vertices=128)
    run = begin(graph, HOPS, device, partitions=2)
    activity = run.initialise()
    device.taken()
    three = run.execute("push", 1, activity, (), 3)
    assert [step.activity for step in three] == [Activity(1, 2)] * 3
    assert device.taken() == ["push", "push", "apply_messages"] * 3
    rest = run.execute("push", 4, three[-1].activity, (), 10)
    assert [(*step.activity, step.applied) for step in rest] == [(1, 2, 2), (1, 1, 2), (0, 0, 1)][-len(rest) :]
    assert len(rest) == 3
    assert device.taken() == ["push", "push", "apply_messages"] * 10
    assert device.memory.readbacks == 3


@EMULATED
def test_a_batch_continues_while_the_rule_would_push() -> None:
    """A path of 48 stored edges pushes with at most 2 active ones, and so many are active in each superstep."""
    for partitions in (1, 2):
        # With 38 stored edges, it pushes with at most 1.
        for length, supersteps in ((25, 20), (20, 1)):
            graph = gp.Graph.from_edgelist(np.arange(length - 1), np.arange(1, length), num_vertices=128)
            run = begin(graph, HOPS, get_device("emulated"), partitions, forced=False)
            steps = run.execute("push", 1, run.initialise(), (), 20)
            assert [step.activity for step in steps] == [Activity(1, 2)] * supersteps


@EMULATED
def test_supersteps_with_many_active_edges_are_launched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Recording()
    monkeypatch.setattr("gpu_pregel.host.programs.cuda_state._BATCH_EDGES", 253)
    for partitions in (1, 2):
        run = begin(path(128), LABELS, device, partitions)
        activity = run.initialise()
        device.taken()
        assert activity.active_edges == 254
        assert len(run.execute("push", 1, activity, (), 5)) == 1
        assert device.taken() == [*["push"] * partitions, "apply_messages"]


@EMULATED_DEVICES
def test_a_run_uses_its_own_device_even_if_another_copied_the_graph(device: str) -> None:
    graph, result = path(90), {}
    others = [emulated(seed) for seed in range(3) if emulated(seed) != device]
    for name in (*others, device):
        counts = {one: get_device(one).launches for one in (*others, device)}  # type: ignore[attr-defined]
        result[name] = gp.run(graph, LABELS, device=name)
        launched = {one for one in counts if get_device(one).launches > counts[one]}  # type: ignore[attr-defined]
        assert launched == {name}
        assert result[name].stats["device"] == name
    assert len([fact for fact in graph._facts if fact.startswith("copies on")]) == 1


@CUDA_DEVICES
def test_snapshots_equal_those_of_the_cpu_and_can_be_restored(device: str) -> None:
    graph, target, cpu = gp.kronecker(7, 3), get_device(device), get_device("cpu", threads=1)
    runs = [begin(graph, SUMS, one) for one in (target, cpu)]
    states = []
    for run in runs:
        run.initialise()
        states.append(run.snapshot())
    assert states[0].keys() == states[1].keys()
    for name, array in states[0].items():
        assert (array.dtype, array.tobytes()) == (states[1][name].dtype, states[1][name].tobytes())
    other = begin(graph, SUMS, target)
    other.restore({name: array.copy() for name, array in states[1].items()})
    for name, array in other.snapshot().items():
        assert array.tobytes() == states[1][name].tobytes()
    activity = Activity(128, graph.num_stored_edges)
    steps = [run.execute("pull", 1, activity, (), 1)[0] for run in (runs[0], other)]
    assert steps[0] == steps[1]


@CUDA_DEVICES
def test_bits_beyond_the_last_vertex_are_cleared_from_a_restored_frontier(device: str) -> None:
    run = begin(gp.Graph.from_edgelist([], [], num_vertices=65), LABELS, get_device(device))
    run.initialise()
    altered = run.snapshot()
    altered["frontier"] = np.full(2, ~np.uint64(0))
    run.restore(altered)
    assert run.snapshot()["frontier"].tolist() == [2**64 - 1, 1]


@CUDA_DEVICES
def test_threads_are_rejected_on_devices_other_than_the_cpu(device: str) -> None:
    graph = path(3)
    problem = "threads=2 applies only to the CPU: omit it for device"
    with pytest.raises(ArgumentError, match=problem):
        gp.run(graph, LABELS, device=device, threads=2)
    with pytest.raises(ArgumentError, match=problem):
        gp.connected_components(graph, device=device, threads=2)
    with pytest.raises(ArgumentError, match=problem):
        gp.Frontier(graph, device=device, threads=2)


@EMULATED_DEVICES
def test_kernels_reject_host_arrays_and_other_dtypes(device: str) -> None:
    target = get_device(device)
    compress = target.kernels("components").compress
    with pytest.raises(ArgumentTypeError, match=r"labels must be .* not a host array of uint32: copy it to the device"):
        target.launch(compress, 3, np.zeros(3, np.uint32))
    with pytest.raises(
        ArgumentTypeError, match="labels must be an array of uint32 on the device, not an array of int64"
    ):
        target.launch(compress, 3, target.zeros(3, np.int64))
    with pytest.raises(ArgumentTypeError, match=r"takes 1 arguments \(labels\), not 2"):
        target.launch(compress, 3, target.zeros(3, np.uint32), 4)


@EMULATED_DEVICES
def test_aggregates_have_their_dtypes(device: str) -> None:
    seen: list[Any] = []

    def watch(aggregated: Any) -> bool:
        seen.append(type(aggregated.change))
        return False

    gp.run(gp.kronecker(7, 3), replace(RANKS, halt=watch), device=device, max_supersteps=3)
    assert seen == [np.float64] * 2
