"""Tests of the device that runs CUDA kernels on GPGPU-Sim; those that need the simulator are skipped without it."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.simulate import ALGORITHMS, SimulatedRun, by_kernel
from benchmarks.simulator import process
from benchmarks.simulator.device import LaunchRecord, SimulatedDevice, SimulatedMemory, resources, simulated
from benchmarks.simulator.process import SimulationError, Simulator, why_unavailable
from benchmarks.simulator.ptx import UnsupportedInstructionError, rewrite
from tests.test_benchmarks_convergence import THREADED_SUM

needs_simulator = pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable()))

MASK = (1 << 64) - 1
KERNEL = """
.version 9.5
.target sm_75
.address_size 64

	// .globl	_Zlong_name
.common .global .align 8 .u64 _ZNumbaEnv;
.visible .shared .align 8 .b8 memory_1[64];

.visible .entry _Zlong_name(
	.param .u64 _Zlong_name_param_0
)
.maxntid 64, 1, 1
{
	.reg .pred 	%p<9>;
	.reg .b32 	%r<9>;
	.reg .f32 	%f<9>;
	.reg .f64 	%fd<9>;
	.reg .b64 	%rd<9>;
	.loc	1 78 0

	ld.param.u64 	%rd0, [_Zlong_name_param_0];
	cvta.to.global.u64 	%rd0, %rd0;
	mov.u32 	%r0, %tid.x;
	mul.wide.u32 	%rd1, %r0, 32;
	add.s64 	%rd1, %rd0, %rd1;
	ld.global.u64 	%rd2, [%rd1];
	ld.global.u64 	%rd3, [%rd1+8];
	ld.global.u64 	%rd4, [%rd1+16];
	cvt.u32.u64 	%r2, %rd2;
	cvt.u32.u64 	%r3, %rd3;
	setp.ne.s64 	%p1, %rd4, 0;
	mov.u64 	%rd5, 0;
INSTRUCTIONS
	st.global.u64 	[%rd1+24], %rd5;
	ret;

}
	.file	1 "/some/where.py"
	.section	.debug_str
	{
$L__info_string1:
.b8 103,112
	}
