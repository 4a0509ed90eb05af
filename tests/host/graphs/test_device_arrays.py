"""Tests of graphs from arrays in device memory: what is copied to the host and back."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, DeviceError, GraphError, MissingPackageError
from gpu_pregel.host import devices
from gpu_pregel.host.devices import cuda, get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.devices.gpus import Gpu
from tests.devices import EMULATED
from tests.host.devices import fake_cupy
from tests.host.devices.fake_cupy import FakeCupy
from tests.programs import DISTANCES

Array = np.ndarray[Any, Any]

INDPTR, INDICES, WEIGHTS = [0, 2, 4, 6, 6, 7, 8], [1, 2, 0, 2, 0, 1, 5, 4], [1.0, 4.0, 1.0, 2.0, 4.0, 2.0, 7.0, 7.0]
"""A triangle, an isolated vertex and an edge."""


@pytest.fixture
def device() -> EmulatedDevice:
    found = get_device("emulated")
    assert isinstance(found, EmulatedDevice)
    return found


def on(device: EmulatedDevice, dtypes: str) -> list[Any]:
    """Return the graph's arrays in device memory."""
    columns = zip((INDPTR, INDICES, WEIGHTS), dtypes.split(), strict=True)
    return [device.upload(np.array(column, dtype)) for column, dtype in columns]


@EMULATED
@pytest.mark.parametrize(("dtypes", "kept"), [("i4 i4 f8", 3), ("i8 u4 f8", 2), ("i8 i8 f4", 1), ("u4 i8 i8", 2)])
def test_only_arrays_of_other_dtypes_are_uploaded_again(device: EmulatedDevice, dtypes: str, kept: int) -> None:
    given = on(device, dtypes)
    uploads, readbacks = device.memory.upload_bytes, device.memory.readbacks
    graph = gp.Graph.from_csr(*given)
    assert (device.memory.upload_bytes, device.memory.readbacks) == (uploads, readbacks + 3)
    assert graph.weights is not None
    assert (graph.indptr.tolist(), graph.indices.tolist(), graph.weights.tolist()) == (INDPTR, INDICES, WEIGHTS)
    there = graph._on(device)
    found = [there.offsets(graph.indptr), there.copy(graph.indices), there.copy(graph.weights)]
    assert [array.get().tolist() for array in found] == [INDPTR, INDICES, WEIGHTS]
    assert [array.dtype for array in found] == [np.uint32, np.uint32, graph.weights.dtype]
    uploaded = [array.nbytes for array in found[: 3 - kept]] if dtypes[0] != "u" else [found[1].nbytes]
    assert device.memory.upload_bytes - uploads == sum(uploaded)


@EMULATED
def test_results_and_copies_do_not_depend_on_the_given_arrays(device: EmulatedDevice) -> None:
    given = on(device, "i4 i4 f8")
    graph = gp.Graph.from_csr(*given)
    for array in given:
        array.fill(0)
    found = gp.run(graph, DISTANCES, device="emulated").to_numpy()
    host = gp.Graph.from_csr(INDPTR, INDICES, WEIGHTS)
    assert found.tolist() == gp.run(host, DISTANCES, device="cpu").to_numpy().tolist()
    assert gp.connected_components(graph, device="emulated").to_numpy().tolist() == [0, 0, 0, 3, 4, 4]
    for one, other in zip(graph.to_edgelist(), host.to_edgelist(), strict=True):
        assert one is not None
        assert np.array_equal(one, other)  # type: ignore[arg-type]


@EMULATED
def test_copy_false_uses_the_given_arrays(device: EmulatedDevice) -> None:
    given = on(device, "u4 u4 f8")
    live = device.memory.live_bytes
    graph = gp.Graph.from_csr(*given, copy=False)
    there = graph._on(device)
    assert there.offsets(graph.indptr) is given[0]
    assert there.copy(graph.indices) is given[1]
    assert there.copy(graph.weights) is given[2]  # type: ignore[arg-type]
    assert device.memory.live_bytes == live


@EMULATED
def test_rows_that_are_sorted_on_the_host_are_uploaded(device: EmulatedDevice) -> None:
    indptr, indices = device.upload(np.array([0, 2, 3, 4], np.int32)), device.upload(np.array([2, 1, 0, 0], np.uint32))
    graph = gp.Graph.from_csr(indptr, indices)
    assert graph._on(device).copy(graph.indices).get().tolist() == [1, 2, 0, 0]


@EMULATED
def test_edge_lists_and_ids_in_device_memory(device: EmulatedDevice) -> None:
    src, dst = (device.upload(np.array(ids)) for ids in ([30, 10], [10, 20]))
    weight, vertices = device.upload(np.array([5.0, 6.0])), device.upload(np.array([40]))
    graph = gp.Graph.from_edgelist(src, dst, weight, vertices=vertices, directed=True)
    assert graph.ids is not None
    assert (graph.ids.tolist(), graph.indices.tolist()) == ([10, 20, 30, 40], [1, 0])
    named = gp.Graph.from_csr(device.upload(np.array([0, 0, 0])), [], ids=src)
    assert named.to_ids(np.arange(2)).tolist() == [30, 10]


@EMULATED
def test_errors_are_those_of_host_arrays(device: EmulatedDevice) -> None:
    indptr, indices, _ = on(device, "i4 i4 f8")
    with pytest.raises(GraphError, match="the weight of edge 0 is NaN"):
        gp.Graph.from_csr(indptr, indices, device.upload(np.full(8, np.nan)))
    with pytest.raises(GraphError, match="has an edge to 7, but there are only 6 vertices"):
        gp.Graph.from_csr(indptr, device.upload(np.full(8, 7)))
    with pytest.raises(ArgumentTypeError, match="indices must have an integer dtype, not float64"):
        gp.Graph.from_csr(indptr, device.upload(np.ones(8)))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    """Replace CuPy and the GPU by fakes."""
    fake = fake_cupy.install(monkeypatch)
    monkeypatch.setattr(cuda, "find_gpu", lambda number: Gpu(number, "H100", (9, 0), 80 << 30))
    monkeypatch.setattr(cuda, "_make_launcher", lambda *_: None)
    monkeypatch.setattr(devices, "_devices", {})
    return fake


