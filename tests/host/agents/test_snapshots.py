"""Checkpoint data: older formats, altered bytes, and forks."""

from __future__ import annotations

from base64 import b85decode
from dataclasses import replace
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Edge, Vertex
from gpu_pregel.errors import ArgumentError, CodecError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.snapshots import RunSnapshot
from tests.agents import ONCE, check, values

OLD = b85decode(
    "0jdV56K8OBEpT#WXJu?4VP|D-"
    "baNmvr~_|oWHG6@0jdnJ1E~iAs03kiYjddx0jLFLVQFl0sRse51ZQt=WUvFN0s%0o0s%0o0s%0o0{{R3umdqMF|Y%v2LY%AXK!z0sRse51ZQt="
    "WT^)Ms03$kZ)C6o1ONa400004Km-5)000001V97;0000000cm=0jUQ8s03$kZ)C6mGq3}x2LY%AVRLJ9sRse51ZQt=WT^-"
    "Ns0C(WX>4<|0SBlBbZ>NFY^eePGpGk+Z*6dObY-vrss8`~000000to@C39tdF2LY%AXK!z0umPz80Wqlo0I&fuumPzD0jLCLZ*OF<0jUQ8s03$"
    "kZ)C6mssb>o0jdJ11$1w8VQi@a0Wq)uumY+DF{uXus03kiYjZHE2?3}EcW7y2Xg@Hj1u&@y0jLFLVQFl0F{%Zq31xU=WpH$9Z*HgxR$**)Wkqs"
    "wZ*r&xVsdY5Wp1ed000000004PRB~ZsWny7tYal3XZ*z1Ya%E#>Zge1HVQg$5Y+-YBDLM)uAVz6yWgsFicW-iQFKuCIZZBtWbzg9DWoKn<FKBO"
    "bbT46NWo~qHFL!TpYh`kCFJ*XTV|8?IaxQRrA}k<mX>Mg8HZv?BX>K58cx7XCbY%)4ARr)eWpj0GbRaz-"
    "V{dJ6b#!GYV{dMBWq5Qc3LqdLARr(hARr(hARt~|US3{aUS3{aUS3{aUS0|yAVz6yWgsFibZu}iW^Zg{b6;<4WG--dA}k<mX>Mg8H7p=$ZXjcC"
    "ZE$sTWeOl5ARuXGAY*iRE_P*dbY*y7X=EThJs=`xVQFl0B03;)VQF(^AXZ^)b!A0za&K}dB4ToHYh`XCDGDGUARr(hARr(hARr(hARr(hARr(h"
    "ARr(hARr(hARr)KUS3{aUS3{aUS3{aUS3{aUS3{aUS3{aUJ6!WY;|Qta&m8SIv`?lZ);_43IhVL00"
)
"""Written by the first release with checkpoint data: superstep 1 of ``compute`` is held."""


def compute(ctx: Any) -> None:
    if ctx.superstep == 1:
        if ctx.vertex_id == "fails" and ctx.aggregated("total") == 3:
            raise ValueError("broken")
        if ctx.vertex_id == "asks":
            ctx.interrupt("which?")
    ctx.aggregate("total", 1)
    ctx.send("good", ctx.vertex_id)
    ctx.value = ctx.superstep
    if ctx.superstep > 1:
        ctx.vote_to_halt()


OPTIONS: dict[str, Any] = {"aggregators": {"total": "sum"}, "retry": ONCE, "max_supersteps": 2, "on_limit": "return"}


def held() -> bytes:
    vertices = [Vertex(name, None, [Edge("good", 2.5)]) for name in ("asks", "fails", "good")]
    with gp.agents.start(vertices, compute, run_id="old", **OPTIONS) as run:
        run.step()
        run.step()
        return run.checkpoint_data()


@pytest.mark.parametrize("written", ["now", "before"])
def test_checkpoint_data_of_all_releases_continue(written: str) -> None:
    data = held() if written == "now" else OLD
    with gp.agents.start(data, compute, **OPTIONS, on_failure="continue", override="on_failure") as run:
        result = run.result()
        assert (run.run_id, run.status, result.superstep) == ("old", "failed", 1)
        assert (result.failed["fails"].text, result.failed["fails"].messages) == ("broken", [])
        assert (result.interrupts, result.aggregates) == ({"asks": "which?"}, {"total": 3})
        check(result, *((name, 0, [("good", 2.5)], False) for name in ("asks", "fails", "good")))
        run.answer("asks", None)
        assert not run.step()
        values(run.result(), {"asks": 1, "fails": 0, "good": 1})
        assert run.result().aggregates == {"total": 2}


def test_altered_checkpoint_data_are_refused() -> None:
    data = held()
    altered = [data[:k] + bytes([data[k] ^ 1 << k % 8]) + data[k + 1 :] for k in range(len(data))]
    for one in (*altered, data + b"0", b"nonsense", b"", encode(5), encode(("gpu-pregel agents 3",))):
        with pytest.raises(CodecError):
            gp.agents.start(one, compute, **OPTIONS)
    for k in range(len(OLD)):  # has no checksum, so that another value may be read
        try:
            snapshot = RunSnapshot.unpack(OLD[:k] + bytes([OLD[k] ^ 1 << k % 8]) + OLD[k + 1 :])
        except CodecError:
            continue
        assert snapshot.superstep >= 0


@pytest.mark.parametrize(
    ("forged", "error"),
    [
        ({"superstep": -1}, "superstep must be at least 0, not -1"),
        ({"superstep": "1"}, "superstep must be a whole number"),
        ({"branch": -1}, "branch must be at least 0"),
        ({"answers": [(encode("nobody"), b"")]}, "vertex 'nobody' does not exist"),
    ],
)
def test_forged_checkpoint_data_are_refused(forged: Any, error: str) -> None:
    data = replace(RunSnapshot.unpack(held()), **forged).pack()
    with pytest.raises(CodecError, match=error):
        gp.agents.start(data, compute, **OPTIONS)


@pytest.mark.parametrize("is_held", [False, True])
def test_checkpoint_data_of_a_fork_keep_its_keys(is_held: bool) -> None:
    def draw(ctx: Any) -> None:
        if is_held and ctx.superstep == 1:
            ctx.interrupt()
        ctx.value = [*ctx.value, ctx.key, ctx.random.random()]

    def finish(run: Any) -> Any:
        if is_held:
            run.answer("a", None)
        while run.step():
            pass
        return run.result().values

    options: dict[str, Any] = {"max_supersteps": 3, "on_limit": "return"}
    with gp.MemoryStore() as store:
        gp.agents.run([Vertex("a", [])], draw, store=store, run_id="run", max_supersteps=1, on_limit="return")
        gp.agents.fork(store, "run", -1, "fork")
        with gp.agents.reopen(store, "fork", draw, **options) as run:
            assert run.step()
            if is_held:
                assert not run.step()
            data = run.checkpoint_data()
            expected = finish(run)
    with gp.agents.start(data, draw, **options) as run:
        assert finish(run) == expected


def test_checkpoint_data_keep_the_id_of_their_run() -> None:
    data = held()
    with pytest.raises(ArgumentError, match="checkpoint_data is of run 'old', not of 'new': omit run_id="):
        gp.agents.start(data, compute, run_id="new")
    with gp.agents.start(data, compute, run_id="old", **OPTIONS) as run:
        assert run.run_id == "old"