"""
"""Each thread reads x, y and z and stores a result; INSTRUCTIONS compute %rd5 from %rd2, %rd3, %p1 (z != 0)."""


def signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def as_float(number: int) -> int:
    return int(struct.unpack("<I", struct.pack("<f", np.float32(signed(number))))[0])


def as_double(number: int) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", float(number)))[0])


def reverse(number: int, width: int) -> int:
    return int(f"{number:0{width}b}"[::-1], 2)


LOW = (1 << 32) - 1
INSTRUCTIONS: dict[str, Callable[[int, int, int], int]] = {
    "mul.hi.s64 %rd5, %rd2, %rd3;": lambda x, y, z: (signed(x) * signed(y)) >> 64,
    "mul.hi.u64 %rd5, %rd2, %rd3;": lambda x, y, z: (x * y) >> 64,
    "mul.hi.s64 %rd5, %rd2, 6148914691236517206;": lambda x, y, z: (signed(x) * 6148914691236517206) >> 64,
    "mul.lo.s64 %rd5, %rd2, -4658895280553007687;": lambda x, y, z: x * -4658895280553007687,
    "bfi.b64 %rd5, %rd2, %rd3, 32, 32;": lambda x, y, z: (x & LOW) << 32 | (y & LOW),
    "bfi.b64 %rd5, %rd2, %rd3, 7, 40;": lambda x, y, z: (y & ~(((1 << 40) - 1) << 7)) | (x & ((1 << 40) - 1)) << 7,
    "brev.b64 %rd5, %rd2;": lambda x, y, z: reverse(x, 64),
    "brev.b32 %r4, %r2;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: reverse(x & LOW, 32),
    "bfind.shiftamt.u32 %r4, %r2;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: 32 - (x & LOW).bit_length(),
    "clz.b64 %r4, %rd2;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: 64 - x.bit_length(),
    "cvt.rn.f64.u64 %fd1, %rd2;\nmov.b64 %rd5, %fd1;": lambda x, y, z: as_double(x),
    "cvt.rn.f64.s64 %fd1, %rd2;\nmov.b64 %rd5, %fd1;": lambda x, y, z: as_double(signed(x)),
    "cvt.rn.f32.s64 %f1, %rd2;\nmov.b32 %r4, %f1;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: as_float(x),
    "and.b64 %rd5, %rd2, 4294967295;": lambda x, y, z: x & LOW,
    "or.b64 %rd5, %rd2, -4294967296;": lambda x, y, z: x | -4294967296,
    "and.b32 %r4, %r2, 4294901760;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: x & 0xFFFF0000,
    "max.u64 %rd5, %rd2, 9223372036854775808;": lambda x, y, z: max(x, 1 << 63),
    "mul.wide.u32 %rd5, %r2, -1431655765;": lambda x, y, z: (x & LOW) * (-1431655765 & LOW),
    "@%p1 bfi.b64 %rd5, %rd2, %rd3, 32, 32;": lambda x, y, z: ((x & LOW) << 32 | (y & LOW)) * (z != 0),
    "@!%p1 brev.b64 %rd5, %rd2;": lambda x, y, z: reverse(x, 64) * (z == 0),
    "not.pred %p2, %p1;\nselp.b64 %rd5, %rd2, %rd3, %p2;": lambda x, y, z: x if z == 0 else y,
    "setp.lt.s64 %p2, %rd2, %rd3;\nxor.pred %p2, %p2, %p1;\nselp.u64 %rd5, 1, 0, %p2;": lambda x, y, z: (
        (signed(x) < signed(y)) != (z != 0)
    ),
    "xor.pred %p2, %p1, -1;\nselp.b64 %rd5, %rd2, %rd3, %p2;": lambda x, y, z: x if z == 0 else y,
    "mov.pred %p2, -1;\n@%p1 mov.pred %p2, 0;\nselp.u64 %rd5, 1, 0, %p2;": lambda x, y, z: z == 0,
    "div.u64 %rd5, %rd2, 3000000000;": lambda x, y, z: x // 3000000000,
    "rem.u64 %rd5, %rd2, 3000000000;": lambda x, y, z: x % 3000000000,
    "shr.s64 %rd5, %rd2, 7;": lambda x, y, z: signed(x) >> 7,
    "popc.b32 %r4, %r2;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: (x & LOW).bit_count(),
    "mov.b64 {%r4, %r5}, %rd2;\nmov.b64 %rd5, {%r5, %r4};": lambda x, y, z: x >> 32 | (x & LOW) << 32,
    "vote.sync.ballot.b32 %r4, %p1, -1;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: 0x55555555,
    "and.b32 %r6, %r0, 31;\nshfl.sync.idx.b32 %r4|%p8, %r6, 5, 31, -1;\ncvt.u64.u32 %rd5, %r4;": lambda x, y, z: 5,
    THREADED_SUM: lambda x, y, z: 32,
}
"""Instructions, and what they compute from x, y and z, which is 1 in even threads and 0 in odd ones."""
ATOMICS: dict[str, Callable[[int, int], int]] = {
    "atom.shared.max.u64": max,
    "atom.shared.min.u64": min,
    "atom.shared.min.s64": lambda x, y: min(signed(x), signed(y)),
    "atom.shared.and.b64": lambda x, y: x & y,
    "atom.shared.or.b64": lambda x, y: x | y,
    "atom.shared.xor.b64": lambda x, y: x ^ y,
    "atom.shared.add.u64": lambda x, y: x + y,
}


def body(instructions: str) -> str:
    return KERNEL.replace("INSTRUCTIONS", "\n".join(f"\t{line}" for line in instructions.splitlines()))


def atomic(operation: str) -> str:
    """All threads combine their x into the first word of shared memory, which starts as y of thread 0."""
    return body(
        f"""setp.ne.s32 %p2, %r0, 0;
@%p2 bra $L__BB0_1;
st.shared.u64 [memory_1], %rd3;