def gpu_arrays() -> list[Any]:
    return [fake_cupy.array_of(column, np.int32) for column in (INDPTR, INDICES)]


def _export(array: Any) -> Callable[..., Any]:
    return lambda *, stream: array


@pytest.mark.parametrize("dlpack", [False, True])
def test_arrays_on_a_gpu(gpu: FakeCupy, dlpack: bool) -> None:
    given = gpu_arrays()
    if dlpack:
        tensors = [SimpleNamespace(__dlpack__=_export(array), __dlpack_device__=lambda: (2, 1)) for array in given]
        graph = gp.Graph.from_dlpack(*tensors)
    else:
        graph = gp.Graph.from_csr(*given)
    device: Any = get_device("cuda:1")
    assert device._device.waits == 0
    assert graph.indices.tolist() == INDICES
    given[1].memory[:] = 9
    there = graph._on(device)
    for host, kept in (
        (graph.indptr, there._copies[graph.indptr.ctypes.data, 7, np.dtype(np.uint32)][1]),
        (graph.indices, there.copy(graph.indices)),
    ):
        assert (kept.dtype, device.download(kept).tolist()) == (np.uint32, host.tolist())


def test_arrays_that_have_only_the_interface(gpu: FakeCupy) -> None:
    arrays = [*gpu_arrays(), fake_cupy.array_of(WEIGHTS, np.float64)]
    only = [SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__, on_gpu=array) for array in arrays]
    graph = gp.Graph.from_csr(*only)
    assert graph.weights is not None
    assert (graph.indices.tolist(), graph.weights.tolist()) == (INDICES, WEIGHTS)


def test_strided_arrays_on_a_gpu_are_refused(gpu: FakeCupy) -> None:
    strided, indices = gpu_arrays()
    strided.flags = SimpleNamespace(c_contiguous=False)
    with pytest.raises(ArgumentTypeError, match=r"must have one dimension and be contiguous: use cupy\.ascont"):
        gp.Graph.from_csr(strided, indices)


_INTERFACE = {"shape": (3,), "typestr": "<i4", "data": (0x1000, False), "version": 3}


class _NeedsGradient:
    """A tensor whose interface raises, as PyTorch's does."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad: use var.detach()")


@pytest.mark.parametrize(
    ("array", "kind", "message"),
    [
        (SimpleNamespace(__cuda_array_interface__=5), ArgumentTypeError, "cannot be used: TypeError"),
        (SimpleNamespace(__cuda_array_interface__={}), ArgumentTypeError, r"cannot be used: KeyError\('data'\)"),
        (SimpleNamespace(__cuda_array_interface__=_INTERFACE | {"data": None}), ArgumentTypeError, "cannot be used"),
        (_NeedsGradient(), ArgumentTypeError, r"cannot be used: .*use var\.detach\(\)"),
        (
            SimpleNamespace(__cuda_array_interface__=_INTERFACE, __dlpack_device__=lambda: None),
            ArgumentTypeError,
            "cannot be used: TypeError",
        ),
        (SimpleNamespace(__cuda_array_interface__=_INTERFACE), DeviceError, "the GPU of an array at 0x1000 cannot be"),
        (
            SimpleNamespace(__cuda_array_interface__=_INTERFACE | {"data": (0x7700, False)}),
            ArgumentTypeError,
            "is not in the memory of a GPU: 0x7700",
        ),
        (
            SimpleNamespace(__cuda_array_interface__={"data": (0, False)}, on_gpu=None),
            ArgumentTypeError,
            "in the memory of a GPU cannot be used: 'version'",
        ),
    ],
)
def test_malformed_arrays_on_a_gpu(
    gpu: FakeCupy, monkeypatch: pytest.MonkeyPatch, array: Any, kind: Any, message: str
) -> None:
    attributes = gpu.cuda.runtime.pointerGetAttributes
    # CUDA answers -2 for memory of the host that it does not know.
    host = SimpleNamespace(device=-2)
    monkeypatch.setattr(
        gpu.cuda.runtime, "pointerGetAttributes", lambda ptr: host if ptr == 0x7700 else attributes(ptr)
    )
    with pytest.raises(kind, match=message):
        gp.Graph.from_edgelist(array, array)
    with pytest.raises(kind, match=message):
        gp.Graph.from_csr(array, array)


def test_an_array_on_a_gpu_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = SimpleNamespace(__cuda_array_interface__={"data": (0, False)})

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("gpu_pregel.host.arguments.import_module", missing)
    with pytest.raises(MissingPackageError, match=r"in the memory of a GPU needs the package cupy: pip install"):
        gp.Graph.from_csr(tensor, tensor)
    with pytest.raises(MissingPackageError, match="needs the package cupy"):
        gp.Graph.from_edgelist(tensor, tensor)


def test_tensors_on_other_devices_are_refused() -> None:
    array = np.zeros(1, np.int64)

    def refuse(**_: object) -> None:
        raise BufferError("device type 8")

    metal = SimpleNamespace(__dlpack__=refuse, __dlpack_device__=lambda: (8, 0))
    with pytest.raises(ArgumentTypeError, match="indptr cannot be imported by DLPack: device type 8"):
        gp.Graph.from_dlpack(metal, array)
