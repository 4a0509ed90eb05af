"""Tests of the order between a GPU's stream and those of users: nothing is read, overwritten or reused too early.

The fake CuPy runs a stream's work as late as it may. Each scenario returns what it finds beside what it should find; it
must also go wrong where one of the rules that it needs is taken away.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host import devices
from gpu_pregel.host.devices import cuda, cupy_calls, uploads, user_arrays
from tests.host.devices import fake_cupy
from tests.host.devices.fake_cupy import FakeCupy, Stream
from tests.host.devices.test_cuda import H100, FakeLauncher

SIZE = 6
OWN = fake_cupy.FIRST_HANDLE + 1
"""The handle of the device's stream, the first that is created."""
Found = tuple[Any, Any]


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    fake = fake_cupy.install(monkeypatch)
    monkeypatch.setattr(cuda, "find_gpu", lambda number: H100)
    monkeypatch.setattr(cuda, "_make_launcher", lambda gpu, stream, calls: FakeLauncher(stream))
    monkeypatch.setattr(uploads, "UPLOAD_BYTES", 16)
    monkeypatch.setattr(devices, "_devices", {})
    return fake


@pytest.fixture
def device(fake: FakeCupy) -> cuda.CudaDevice:
    found = devices.get_device("cuda:1")
    assert isinstance(found, cuda.CudaDevice)
    return found


def write(stream: Stream, array: Any, value: int) -> None:
    """Let a user's kernel fill an array."""
    memory = array.memory
    stream.work.append(lambda: memory.fill(value))


def read(stream: Stream, array: Any) -> list[int]:
    """Let a user's kernel read an array; the list is filled when it runs."""
    found: list[int] = []
    memory = array.memory
    stream.work.append(lambda: found.extend(memory.tolist()))
    return found


def add_one(size: int, array: Any) -> None:
    """Stand for a kernel of this package."""
    array += np.int32(1)


# Scenarios.


def written_on_the_default_stream(device: cuda.CudaDevice) -> Found:
    """A user writes an array on the legacy default stream, which is current."""
    array = fake_cupy.array_of([0] * SIZE, np.int32)
    write(Stream.null, array, 7)
    return device.download(device.adopt(array)).tolist(), [7] * SIZE


def written_on_the_current_stream(device: cuda.CudaDevice) -> Found:
    """A user writes an array on a stream of his own, which does not block."""
    array, stream = fake_cupy.array_of([0] * SIZE, np.int32), Stream(non_blocking=True)
    write(stream, array, 7)
    with stream:
        found = device.download(device.adopt(array)).tolist()
    # The host has not waited for the user's stream.
    return (found, stream.waits), ([7] * SIZE, 0)


def written_by_another_library(device: cuda.CudaDevice) -> Found:
    """A tensor's library lets the stream that it is told wait for its own stream."""
    array, stream = fake_cupy.array_of([0] * SIZE, np.int32), Stream(non_blocking=True)
    write(stream, array, 7)

    def export(*, stream: int, producer: Stream = stream) -> Any:
        Stream.every[stream].work.append(producer.work.until_now())
        return array

    tensor = SimpleNamespace(__dlpack__=export, __dlpack_device__=lambda: (2, 1))
    return (device.download(device.adopt(tensor)).tolist(), stream.waits), ([7] * SIZE, 0)


def written_before_streams_were_named(device: cuda.CudaDevice) -> Found:
    """An array has version 2 of the CUDA array interface, which does not name its stream."""
    array, stream = fake_cupy.array_of([0] * SIZE, np.int32), Stream(non_blocking=True)
    write(stream, array, 7)
    old = SimpleNamespace(__cuda_array_interface__={"version": 2}, on_gpu=array)
    return device.download(device.adopt(old)).tolist(), [7] * SIZE


def read_by_the_user(device: cuda.CudaDevice) -> Found:
    """A user reads an array on his stream after a kernel has been launched there."""
    stream = Stream(non_blocking=True)
    with stream:
        array = device.upload(np.arange(SIZE, dtype=np.int32))
        device.launch(add_one, SIZE, array)
        found = read(stream, array)
    stream.synchronize()
    return found, list(range(1, SIZE + 1))


def written_by_the_user(device: cuda.CudaDevice) -> Found:
    """A user writes an array on his stream before a kernel is launched there."""
    stream = Stream(non_blocking=True)
    with stream:
        array = device.upload(np.arange(SIZE, dtype=np.int32))
        write(stream, array, 5)
        device.launch(add_one, SIZE, array)
    return (device.download(array).tolist(), stream.waits), ([6] * SIZE, 0)