$L__BB0_1:
bar.sync 0;
mov.u64 %rd6, memory_1;
{operation} %rd7, [%rd6], %rd2;
bar.sync 0;
ld.shared.u64 %rd5, [memory_1];"""
    )


@pytest.mark.nvidia
def test_rewritten_kernels_assemble() -> None:
    """The new text is PTX, except for integers written as doubles: NVIDIA's assembler accepts it."""
    rewritten = [rewrite(body(instructions), "kernel") for instructions in INSTRUCTIONS]
    whole = body("".join(f"{one}\n" for one in INSTRUCTIONS) + "trap;\nnanosleep.u32 20;\nfence.acq_rel.gpu;")
    for text in (rewrite(whole, "kernel"), *(rewrite(atomic(one), "kernel") for one in ATOMICS)):
        registers, shared = resources(re.sub(r"(?m)^(.*[sub]64 .*, )0d([0-9A-F]{16})", r"\g<1>0x\2", text))
        assert registers > 0
        assert shared in (0, 64)
    assert not any(re.search(r"_Z|\.loc|\.file|\.section|\.common|\||trap", text) for text in rewritten)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        ("redux.sync.add.s32 %r4, %r2, -1;", r"cannot run redux\.sync\.add\.s32"),
        ("shfl.sync.idx.b32 %r4|%p2, %r0, 5, 31, -1;\n@%p2 bra $L;", "predicate of a shuffle"),
        ("bfi.b64 %rd5, %rd2, %rd3, %r2, 3;", "variable position"),
        ("cvt.rzi.s64.f64 %rd5, %fd1;", r"miscomputes cvt\.rzi\.s64\.f64"),
        ("atom.global.inc.u64 %rd5, [%rd1], %rd2;", r"cannot run atom\.inc\.u64"),
    ],
)
def test_instructions_that_the_simulator_cannot_run(instruction: str, message: str) -> None:
    with pytest.raises(UnsupportedInstructionError, match=message):
        rewrite(body(instruction), "kernel")


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("ld.relaxed.gpu.global.u32 %r4, [%rd1];", "ld.global.cg.u32"),
        ("ld.acquire.gpu.u32 %r4, [%rd1];", "ld.cg.u32"),
        ("ld.volatile.shared.u32 %r4, [%rd1];", "ld.shared.u32"),
        ("ld.global.L1::evict_first.u32 %r4, [%rd1];", "ld.global.u32"),
        ("ld.global.nc.L1::evict_first.u32 %r4, [%rd1];", "ld.global.u32"),
        ("st.relaxed.gpu.u64 [%rd1], %rd2;", "st.u64"),
        ("fence.acq_rel.gpu;", "membar.gl"),
        ("membar.cta;", "membar.cta"),
        ("red.global.add.u32 [%rd1], %r4;", "atom.global.add.u32"),
        ("atom.relaxed.gpu.global.cas.b32 %r4, [%rd1], %r2, %r3;", "atom.global.cas.b32"),
    ],
)
def test_memory_order(instruction: str, expected: str) -> None:
    """Ordered loads must not read from the L1 cache, and the simulator knows no scopes."""
    assert rewrite(body(instruction), "kernel").count(f"\t{expected}") == 1


class FakeSimulator:
    """A simulator's memory, without kernels."""

    def __init__(self) -> None:
        self.words: dict[int, bytes] = {}
        self.calls: list[str] = []

    def write(self, address: int, data: Any) -> None:
        self.calls.append("write")
        self.words[address] = data.tobytes()

    def read(self, address: int, size: int) -> bytes:
        self.calls.append("read")
        assert len(self.words[address]) == size
        return self.words[address]


def test_memory_is_copied_when_it_must_be() -> None:
    simulator: Any = FakeSimulator()
    memory = SimulatedMemory(simulator)
    array = memory.asarray(np.arange(5, dtype=np.uint32))
    allocation: Any = array.allocation
    allocation.launch()
    allocation.launch()
    assert simulator.calls == ["write"]
    assert simulator.words[array.address] == np.arange(5, dtype=np.uint32).tobytes()
    simulator.words[array.address] = np.full(5, 7, np.uint32).tobytes()
    assert array.get().tolist() == [7] * 5
    assert array[1:3].get().tolist() == [7, 7]
    allocation.launch()
    assert simulator.calls == ["write", "read"]
    array[2] = 9
    allocation.launch()
    assert simulator.calls == ["write", "read", "read", "write"]
    assert array.get().tolist() == [7, 7, 9, 7, 7]


def test_freed_memory_is_used_again() -> None:
    simulator: Any = FakeSimulator()
    memory = SimulatedMemory(simulator)
    first, second = memory.zeros(300, np.uint32), memory.zeros(300, np.uint32)
    assert second.address - first.address >= 1200
    freed = first.address
    assert memory.live_bytes == 2400
    del first
    assert memory.live_bytes == 1200
    assert memory.zeros(310, np.uint32).address == freed


def test_runs_are_read_from_the_command_line() -> None:
    assert SimulatedRun.parse("bfs:path:10000:30") == SimulatedRun("bfs", "path:10000", hops=30)
    assert SimulatedRun.parse("components:kron:13:directed") == SimulatedRun("components", "kron:13", directed=True)
    path = SimulatedRun.parse("bfs:path:5").build()
    assert path.indptr.tolist() == [0, 1, 3, 5, 7, 8]
    weights = SimulatedRun.parse("sssp:kron:5").build().weights
    assert weights is not None
    assert set(weights.tolist()) <= set(range(1, 256))


