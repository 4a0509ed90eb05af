"""Arrays of a run on a CUDA device: those of a partition, new ones, and single elements of large ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.partitions import Partition, full_bitmap
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.state import Posted
from gpu_pregel.host.traverse.exchange import PartitionState
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS
from gpu_pregel.kernels.programs.chain_cuda import LISTED, STATE_LENGTH, list_frontier
from gpu_pregel.kernels.programs.combine_cuda import inbox_dtypes
from gpu_pregel.kernels.programs.figures_cuda import FIGURES, ROW
from gpu_pregel.kernels.traverse.elements_cuda import make_gather, make_scatter
from gpu_pregel.kernels.traverse.fields import Fields
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES

Array = np.ndarray[Any, Any]


class CudaPartition(PartitionState):
    """The state of one partition on a CUDA device, with the device's copies of its edges."""

    def __init__(self, partition: Partition, graph: DeviceGraph) -> None:
        super().__init__(partition)
        self.out_edges = graph.edges(partition.out_edges, HUB_EDGES, sparse=True)
        self.in_edges = graph.edges(partition.in_edges, HUB_EDGES, sparse=False)
        self.pieces: tuple[Any, ...] = ()
        """As ``mirrors``, for the pieces of long rows."""


def make_array(device: Device, size: int, dtype: Any, start: Any) -> Any:
    """Return a new array, filled with ``start`` unless that is None."""
    return device.empty(size, dtype) if start is None else device.full(size, start, dtype)


def array_sizes(
    program: CompiledProgram, n: int, pieces: list[int], tiles: int, rows: dict[str, int], *, queue: int
) -> dict[str, list[tuple[int, Any, Any]]]:
    """Return size, dtype and initial value, or None, of the arrays of a run's state, by their purpose.

    ``pieces`` has the number of pieces of long rows of each partition, ``rows`` the sizes of the rows of figures, and
    ``queue`` is the capacity of a queue of vertices.
    """
    words, has_wake = 2 * -(-n // 64), program.declaration.wake is not None
    inboxes = inbox_dtypes(program.message)
    starts = program.identity if program.message.is_tuple else (program.identity,)
    signals = () if program.signal is None else program.message.dtypes
    folded = [(1, dtype, start) for _, dtype, start in program.aggregates]
    return {
        "values": [(n, dtype, None) for dtype in program.value.dtypes],
        "bitmaps": [(words, np.uint32, None), *[(words, np.uint32, 0)] * (1 + has_wake)],
        "inbox": [(n, dtype, start) for start, dtype in zip(starts, inboxes, strict=True)],
        "signals": [(n, dtype, None) for dtype in signals],
        **{f"pieces{k}": mirror_sizes(program.message, max(1, count)) for k, count in enumerate(pieces)},
        "hidden": [(1, np.int64, -1)],
        "aggregates": folded,
        "totals": folded,
        "counts": [(max(1, tiles) * FIGURES, np.int64, None)],
        "partials": [((tiles + 1) * WARPS, dtype, None) for _, dtype, _ in program.aggregates],
        "control": [(ROW + rows["control"], np.int64, 0)],
        "queues": [(queue, np.uint32, None)] * 2,
        "chain state": [(STATE_LENGTH, np.int64, 0)],
        "chain control": [(ROW + rows["chain control"], np.int64, 0)],
        "woken": [(n, np.uint32, None)] if has_wake else [],
        "no weights": [(1, np.float32, 0)],
        "no rows": [(0, np.uint32, None)],
    }


def mirror_sizes(message: Fields, count: int) -> list[tuple[int, Any, Any]]:
    """Return the same of messages for that many rows, and of the bitmap of those that have one."""
    return [*((count, dtype, None) for dtype in inbox_dtypes(message)), (-(-count // WARP), np.uint32, 0)]


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
    return np.sort(device.download(found[:count])).astype(np.int64)


def upload_messages(device: Device, posted: Posted, message: Fields) -> tuple[Any, ...]:
    """Return posted messages as mirrors; fields that a program does not declare are 0."""
    dtypes, columns, count = inbox_dtypes(message), list(posted.messages), len(posted.vertices)
    columns += [np.zeros(count)] * (len(dtypes) - len(columns))
    uploaded = (device.upload(one.astype(dtype)) for one, dtype in zip(columns, dtypes, strict=True))
    return *uploaded, device.upload(full_bitmap(count).view(np.uint32))
