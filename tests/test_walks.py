"""The walks of CONTRIBUTING.md: their functions exist and are called in the order listed.

A *stay* is a run of consecutive functions in one file, a *return* is a stay in a file visited before, and a *climb* is
a function in a room above the one in which the walk begins.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.workflows import StateGraph, append
from tests.programs import LABELS
from tests.test_imports import room

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PACKAGE = "gpu_pregel."
FLOORS = ("gpu_pregel", "host", "kernels")

COMPONENTS_CPU, COMPONENTS_CUDA = "A component search", "A component search on CUDA"
PROGRAM_CPU, PROGRAM_CUDA = "A vertex program on the CPU", "A vertex program on CUDA"
OPERATOR, OPERATOR_CUDA = "An operator on the CPU", "An operator on CUDA"
MESSAGE = "A message between agents"
MIXED = "A superstep with agents among numeric vertices"
NODE = "A node of a state graph"
NETWORKX = "A function of NetworkX"
WALKS = (
    *(COMPONENTS_CPU, COMPONENTS_CUDA, PROGRAM_CPU, PROGRAM_CUDA, OPERATOR, OPERATOR_CUDA, NETWORKX),
    *(MIXED, NODE, MESSAGE),
)

MAX_STAYS, MAX_RETURNS = 18, 8
MAX_STAYS_ON_CUDA = 15
MAX_NETWORKX_STAYS = 8
MAX_MESSAGE_FILES = 14

if not CONTRIBUTING.exists():
    pytest.skip("CONTRIBUTING.md is part of a checkout, not of the package", allow_module_level=True)


def read_walks(text: str) -> dict[str, list[str]]:
    """Return the functions of each walk: the items ``1. `module:function` …`` below a heading ``### Title``."""
    walks: dict[str, list[str]] = {}
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        body = re.split(r"^#+ ", body, flags=re.MULTILINE)[0]
        items = re.findall(r"^(\d+)\. `([\w.]+:[\w.]+)`", body, flags=re.MULTILINE)
        if items:
            assert [int(number) for number, _ in items] == list(range(1, len(items) + 1)), title
            walks[title.strip()] = [name for _, name in items]
    return walks


TEXT = CONTRIBUTING.read_text()
FUNCTIONS = read_walks(TEXT)


def module_of(name: str) -> str:
    return name.partition(":")[0]


def level_of(name: str) -> int:
    return room(PACKAGE + module_of(name) if module_of(name) else "gpu_pregel")[0]


def stays(walk: list[str]) -> list[str]:
    return [module for module, _ in groupby(map(module_of, walk))]


def climbs(walk: list[str]) -> list[str]:
    """Functions in a room above the one in which the walk begins."""
    return [name for name in walk if level_of(name) > level_of(walk[0])]


Call = tuple[str, str | None]
"""A function called and its caller, both as ``module:function``."""


def name_of(code: CodeType) -> str | None:
    """Return ``module:function`` of recorded code; a nested function counts as the function that defines it."""
    return full_name(code.co_filename, code.co_qualname)


@cache
def full_name(filename: str, function: str) -> str | None:
    path = Path(filename)
    if not path.is_relative_to(ROOT):
        return None
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] not in FLOORS:
        return None
    parts = tuple(part for part in parts[parts[0] == "gpu_pregel" :] if part != "__init__")
    if parts[:2] == ("host", "emulator"):  # calls itself too often to record
        return None
    return f"{'.'.join(parts)}:{function.partition('.<locals>')[0]}"


def record(work: Callable[[], object]) -> list[Call]:
    """Run ``work`` and return the calls of functions of gpu_pregel in this thread."""
    calls: list[Call] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or (name := name_of(frame.f_code)) is None:
            return
        caller = frame.f_back
        while caller is not None and name_of(caller.f_code) is None:
            caller = caller.f_back
        calls.append((name, name_of(caller.f_code) if caller else None))

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def unrecorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stop recording during calls of a function, which would otherwise take long."""

    def call(*arguments: Any) -> Any:
        profile = sys.getprofile()
        sys.setprofile(None)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(profile)

    return call


def run_program(device: str) -> None:
    graph = gp.kronecker(6)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex - 20261122,  # a unique constant, so that no other test has compiled it
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    )
    gp.run(graph, program, device=device, mode="pull")


def run_components(device: str) -> None:
    gp.connected_components(gp.kronecker(6), device=device)


def run_mixed() -> None:
    agents = gp.Agents(lambda ctx: None)
    gp.run(gp.kronecker(6), LABELS, device="cpu", agents=agents, wake=lambda old, new, ctx: ctx.vertex < 9)


class Words(TypedDict):
    """The state of the graph in the walk of a node."""

    words: Annotated[list[str], append]


def run_graph() -> None:
    graph = StateGraph(Words).add_sequence([("a", lambda state: {"words": "a"}), ("b", lambda state: {"words": "b"})])
    assert graph.set_entry_point("a").compile().invoke({})["words"] == ["a", "b"]


def run_operator(device: str, mode: Literal["push", "pull"]) -> None:
    frontier = gp.Frontier(gp.kronecker(6), [0], device=device)
    # A unique constant, so that no other test has compiled it.
    gp.process_edges(lambda u, v, weight, added: v + added > 20261123, frontier, [1], mode=mode)


def run_networkx() -> None:
    import networkx

    networkx.pagerank(networkx.path_graph(9), backend="gpu_pregel")


def run_agents(store: gp.SQLiteStore) -> list[str]:
    """Send a message from ``a`` to ``b`` in a worker; return the functions called there from ``ctx.send`` on."""
    calls: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    def compute(ctx: gp.agents.Context) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == "a":
            sys.setprofile(profile)
            ctx.send("b", 1)
        elif ctx.superstep == 1:
            assert ctx.messages == [1]
            sys.setprofile(None)
            ctx.value = calls
        ctx.vote_to_halt()

    vertices = [gp.agents.Vertex("a"), gp.agents.Vertex("b")]
    result = gp.agents.run(vertices, compute, store=store, workers=1)
    return [name for call in result.values["b"] if (name := full_name(*call))]


def is_subsequence(names: list[str], calls: list[str]) -> bool:
    rest = iter(calls)
    return all(name in rest for name in names)


def check_order(walk: list[str], calls: list[Call]) -> None:
    """Check that the functions were called in this order, each by a function listed before it."""
    position = 0
    for index, name in enumerate(walk):
        while position < len(calls) and calls[position][0] != name:
            position += 1
        assert position < len(calls), f"{name} is not called after {walk[index - 1]}"
        caller = calls[position][1]
        if caller is not None and caller.startswith("host.programs.emulated_state:"):
            caller = name  # which it calls instead of itself
        # Compiled functions are called by Numba, and the backend by NetworkX.
        from_outside = name.startswith(("kernels.", "networkx.backend:")) and caller is None
        assert index == 0 or from_outside or caller in walk[: index + 1], (
            f"{name} is called by {caller}, which is left out"
        )
        position += 1


def on_emulated(name: str) -> str:
    """The function that the emulated device calls instead of the CUDA device's."""
    return name.replace("host.devices.cuda:CudaDevice", "host.devices.emulated:EmulatedDevice")