@pytest.mark.parametrize("text", ["kron:5", "bfs:kron", "bfs:kron:x", "sssp:kron:5:3", "bfs:kron:5:up", "cc:kron:5"])
def test_malformed_runs(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", text]) == 2
    assert f"'{text}' is not a run: give ALGORITHM:GRAPH" in capsys.readouterr().err


def test_without_a_simulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.delenv(process.FOLDER_VARIABLE, raising=False)
    assert main(["simulate", "bfs:path:5"]) == 2
    assert "GPU_PREGEL_GPGPUSIM does not name the folder of a built GPGPU-Sim" in capsys.readouterr().err
    monkeypatch.setenv(process.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(SimulationError, match=r"has no lib/\*/\*/release/libcudart\.so: build GPGPU-Sim there"):
        Simulator("QV100")


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    """Yield a simulator that ends as soon as it is asked to do something."""
    (tmp_path / "lib/gcc/cuda/release").mkdir(parents=True)
    (tmp_path / "lib/gcc/cuda/release/libcudart.so").touch()
    source = tmp_path / "configs/tested-cfgs/SM75_RTX2060"
    source.mkdir(parents=True)
    (source / "gpgpusim.config").write_text("-ptx_opcode_latency_int 4,4,4,4,21\n-gpgpu_n_clusters 30\n")
    bridge = tmp_path / "bridge"
    bridge.write_text('#!/bin/sh\necho ready\nread line\necho "something is not (yet) implemented" >> "$1"\nexit 6\n')
    bridge.chmod(0o755)
    monkeypatch.setenv(process.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(process, "build_bridge", lambda folder: bridge)
    simulator = Simulator("RTX2060")
    yield simulator
    simulator.close()


def test_a_simulator_that_ends(broken: Simulator) -> None:
    options = Path(broken._folder.name, "gpgpusim.config").read_text().split("\n")
    assert "-ptx_opcode_latency_int 4,4,4,4,21,21" in options
    assert "-gpgpu_kernel_launch_latency 0" in options
    with pytest.raises(SimulationError, match=r"status 6: something is not \(yet\) implemented"):
        broken.launch("kernel", 1, 32, [1])


def test_sums_by_kernel() -> None:
    records = [LaunchRecord("push", 1, 10, 100), LaunchRecord("pull", 2, 20, 200), LaunchRecord("push", 3, 30, 300)]
    assert by_kernel(records) == [
        {"kernel": "push", "launches": 2, "cycles": 40, "instructions": 400},
        {"kernel": "pull", "launches": 1, "cycles": 20, "instructions": 200},
    ]


@pytest.fixture(scope="module")
def device() -> Iterator[SimulatedDevice]:
    """Yield a small simulated GPU, which simulates faster than a large one."""
    with simulated("RTX2060") as device:
        yield device


def run_raw(device: SimulatedDevice, text: str, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Run PTX on 64 threads with three words each; return their results."""
    entry = f"raw{next(_numbers)}"
    device.simulator.load(rewrite(text, entry), entry, *resources(text))
    table = np.zeros((len(words), 4), np.uint64)
    table[:, :3] = words
    address = device.memory.claim(table.nbytes)  # type: ignore[attr-defined]
    device.simulator.write(address, table.reshape(-1).view(np.uint8))
    device.simulator.launch(entry, 1, len(words), [address])
    return np.frombuffer(device.simulator.read(address, table.nbytes), np.uint64).reshape(-1, 4)[:, 3]


_numbers = iter(range(1_000_000))


@pytest.fixture(scope="module")
def words() -> np.ndarray[Any, Any]:
    draw = random.Random(5)
    corners = [0, 1, LOW, LOW + 1, 1 << 63, (1 << 63) - 1, MASK, 1 << 31, (1 << 53) - 1]
    rows = [(corners[k % 9], corners[k * 5 % 9], 1 - k % 2) for k in range(32)]
    rows += [(draw.getrandbits(64), draw.getrandbits(64) >> draw.randrange(64), 1 - k % 2) for k in range(32)]
    return np.array(rows, np.uint64)


@needs_simulator
@pytest.mark.nvidia
@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_instructions(instructions: str, device: SimulatedDevice, words: np.ndarray[Any, Any]) -> None:
    found = run_raw(device, body(instructions), words)
    expected = [INSTRUCTIONS[instructions](*row) & MASK for row in words.tolist()]
    assert found.tolist() == expected


@needs_simulator
@pytest.mark.nvidia
@pytest.mark.parametrize("operation", ATOMICS)
def test_atomics(operation: str, device: SimulatedDevice, words: np.ndarray[Any, Any]) -> None:
    expected = int(words[0, 1])
    for x in words[:, 0].tolist():
        expected = ATOMICS[operation](expected, x) & MASK
    assert set(run_raw(device, atomic(operation), words).tolist()) == {expected}


@needs_simulator
@pytest.mark.nvidia
@pytest.mark.parametrize(
    "text", ["components:kron:7", "components:kron:7:directed", "bfs:kron:7", "pagerank:kron:6", "sssp:grid:5"]
)
def test_whole_runs(text: str, device: SimulatedDevice) -> None:
    run = SimulatedRun.parse(text)
    graph = run.build()
    before = len(device.records)
    found, expected = (ALGORITHMS[run.algorithm](graph, run, name).to_numpy() for name in (device.name, "cpu"))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    launched = device.records[before:]
    assert launched
    assert all(record.cycles > 100 and record.instructions > 0 for record in launched)
