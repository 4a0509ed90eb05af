"""The data of a graph: an immutable CSR with the user's ids, and facts derived from it on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.devices import DeviceChoice, DeviceName, choose_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.memory import format_bytes
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.devices.user_arrays import find_device
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.edge_arrays import count_self_loops, has_duplicates, lock
from gpu_pregel.host.graphs.partitions import Partition, partition_graph

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]
Fact = TypeVar("Fact")


class MappedFile(NamedTuple):
    """A file that is mapped into memory: to read its pages once they are cut off ends the process."""

    path: str
    device: int
    inode: int
    size: int

    @classmethod
    def of(cls, path: str) -> MappedFile:
        """Return the file that has a path now."""
        status = os.stat(path)
        return cls(os.path.abspath(path), status.st_dev, status.st_ino, status.st_size)

    def check(self) -> None:
        """Raise ``GraphError`` if the file has been truncated; one that has been replaced or deleted stays mapped."""
        try:
            now = MappedFile.of(self.path)
        except OSError:
            return
        if now[1:3] == self[1:3] and now.size < self.size:
            raise GraphError(
                f"the graph is mapped from {self.path}, which another program has truncated from {self.size:,} to "
                f"{now.size:,} bytes: read a complete file, with mmap=False if it may change meanwhile"
            )


class CSRGraph:
    """The arrays of a graph and the facts derived from them; the base of :class:`Graph`."""

    _file: MappedFile | None = None
    """The file that holds the arrays."""

    def __init__(self, csr: CSR | None = None, *, directed: bool | None = None, ids: Array | None = None) -> None:
        if not isinstance(csr, CSR) or directed is None:
            raise ArgumentTypeError(
                "graphs are not created by calling Graph: use gp.read_graph(path), Graph.from_edgelist(src, dst) or "
                "another constructor, such as Graph.from_networkx, from_scipy, from_pandas or from_csr"
            )
        self._csr = _locked(csr)
        self._is_directed = directed
        self._ids = None if ids is None else lock(ids)
        self._facts: dict[str, Any] = {}

    def __getstate__(self) -> tuple[CSR, bool, Array | None]:
        return self._csr, self._is_directed, self._ids

    def __setstate__(self, state: tuple[CSR, bool, Array | None]) -> None:
        csr, directed, ids = state
        CSRGraph.__init__(self, csr, directed=directed, ids=ids)

    @property
    def indptr(self) -> npt.NDArray[np.int64]:
        """int64[n + 1]: row ``u`` of the stored edges is ``indices[indptr[u]:indptr[u + 1]]``."""
        return self._csr.indptr

    @property
    def indices(self) -> npt.NDArray[np.uint32]:
        """uint32[m]: the destination of each stored edge."""
        return self._csr.indices

    @property
    def weights(self) -> Array | None:
        """The weight of each stored edge [m], or None; int32, int64, uint32, uint64, float32 or float64."""
        return self._csr.weights

    @property
    def is_directed(self) -> bool:
        """Whether the edges have a direction."""
        return self._is_directed

    @property
    def ids(self) -> Array | None:
        """The user's id of each vertex [n], or None if the ids are the vertex numbers."""
        return self._ids

    @property
    def num_vertices(self) -> int:
        """Number of vertices, n."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges, as in NetworkX: an undirected edge counts once, parallel edges each.

        Of an undirected graph the first use counts the self-loops, which takes a pass over the edges.
        """
        if self.is_directed:
            return self.num_stored_edges
        return self._fact("num_edges", lambda: (self.num_stored_edges + count_self_loops(self._csr)) // 2)

    @property
    def num_stored_edges(self) -> int:
        """Number of stored edges, m: an undirected edge counts twice, a self-loop once."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Size of the CSR in bytes."""
        return sum(part.nbytes for part in self._csr if part is not None)

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        weights = "" if self.weights is None else f", {self.weights.dtype} weights"
        return f"<Graph: {self.num_vertices:,} vertices, {self.num_stored_edges:,} stored edges, {kind}{weights}>"

    # Facts derived on first use and cached by name.

    def _fact(self, name: str, derive: Callable[[], Fact]) -> Fact:
        if name not in self._facts:
            self._facts[name] = derive()
        return cast(Fact, self._facts[name])

    @property
    def csc(self) -> CSR:
        """The in-edges: ``indptr``, ``indices`` (sources), ``weights``; the CSR itself if the graph is undirected."""
        if not self.is_directed:
            return self._csr
        return self._fact("csc", lambda: _locked(host_csr.transpose(self._csr, threads=thread_count(None))))

    @property
    def out_degrees(self) -> npt.NDArray[np.int64]:
        """int64[n]: number of stored out-edges of each vertex."""
        return self._fact("out_degrees", lambda: lock(np.diff(self.indptr)))

    @property
    def in_degrees(self) -> npt.NDArray[np.int64]:
        """int64[n]: number of stored in-edges of each vertex."""
        if not self.is_directed:
            return self.out_degrees
        return self._fact("in_degrees", lambda: lock(np.bincount(self.indices, minlength=self.num_vertices)))

    @property
    def has_duplicates(self) -> bool:
        """Whether any vertex has more than one stored edge to the same destination."""
        return self._fact("has_duplicates", lambda: has_duplicates(self._csr))

    @property
    def content_hash(self) -> int:
        """A 64-bit hash of the stored edges and their weights.

        It does not depend on ``num_vertices``, ``is_directed`` or ``ids``.
        """
        return self._fact("content_hash", lambda: host_csr.hash_edges(self._csr, threads=thread_count(None)))

    def _partitions(
        self, count: int, *, with_pull: bool = True, transpose: bool = False, threads: int
    ) -> list[Partition]:
        """Divide the graph into partitions of out-edges and, if ``with_pull``, in-edges."""

        def derive() -> list[Partition]:
            out = self.csc if transpose else self._csr
            back = self._csr if transpose else self.csc if with_pull else None
            return partition_graph(out, back, count, threads=threads)

        return self._fact(f"partitions {count} {with_pull} {transpose and self.is_directed}", derive)

    def _on(self, device: Device) -> DeviceGraph:
        """Return the cache of this graph's arrays on a device."""
        memory = device.name.partition(":")[0] if device.name.startswith("emulated") else device.name
        return self._fact(f"copies on {memory}", lambda: DeviceGraph(device, self.num_stored_edges))

    def _keep_on_device(self, given: tuple[Any, Any, Any], *, shared: bool) -> None:
        """Keep those of the arrays from which the CSR was made that are in device memory, for use on that device."""
        for host, values in zip(self._csr, given, strict=True):
            device = find_device(values)
            if host is not None and device is not None:
                self._facts["given on"] = device.name
                there = self._on(device)
                there.keep(host, there.offset if host is self.indptr else host.dtype, device, values, shared=shared)

    def _choose_device(self, what: str, gpu_from: int | None, device: DeviceName, threads: int | None) -> DeviceChoice:
        """Return the device for work on this graph, which a GPU does faster from ``gpu_from`` stored edges on."""
        given_on: str | None = self._facts.get("given on")
        if given_on is not None and not given_on.startswith("cuda"):
            given_on = None
        return choose_device(device, threads, what, gpu_from, self.num_stored_edges, given_on)

    def _csr_on(self, device: Device, state: int) -> tuple[Any, Any]:
        """Return ``indptr`` and ``indices`` on a device, for work that needs ``state`` bytes in addition."""
        if device.is_host:
            return self.indptr, self.indices
        return self._on(device).csr(self._csr, state)

    def to_ids(self, vertices: Array) -> Array:
        """Translate vertex numbers into the user's ids; integers are int64, or uint64 if one is beyond."""
        return np.asarray(vertices, np.int64) if self.ids is None else self.ids[vertices]

    def describe(self) -> str:
        """Return a one-line summary: size, kind and memory."""
        return f"{self!r}, {format_bytes(self.nbytes)}".replace("<Graph: ", "").replace(">", "")


def _locked(csr: CSR) -> CSR:
    weights = None if csr.weights is None else lock(csr.weights)
    return CSR(lock(csr.indptr), lock(csr.indices), weights)