def written_between_launches(device: cuda.CudaDevice) -> Found:
    """A user writes an array of the device on the default stream between two launches."""
    array = device.upload(np.arange(SIZE, dtype=np.int32))
    device.launch(add_one, SIZE, array)
    before = read(Stream.null, array)
    write(Stream.null, array, 5)
    device.launch(add_one, SIZE, array)
    return (device.download(array).tolist(), before), ([6] * SIZE, list(range(1, SIZE + 1)))


def result_used_elsewhere(device: cuda.CudaDevice) -> Found:
    """A user reads a result on another stream and drops it, and a new array of its size is written."""
    graph = gp.Graph.from_edgelist([0], [1], num_vertices=SIZE)
    labels = device.upload(np.arange(SIZE, dtype=np.int32))
    device.launch(add_one, SIZE, labels)
    result = gp.Components(graph=graph, stats={}, trace=(), labels=labels)
    del labels
    # A stream that does not block, is not current and is not known to this package.
    stream = Stream(non_blocking=True)
    part = result.labels[1:]
    found = read(stream, part)
    del result
    other = device.full(SIZE, -1, np.int32)
    del part
    gc.collect()
    third = device.full(SIZE, -2, np.int32)
    written = device.download(other).tolist() + device.download(third).tolist()
    stream.synchronize()
    return (found, written), (list(range(2, SIZE + 1)), [-1] * SIZE + [-2] * SIZE)


def result_before_it_is_complete(device: cuda.CudaDevice) -> Found:
    """A user reads a result at once, on another stream."""
    array, stream = device.full(SIZE, 3, np.int32), Stream(non_blocking=True)
    device.launch(add_one, SIZE, array)
    found = read(stream, user_arrays.hand_out(array))
    stream.synchronize()
    return found, [4] * SIZE


def released_by_its_owner(device: cuda.CudaDevice) -> Found:
    """An array that a kernel reads is dropped, and its owner's stream reuses its memory."""
    stream = Stream(non_blocking=True)
    with fake_cupy.Device(1), stream:
        array = cupy_calls.empty(SIZE, np.int32)
        write(stream, array, 7)
        adopted = device.adopt(array)
    target = device.zeros(SIZE, np.int32)
    memory, own = adopted.memory, target.memory
    device._stream.work.append(lambda: own.__setitem__(slice(None), memory))
    del array, adopted
    with fake_cupy.Device(1), stream:
        again = cupy_calls.empty(SIZE, np.int32)
        write(stream, again, 9)
    stream.synchronize()
    return (device.download(target).tolist(), again.data.ptr), ([7] * SIZE, memory.ctypes.data)


def uploaded_in_parts(device: cuda.CudaDevice) -> Found:
    """The host array is converted, modified at once, and larger than both buffers."""
    source = np.arange(21, dtype=np.int64)
    array = device.upload(source, np.uint32)
    more = device.upload(source[::-2], np.uint16)
    source[:] = 0
    waited = device._stream.waits
    found = device.download(array).tolist() + device.download(more).tolist()
    return (found, waited), ([*range(21), *range(20, -1, -2)], 0)


def modified_after_a_copy(device: cuda.CudaDevice) -> Found:
    """A user modifies an array on a stream that does not block, once its copy has been made."""
    array, stream = device.upload(np.arange(SIZE, dtype=np.int32)), Stream(non_blocking=True)
    device._stream.synchronize()
    copied = device.copy(array, np.uint32)
    write(stream, array, 9)
    stream.synchronize()
    return device.download(copied).tolist(), list(range(SIZE))


def moved_between_writes(device: cuda.CudaDevice) -> Found:
    """An array is moved into part of another one; a user writes it before and after, on the current stream."""
    array, target, stream = device.zeros(SIZE, np.int32), device.zeros(2 * SIZE, np.int32), Stream(non_blocking=True)
    device._stream.synchronize()
    waited = device._stream.waits
    with stream:
        write(stream, array, 7)
        device.move(target[SIZE:], array)
        write(stream, array, 9)
    # The host has not waited.
    waited = device._stream.waits - waited + stream.waits
    stream.synchronize()
    return (device.download(target).tolist(), waited), ([0] * SIZE + [7] * SIZE, 0)


# Rules, each of which is taken away.


def without_blocking(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cupy_calls, "new_stream", lambda: Stream(non_blocking=True))


def without_events(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cupy_calls, "wait_for_stream", lambda *_: None)


def without_the_first_event(patch: pytest.MonkeyPatch) -> None:
    """Let only the caller's stream wait."""
    real = cupy_calls.wait_for_stream
    patch.setattr(cupy_calls, "wait_for_stream", lambda one, other: real(one, other) if one != OWN else None)


