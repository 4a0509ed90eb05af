"""Methods of a compiled graph for event loops that are pairs of ordinary ones: states of threads, batches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpu_pregel.errors import AgentsFailedError, ArgumentError
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import CompiledGraph
from tests.gpu_pregel.workflows.small_graphs import chain, naps, single, thread


def test_states_and_updates_are_those_of_the_ordinary_methods(store: Store) -> None:
    async def use(app: CompiledGraph) -> list[Any]:
        await app.ainvoke({"x": 0}, thread())
        states = [state async for state in app.aget_state_history(thread(), limit=2)]
        assert states == list(app.get_state_history(thread(), limit=2))
        assert [state async for state in app.aget_state_history(thread(), before=states[0].config, limit=1)] == states[
            1:
        ]
        updated = await app.aupdate_state(states[1].config, {"log": "!"}, as_node="b")
        state = await app.aget_state(thread())
        assert state == app.get_state(thread()) == await app.aget_state(updated)
        return [state.values["log"], state.next]

    assert asyncio.run(use(chain(store=store))) == [["a", "b", "!"], ("c",)]


@pytest.mark.parametrize("name", ["aget_state", "aget_state_history"])
def test_errors_are_those_of_the_ordinary_methods(name: str) -> None:
    async def use() -> None:
        found = getattr(chain(), name)(thread())
        await (found if name == "aget_state" else anext(found))

    with pytest.raises(ArgumentError, match="compiled without a store"):
        asyncio.run(use())


def test_abatch_keeps_the_order_and_runs_side_by_side() -> None:
    running: list[int] = []
    most: list[int] = []

    async def nap(state: Any) -> dict[str, Any]:
        running.append(1)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.pop()
        return {"x": state["x"] + 1}

    found = asyncio.run(single(nap).abatch([{"x": number} for number in range(9)], max_concurrency=3))
    assert [one["x"] for one in found] == list(range(1, 10))
    assert max(most) == 3
    assert asyncio.run(naps(1, 0, "plain").abatch([])) == []


def test_abatch_takes_a_configuration_each_and_raises_the_first_failure() -> None:
    def fail(state: Any, context: Any) -> dict[str, Any]:
        if state.get("x"):
            raise ValueError(f"no {state['x']}")
        return {"log": context.config["user"]}

    app = single(fail)
    configs = [{"configurable": {"user": name}} for name in "ab"]
    assert [one["log"] for one in asyncio.run(app.abatch([{}, {}], configs))] == [["a"], ["b"]]
    with pytest.raises(ArgumentError, match="batch got 3 inputs and 2 configs"):
        asyncio.run(app.abatch([{}] * 3, configs))
    with pytest.raises(AgentsFailedError, match="no 5"):
        asyncio.run(app.abatch([{"x": 0}, {"x": 5}, {"x": 6}], {"configurable": {"user": "c"}}))
