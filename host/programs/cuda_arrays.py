"""Arrays of a run on a CUDA device: those of a partition, new ones, and single elements of large ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.partitions import Partition
from gpu_pregel.host.programs.exchange import PartitionState
from gpu_pregel.host.programs.state import Posted
from gpu_pregel.kernels.programs.chain_cuda import LISTED, list_frontier
from gpu_pregel.kernels.programs.combine_cuda import inbox_dtypes
from gpu_pregel.kernels.programs.elements_cuda import make_gather, make_scatter
from gpu_pregel.kernels.programs.fields import Fields
from gpu_pregel.kernels.programs.rows_cuda import HUB_EDGES

Array = np.ndarray[Any, Any]


class CudaPartition(PartitionState):
    """The state of one partition on a CUDA device, with the device's copies of its edges."""

    def __init__(self, partition: Partition, graph: DeviceGraph) -> None:
        super().__init__(partition)
        self.out_edges = graph.edges(partition.out_edges, HUB_EDGES, sparse=True)
        self.in_edges = graph.edges(partition.in_edges, HUB_EDGES, sparse=False)
        self.pieces: tuple[Any, ...] = ()
        """Messages of the pieces of long rows."""


def make_array(device: Device, size: int, dtype: Any, start: Any) -> Any:
    """Return a new array, filled with ``start`` unless that is None."""
    return device.empty(size, dtype) if start is None else device.full(size, start, dtype)


def read_elements(device: Device, array: Any, places: Array) -> Array:
    """Return the elements of a device array at some places, on the host."""
    if not len(places):
        return np.zeros(0, array.dtype)
    size = array.dtype.itemsize
    found = device.empty(len(places), f"u{size}")
    device.launch(
        make_gather(size), len(places), array.view(f"u{size}"), device.upload(places.astype(np.uint32)), found
    )
    downloaded: Array = device.download(found).view(array.dtype)
    return downloaded


def write_elements(device: Device, array: Any, places: Array, values: Array) -> None:
    """Set the elements of a device array at some places, which differ."""
    if not len(places):
        return
    kind = f"u{array.dtype.itemsize}"
    given = device.upload(np.ascontiguousarray(values, array.dtype).view(kind))
    where = device.upload(places.astype(np.uint32))
    device.launch(make_scatter(array.dtype.itemsize), len(places), array.view(kind), where, given)


def list_bitmap(device: Device, bitmap: Any, degrees: Any, found: Any, state: Any) -> Array:
    """Return the vertices of a bitmap in ascending order, on the host: the device lists them in ``found``."""
    state[LISTED] = 0
    device.launch(list_frontier, len(bitmap), bitmap, degrees, 0, found, state)
    count = int(device.download(state)[LISTED])
    state[LISTED] = 0
    return np.sort(device.download(found[:count])).astype(np.int64)


def upload_messages(device: Device, posted: Posted, message: Fields) -> tuple[Any, ...]:
    """Return posted messages as the device's inbox holds them; fields that a program does not declare are 0."""
    dtypes, columns = inbox_dtypes(message), list(posted.messages)
    columns += [np.zeros(len(posted.vertices))] * (len(dtypes) - len(columns))
    return tuple(device.upload(one.astype(dtype)) for one, dtype in zip(columns, dtypes, strict=True))