def test_contributing_has_all_walks() -> None:
    assert tuple(FUNCTIONS) == WALKS


@pytest.mark.parametrize("title", WALKS)
def test_every_function_of_a_walk_exists(title: str) -> None:
    for name in FUNCTIONS[title]:
        module, _, path = name.partition(":")
        found: Any = reduce(getattr, path.split("."), import_module(PACKAGE + module))
        assert callable(found) or isinstance(found, property), name
        assert not inspect.isclass(found), f"{name}: name the method that is called"


@pytest.mark.parametrize("title", [PROGRAM_CPU, PROGRAM_CUDA, OPERATOR, OPERATOR_CUDA])
def test_walk_of_a_program_is_short(title: str) -> None:
    walk = FUNCTIONS[title]
    visits = stays(walk)
    assert len(visits) <= (MAX_STAYS_ON_CUDA if title in (PROGRAM_CUDA, OPERATOR_CUDA) else MAX_STAYS), visits
    assert len(visits) - len(set(visits)) <= MAX_RETURNS, visits
    assert climbs(walk) == []


def test_walk_of_a_function_of_networkx_is_short() -> None:
    assert len(stays(FUNCTIONS[NETWORKX])) <= MAX_NETWORKX_STAYS
    assert climbs(FUNCTIONS[NETWORKX]) == []


def test_programs_and_operators_on_cuda_share_the_loop_over_edges() -> None:
    program, operator = FUNCTIONS[PROGRAM_CUDA], FUNCTIONS[OPERATOR_CUDA]
    shared = [name for name in program if name in operator]
    assert shared == ["kernels.traverse.walks_cuda:make_pull_rows", "host.devices.cuda:CudaDevice.launch"]


def test_walk_of_a_message_crosses_few_files() -> None:
    assert len(set(stays(FUNCTIONS[MESSAGE]))) <= MAX_MESSAGE_FILES
    assert climbs(FUNCTIONS[MESSAGE]) == []


def test_walks_on_the_cpu_are_in_the_order_of_calls() -> None:
    check_order(FUNCTIONS[COMPONENTS_CPU], record(lambda: run_components("cpu")))
    check_order(FUNCTIONS[PROGRAM_CPU], record(lambda: run_program("cpu")))
    check_order(FUNCTIONS[OPERATOR], record(lambda: run_operator("cpu", "push")))
    check_order(FUNCTIONS[NETWORKX], record(run_networkx))
    check_order(FUNCTIONS[MIXED], record(run_mixed))
    check_order(FUNCTIONS[NODE], record(run_graph))


def test_walks_on_cuda_are_in_the_order_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba_cuda")
    from gpu_pregel.host.devices import emulated

    monkeypatch.setattr(emulated, "compile_for_emulation", unrecorded(emulated.compile_for_emulation))
    check_order(list(map(on_emulated, FUNCTIONS[COMPONENTS_CUDA])), record(lambda: run_components("emulated")))
    check_order(list(map(on_emulated, FUNCTIONS[PROGRAM_CUDA])), record(lambda: run_program("emulated")))
    walk = list(map(on_emulated, FUNCTIONS[OPERATOR_CUDA]))
    check_order(walk, record(lambda: run_operator("emulated", "pull")))


def test_walk_of_a_message_is_in_the_order_of_calls(tmp_path: Path) -> None:
    in_worker: list[str] = []
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        calls = record(lambda: in_worker.extend(run_agents(store)))
    walk = FUNCTIONS[MESSAGE]
    sent = walk.index("host.agents.workers.pipes:pack_outcomes") + 1
    received = walk.index("host.agents.workers.pipes:unpack_batch")
    assert is_subsequence(walk[:sent] + walk[received:], in_worker)
    assert is_subsequence(walk[sent:received], [name for name, _ in calls])
    files = set(stays(walk))
    for name in walk[sent + 1 : received]:
        callers = {module_of(caller) for called, caller in calls if called == name and caller}
        assert callers & files, f"{name} is called by {callers}, which the walk leaves out"