def without_the_second_event(patch: pytest.MonkeyPatch) -> None:
    real = cupy_calls.wait_for_stream
    patch.setattr(cupy_calls, "wait_for_stream", lambda one, other: real(one, other) if one == OWN else None)


def without_the_current_stream(patch: pytest.MonkeyPatch) -> None:
    """Import tensors for the default stream, while another one uses them."""
    patch.setattr(cupy_calls, "from_dlpack", lambda tensor: tensor.__dlpack__(stream=Stream(non_blocking=True).ptr))


def with_streams_named_before(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cupy_calls, "_STREAMS_NAMED", 2)


def without_loans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cuda.CudaDevice, "hand_out", lambda device, array: array)


def without_waiting_for_loans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cupy_calls, "synchronize_device", lambda device: None)


def without_completion(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cupy_calls, "synchronize", lambda stream: None)


def without_waiting_for_buffers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cupy_calls, "wait_for", lambda event: None)


def with_waiting_for_copies(patch: pytest.MonkeyPatch) -> None:
    real = cupy_calls.copy_in

    def copy_in(target: Any, source: Any, stream: Stream) -> None:
        real(target, source, stream)
        stream.synchronize()

    patch.setattr(cupy_calls, "copy_in", copy_in)


SCENARIOS: dict[Callable[[cuda.CudaDevice], Found], tuple[Callable[[pytest.MonkeyPatch], None], ...]] = {
    written_on_the_default_stream: (without_blocking,),
    written_on_the_current_stream: (without_events, without_the_first_event),
    written_by_another_library: (without_the_current_stream,),
    written_before_streams_were_named: (with_streams_named_before,),
    read_by_the_user: (without_events, without_the_second_event),
    written_by_the_user: (without_events, without_the_first_event),
    written_between_launches: (without_blocking,),
    result_used_elsewhere: (without_loans, without_waiting_for_loans),
    result_before_it_is_complete: (without_loans, without_completion),
    released_by_its_owner: (without_completion,),
    uploaded_in_parts: (without_waiting_for_buffers, with_waiting_for_copies),
    modified_after_a_copy: (without_completion,),
    moved_between_writes: (without_events, without_the_second_event),
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_scenario(scenario: Any, device: cuda.CudaDevice) -> None:
    found, expected = scenario(device)
    assert found == expected
    assert not fake_cupy.stack


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [(scenario, fault) for scenario, faults in SCENARIOS.items() for fault in faults],
    ids=lambda function: function.__name__,
)
def test_a_scenario_without_a_rule(scenario: Any, fault: Any, fake: FakeCupy, monkeypatch: Any) -> None:
    fault(monkeypatch)
    found, expected = scenario(devices.get_device("cuda:1"))
    assert found != expected


def test_the_host_fills_one_buffer_while_the_gpu_reads_the_other(device: cuda.CudaDevice, fake: FakeCupy) -> None:
    array, source = device.empty(12, np.uint32), np.arange(12, dtype=np.uint32)
    done = device._stream.work.done
    with device._current():
        device._uploads.copy(array[:8], source[:8])
        assert device._stream.work.done == done
        device._uploads.copy(array[8:], source[8:])
        assert device._stream.work.done > done
    assert device.download(array).tolist() == source.tolist()
    assert fake.pinned.count(16) == 2


def test_only_dropped_results_make_the_device_wait(device: cuda.CudaDevice) -> None:
    kept = device.hand_out(device.full(SIZE, 1, np.int32))
    empty = device.hand_out(device.empty(0, np.int32))
    device.full(SIZE, 1, np.int32)
    assert device._device.waits == 0
    del kept, empty
    gc.collect()
    for work in (lambda: device.full(SIZE, 1, np.int32), device.available_memory, device.trim):
        work()
        assert device._device.waits == 1


def test_threads_that_return_dropped_results_take_turns(device: cuda.CudaDevice) -> None:
    class Slow(deque[Any]):
        def __len__(self) -> int:
            size = super().__len__()
            time.sleep(0.02)
            return size

    device._dropped = Slow([device.full(SIZE, 1, np.int32)])
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(device._reclaim) for _ in range(2)]
    assert [one.result() for one in found] == [None, None]
    assert not device._dropped


def test_tuples_are_handed_out_part_by_part(device: cuda.CudaDevice) -> None:
    arrays = [device.full(SIZE, value, np.int32) for value in (1, 2)]
    found = user_arrays.hand_out((*arrays, "text", None))
    assert [device.download(array).tolist() for array in found[:2]] == [[1] * SIZE, [2] * SIZE]
    assert all(one is not other for one, other in zip(found, arrays, strict=False))
    assert found[2:] == ("text", None)
