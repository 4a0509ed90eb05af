"""Random operations on LangGraphSaver, compared with LangGraph's InMemorySaver, and many threads of one process."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gpu_pregel.host.stores.store import Store
from tests.packages import needs

needs("langgraph.checkpoint.conformance", "test")

from langgraph.checkpoint.base import empty_checkpoint  # noqa: E402
from langgraph.checkpoint.memory import InMemorySaver  # noqa: E402

from gpu_pregel.workflows import LangGraphSaver  # noqa: E402
from tests.gpu_pregel.workflows.checkpoints import Config, config_of, ids, put  # noqa: E402

THREADS = ["a", "b"]
NAMESPACES = ["", "node:1"]
CHANNELS = ["text", "number", "same", "large"]


class RandomOperations:
    """Applies the same operations to several savers."""

    def __init__(self, seed: int, savers: list[Any]) -> None:
        self.chance = random.Random(seed)
        self.savers = savers
        self.stored: list[tuple[Config, dict[str, Any], dict[str, int]]] = []
        self.number = 0

    def put(self) -> None:
        """Store a checkpoint after another one, mostly the last, with some channels changed."""
        chance = self.chance
        place = config_of(chance.choice(THREADS), chance.choice(NAMESPACES))
        earlier = [one for one in self.stored if one[0]["configurable"].items() >= place["configurable"].items()]
        parent, values, versions = (
            (earlier[-1] if chance.random() < 0.8 else chance.choice(earlier))
            if earlier
            else (
                place,
                {},
                {},
            )
        )
        values, versions = dict(values), dict(versions)
        self.number += 1
        changed = chance.sample(CHANNELS, chance.randrange(len(CHANNELS) + 1))
        for channel in changed:
            versions[channel] = self.number
            values[channel] = self.changed(channel, values.get(channel))
            if chance.random() < 0.1:
                del values[channel]
        checkpoint = {**empty_checkpoint(), "id": f"{self.number:04}", "channel_values": values}
        checkpoint |= {"channel_versions": versions, "versions_seen": {"node": versions}}
        new = dict.fromkeys(changed, self.number)
        metadata: Any = {"source": chance.choice(["input", "loop"]), "step": self.number, "parents": {}}
        configs = [saver.put(parent, checkpoint, metadata, new) for saver in self.savers]
        assert configs.count(configs[0]) == len(configs)
        self.stored.append((configs[0], values, versions))

    def changed(self, channel: str, old: Any) -> Any:
        chance = self.chance
        if channel == "number":
            return chance.randrange(1000)
        if channel == "same":
            return {"always": "the same " * 20}
        if channel == "large":
            return {str(key): chance.random() for key in range(chance.randrange(60))}
        return [*(old or []), {"content": f"{chance.random()} words" * chance.randrange(9)}]

    def put_writes(self) -> None:
        """Store writes of a task, some of them a second time."""
        chance = self.chance
        if self.stored:
            config = chance.choice(self.stored[-3:])[0]
            channels = chance.choice([["x", "y", "x"], ["x"], ["__resume__"], ["__interrupt__"]])
            writes = [(channel, [chance.randrange(100)]) for channel in channels]
            task, path = chance.choice([("task 1", "b"), ("task 2", "a"), ("task 3", "b")])
            for saver in self.savers:
                saver.put_writes(config, writes, task, path)

    def delete(self) -> None:
        thread = self.chance.choice(THREADS)
        self.stored = [one for one in self.stored if one[0]["configurable"]["thread_id"] != thread]
        for saver in self.savers:
            saver.delete_thread(thread)

    def check(self) -> None:
        """Compare everything that can be read."""
        ours, oracle = self.savers
        for config, values, _ in self.stored:
            assert ours.get_tuple(config) == oracle.get_tuple(config)
            assert ours.get_tuple(config).checkpoint["channel_values"] == values
        for thread in THREADS:
            for namespace in NAMESPACES:
                place = config_of(thread, namespace)
                assert ours.get_tuple(place) == oracle.get_tuple(place)
                before = config_of(checkpoint=f"{self.chance.randrange(self.number + 2):04}")
                for options in ({}, {"filter": {"source": "loop"}}, {"before": before, "limit": 3}):
                    assert list(ours.list(place, **options)) == list(oracle.list(place, **options))


@pytest.mark.parametrize("seed", range(3))
def test_random_operations_are_as_with_the_saver_in_memory(store: Store, seed: int) -> None:
    ours = LangGraphSaver(store, durability="process")
    operations = RandomOperations(seed, [ours, InMemorySaver()])
    for number in range(150):
        operations.chance.choices([operations.put, operations.put_writes, operations.delete], [60, 30, 1])[0]()
        if number % 50 == 49:
            operations.check()
            # Without what it remembers of the last checkpoints.
            operations.savers[0] = LangGraphSaver(store, durability="process")
    assert len(operations.stored) > 10


def test_threads_of_one_process_lose_nothing(store: Store) -> None:
    savers: list[Any] = [LangGraphSaver(store, durability="process") for _ in range(2)]

    def work(number: int) -> None:
        saver = savers[number % 2]
        config = put(saver, config_of("one"), number, {"x": ["text " * 30, number]})
        saver.put_writes(config, [("x", number)], "task")
        put(saver, config_of(f"own {number % 4}"), number, {"x": number})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    found = list(savers[0].list(config_of("one")))
    assert ids(found) == [f"{number:04}" for number in range(39, -1, -1)]
    assert [one.checkpoint["channel_values"]["x"][1] for one in found] == list(range(39, -1, -1))
    assert [one.pending_writes[0][2] for one in found] == list(range(39, -1, -1))
    assert len(list(savers[1].list(None))) == 80


@pytest.mark.parametrize("action", ["get old", "get latest", "list", "put", "fork"])
def test_checkpoints_may_be_deleted_while_they_are_read(store: Store, action: str) -> None:
    saver: Any = LangGraphSaver(store, durability="process")
    text = [f"line {number} of a text that grows" * 5 for number in range(30)]
    configs = [config_of()]
    for number in range(1, 20):
        # The last three begin a new chain, so that the first one is deleted.
        values = {"text": text[:number] if number < 17 else [text[-1] * 9, *text[:number]][::-1]}
        configs.append(put(saver, configs[-1], number, values))
    other: Any = LangGraphSaver(store, durability="process")
    read = store.threads.values
    pruned: list[bool] = []

    def reading(*place: Any) -> list[bytes]:
        if not pruned:
            pruned.append(True)
            saver.prune(["thread"])
        return read(*place)

    store.threads.values = reading  # type: ignore[method-assign, assignment]
    if action == "get old":
        assert other.get_tuple(configs[5]) is None
    elif action == "get latest":
        latest = other.get_tuple(config_of())
        assert latest.config == configs[-1]
    elif action == "list":
        assert ids(other.list(config_of()))[:1] == ids(other.list(config_of())) == ["0019"]
    else:
        config = put(other, configs[-1 if action == "put" else 16], 20, {"text": [*text, "the end"]})
        assert other.get_tuple(config).checkpoint["channel_values"] == {"text": [*text, "the end"]}
        assert ids(other.list(config_of())) == ["0020", "0019"]
    assert pruned == [True]
