"""Helpers for tests of LangGraph's checkpoints."""

from __future__ import annotations

from typing import Any

from gpu_pregel.host.stores.store import Store
from tests.packages import needs

needs("langgraph.checkpoint.conformance", "test")

from langgraph.checkpoint.base import empty_checkpoint  # noqa: E402

Config = dict[str, Any]


def config_of(thread: Any = "thread", namespace: str = "", checkpoint: str | None = None) -> Config:
    configurable = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": configurable if checkpoint is None else {**configurable, "checkpoint_id": checkpoint}}


def put(saver: Any, config: Config, number: int, values: dict[str, Any] | None = None, **metadata: Any) -> Config:
    """Store checkpoint ``number``; each value has its number as its version."""
    versions = dict.fromkeys(values or {}, number)
    checkpoint = {**empty_checkpoint(), "id": f"{number:04}", "channel_values": values or {}}
    checkpoint["channel_versions"] = versions
    stored: Config = saver.put(config, checkpoint, {"step": number, **metadata}, versions)
    return stored


def ids(found: Any) -> list[str]:
    return [one.config["configurable"]["checkpoint_id"] for one in found]


def count(store: Store, table: str) -> int:
    """Return the number of rows of a table of threads."""
    rows = store._database.query(f"SELECT COUNT(*) FROM {store._database.dialect.prefix}thread_{table}", ())
    return int(rows[0][0])
