"""An exchange that really copies, and what tests of exchanges share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.host.graphs.partitions import pack_bits
from gpu_pregel.host.traverse.exchange import Array, PartitionedState, PartitionState, Signals

POISON = 0xAB
"""Fills what a partition must not read."""


class CopyingExchange:
    """Sends everything through buffers of bytes on the host, and each partition only what belongs to it."""

    shares_memory = False

    def __init__(self, device: Device) -> None:
        self._device = device
        self.bytes_sent = 0

    def send_signals(self, state: PartitionedState) -> list[Signals]:
        return [self._signals_for(receiver, state) for receiver in state.partitions]

    def _signals_for(self, receiver: PartitionState, state: PartitionedState) -> Signals:
        rows = receiver.partition.out_edges.rows
        n = state.partitions[-1].partition.last
        vertices = np.arange(n, dtype=np.uint32) if rows is None else rows
        by_row = self._device.is_host
        size = len(vertices) if by_row else n
        arrays = [poisoned(size, array.dtype) for array in state_arrays(receiver)]
        active = np.zeros(n, bool)
        for sender in state.partitions:
            first, last = sender.partition.first, sender.partition.last
            wanted = vertices[(first <= vertices) & (vertices < last)]
            bits = flags_of(self._device.download(sender.vertices.frontier))[: last - first]
            sent = wanted[bits[wanted - first]]
            places = np.searchsorted(vertices, sent) if by_row else sent
            active[sent] = True
            for array, own in zip(arrays, state_arrays(sender), strict=True):
                array[places] = self._sent(self._device.download(own)[sent - first])
        words = pack_bits(active)
        numbers = receiver.partition.sources.numbers
        if by_row and numbers is not None:
            words = words[numbers]
        out_degrees, in_degrees, *values = (self._device.upload(array) for array in arrays)
        if self._device.is_host:
            out_degrees, in_degrees = read_only(out_degrees), read_only(in_degrees)
        frontier = self._device.upload(words.view(np.uint64 if self._device.is_host else np.uint32))
        return Signals(out_degrees, in_degrees, tuple(values), frontier, by_row=by_row)

    def send_mirrors(self, state: PartitionedState) -> None:
        for sender in state.partitions:
            rows = sender.partition.in_edges.rows
            assert rows is not None
            *messages, words = [self._device.download(array) for array in sender.mirrors]
            received = flags_of(words)
            for owner in state.partitions:
                first, last = np.searchsorted(rows, [owner.partition.first, owner.partition.last])
                if first < last:
                    own = pack_bits(received[first:last]).view(words.dtype)
                    sent = [self._sent(array) for array in (*(one[first:last] for one in messages), own)]
                    state.deliver(rows[first:last], tuple(map(self._device.upload, sent)), owner)

    def gather_figures(self, figures: list[Array]) -> list[Array]:
        return [self._sent(array) for array in figures]

    def gather_masters(self, device: Device, arrays: Sequence[Any], bounds: Sequence[int]) -> list[Any]:
        return [self._masters_of_all(device, arrays, bounds) for _ in arrays]

    def _masters_of_all(self, device: Device, arrays: Sequence[Any], bounds: Sequence[int]) -> Any:
        gathered = poisoned(len(arrays[0]), arrays[0].dtype)
        for array, (first, last) in zip(arrays, pairwise(bounds), strict=True):
            gathered[first:last] = self._sent(device.download(array)[first:last])
        return device.upload(gathered)

    def _sent(self, array: Array) -> Array:
        packet = array.tobytes()
        self.bytes_sent += len(packet)
        return np.frombuffer(packet, array.dtype).reshape(array.shape).copy()


def state_arrays(part: PartitionState) -> list[Any]:
    return [part.vertices.out_degrees, part.vertices.in_degrees, *part.vertices.values]


def poisoned(size: int, dtype: Any) -> Array:
    return np.full(size * np.dtype(dtype).itemsize, POISON, np.uint8).view(dtype)


def flags_of(words: Array) -> Array:
    return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
