"""A checkpointer of LangGraph over the stores of this package."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.arguments import check_choice, check_integer, check_text, require
from gpu_pregel.host.stores.rows import DURABILITIES
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows.langgraph_checkpoints import NewCheckpoint, Place
from gpu_pregel.workflows.langgraph_threads import SavedCheckpoint, Threads
from gpu_pregel.workflows.langgraph_types import adapt_langgraph_types

_base = require("langgraph.checkpoint.base", "gpu_pregel.workflows.LangGraphSaver", "gpu-pregel[langgraph]")
_types = require("langgraph.checkpoint.serde.types", "gpu_pregel.workflows.LangGraphSaver", "gpu-pregel[langgraph]")

_MAX_NAMESPACE = 1500
"""Maximum bytes of a namespace, as a row of an index in PostgreSQL has at most 2,700."""
_STRATEGIES = ("keep_latest", "delete")
_FORMAT = "gpu_pregel"


class _Serializer:
    """The codec as a serializer of LangGraph."""

    def dumps_typed(self, value: Any) -> tuple[str, bytes]:
        """Return the name of the format and the encoded value."""
        return _FORMAT, encode(value)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value."""
        kind, encoded = data
        if kind != _FORMAT:
            raise ArgumentError(f"the data are in the format {kind!r:.40}, not {_FORMAT!r}")
        return decode(encoded)


class LangGraphSaver(_base.BaseCheckpointSaver):  # type: ignore[name-defined]
    """Checkpoints of LangGraph in a store: ``builder.compile(checkpointer=LangGraphSaver(store))``.

    All of LangGraph's features work: threads, interrupts, time travel, forks, subgraphs, pending writes and delta
    channels. Several programs may use a store at a time; each call is one transaction. The saver creates its tables in
    the store, beside those of runs, unless the store is read-only.

    Values are encoded by ``gpu_pregel.agents.register``'s codec: nothing is pickled, and nothing named in the database
    is imported. LangGraph's own types and LangChain's messages and documents come back as they were; register your
    dataclasses, pydantic models and enums. A value of any other type is a ``CodecError`` that names it and the path to
    it, and nothing is written. The exception of a failed task is stored as its ``repr``. A value is stored once per
    version, and one that has grown as its difference from the one before.

    By default LangGraph saves in the background, from objects that it goes on to modify: with any saver, a checkpoint
    may contain what a join has received after it. Pass ``durability="sync"`` to ``invoke`` for exact checkpoints.

    Parameters
    ----------
    store : MemoryStore, SQLiteStore or PostgresStore
        Stays open until you close it. If it has a cipher, values, metadata and writes are encrypted; ids of threads,
        checkpoints, runs and tasks stay readable.
    durability : {"machine", "process"}
        Whether each write survives a crash of the machine, or only one of the program.

    Raises
    ------
    MissingPackageError
        langgraph is not installed: install the extra ``langgraph``.

    Examples
    --------
    >>> from typing import TypedDict
    >>> from langgraph.graph import StateGraph
    >>> import gpu_pregel as gp
    >>> from gpu_pregel.workflows import LangGraphSaver
    >>> class State(TypedDict):
    ...     count: int
    >>> builder = StateGraph(State).add_node("add", lambda state: {"count": state["count"] + 1})
    >>> graph = builder.set_entry_point("add").compile(checkpointer=LangGraphSaver(gp.MemoryStore()))
    >>> thread = {"configurable": {"thread_id": "tuesday"}}
    >>> graph.invoke({"count": 1}, thread)
    {'count': 2}
    >>> [state.values for state in graph.get_state_history(thread)]
    [{'count': 2}, {'count': 1}, {}]
    """

    def __init__(self, store: Store, *, durability: str = "machine") -> None:
        if not isinstance(store, Store):
            raise ArgumentTypeError(f"store must be a MemoryStore, SQLiteStore or PostgresStore, not {store!r:.80}")
        check_choice("durability", durability, DURABILITIES)
        adapt_langgraph_types()
        super().__init__(serde=_Serializer())
        self._threads = Threads(store.threads, durability == "machine")

    def with_allowlist(self, extra_allowlist: Iterable[tuple[str, ...]]) -> LangGraphSaver:  # noqa: ARG002
        """Return this saver: it imports nothing that data name, so that it needs no list of what it may import."""
        return self

    def get_next_version(self, current: Any, channel: None = None) -> Any:  # noqa: ARG002
        """Return the version of a channel after ``current``, in the form that another checkpointer may have begun."""
        if not isinstance(current, str):
            return 1 if current is None else current + 1
        number, dot, rest = current.partition(".")
        if not number.isdecimal():
            raise ArgumentError(f"the version {current!r:.80} of a channel is not a number")
        return f"{int(number) + 1:0{len(number)}d}{dot}{rest}"

    # Writing

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> dict[str, Any]:
        """Store a checkpoint after the one that ``config`` names; return the config that names it."""
        place = _place(config)
        parent = _checkpoint_id(config)
        check_text("the id of the checkpoint", checkpoint["id"])
        described = _base.get_checkpoint_metadata(config, metadata)
        new = NewCheckpoint(checkpoint, described, new_versions or {})
        self._threads.put(place, new, parent, _run_id(described))
        return _config(config["configurable"]["thread_id"], place[1], checkpoint["id"])

    def put_writes(self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store what a task has written after the checkpoint that ``config`` names."""
        place = _place(config)
        checkpoint = _checkpoint_id(config)
        if checkpoint is None:
            raise ArgumentError("config has no checkpoint_id: pass the config that put returned")
        check_text("task_id", task_id)
        special = _base.WRITES_IDX_MAP
        numbered: dict[int, tuple[str, Any]] = {}
        is_special = all(channel in special for channel, _ in writes)
        for number, (channel, value) in enumerate(writes):
            number = special.get(channel, number)
            if channel == _types.ERROR and isinstance(value, BaseException):
                value = repr(value)
            if is_special or number not in numbered:
                numbered[number] = channel, value
        self._threads.put_writes(place, checkpoint, numbered, task_id, task_path, is_special)

    # Reading

    def get_tuple(self, config: Any) -> Any:
        """Return the checkpoint that ``config`` names, by default the latest of its thread, or None."""
        place = _place(config)
        wanted = _checkpoint_id(config)
        saved = self._threads.get(place, wanted)
        if saved is None:
            return None
        found = _tuple(saved)
        return found if wanted is None else found._replace(config=config)

    def list(
        self,
        config: Any,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> Iterator[Any]:
        """Yield the checkpoints of a thread, or of all threads without ``config``, the newest first.

        Parameters
        ----------
        config : dict or None
            Its namespace and checkpoint_id, where given, restrict the list.
        filter : mapping, optional
            Values that the metadata have.
        before : dict, optional
            A config with a checkpoint_id: only those that are older.
        limit : int, optional
            Maximum number.
        """
        thread = namespace = checkpoint = None
        if config is not None:
            thread, named = _place(config)
            namespace = None if config["configurable"].get("checkpoint_ns") is None else named
            checkpoint = _checkpoint_id(config)
        if filter is not None and not isinstance(filter, Mapping):
            raise ArgumentTypeError(f"filter must be a dict of metadata, not {filter!r:.80}")
        most = None if limit is None else check_integer("limit", limit, 0)
        older = None if before is None else _checkpoint_id(before)
        found = self._threads.find_all(thread, namespace, checkpoint, before=older, limit=most, matches=filter or {})
        return map(_tuple, found)

    # Deleting and copying

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with all its namespaces."""
        self._threads.delete(_thread_id(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata have one of these run ids, with their writes."""
        self._threads.delete_runs({str(run) for run in _ids("run_ids", run_ids)})

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its namespaces to one that does not exist yet."""
        self._threads.copy(_thread_id(source_thread_id), _thread_id(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the latest of each namespace, or with "delete" all of them.

        Checkpoints from whose writes LangGraph computes delta channels of the latest one are kept, too.
        """
        check_choice("strategy", strategy, _STRATEGIES)
        for thread in [_thread_id(one) for one in _ids("thread_ids", thread_ids)]:
            self._threads.delete(thread) if strategy == "delete" else self._threads.prune(thread)

    # The same for asyncio, on threads

    async def aget_tuple(self, config: Any) -> Any:
        """Return the checkpoint that ``config`` names; see ``get_tuple``."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: Any,
        *,
        filter: Mapping[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> AsyncIterator[Any]:
        """Yield checkpoints; see ``list``."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (one := await asyncio.to_thread(next, found, None)) is not None:
            yield one

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> dict[str, Any]:
        """Store a checkpoint; see ``put``."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written; see ``put_writes``."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread; see ``delete_thread``."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of runs; see ``delete_for_runs``."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; see ``copy_thread``."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete older checkpoints; see ``prune``."""
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)


def _place(config: Any) -> Place:
    """Return the thread and the namespace that a config names, or raise."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    if not isinstance(configurable, Mapping) or configurable.get("thread_id") is None:
        raise ArgumentError(
            f"config names no thread: pass {{'configurable': {{'thread_id': ...}}}}, not {config!r:.80}"
        )
    namespace = configurable.get("checkpoint_ns")
    namespace = "" if namespace is None else namespace
    if namespace != "":
        check_text("checkpoint_ns", namespace, _MAX_NAMESPACE)
        if len(namespace.encode(errors="surrogatepass")) > _MAX_NAMESPACE:
            raise ArgumentError(f"checkpoint_ns has more than {_MAX_NAMESPACE:,} bytes: nest fewer subgraphs")
    return _thread_id(configurable["thread_id"]), namespace


def _thread_id(thread: Any) -> str:
    """Return the id of a thread, which LangGraph's users give as a string, an integer or a UUID, as a string."""
    is_number = isinstance(thread, (int, UUID)) and not isinstance(thread, bool)
    return check_text("thread_id", str(thread) if is_number else thread)


def _checkpoint_id(config: Any) -> str | None:
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    checkpoint = configurable.get("checkpoint_id") if isinstance(configurable, Mapping) else None
    return check_text("checkpoint_id", checkpoint) if checkpoint else None


def _run_id(metadata: Mapping[str, Any]) -> str | None:
    """Return the run by which ``delete_for_runs`` finds a checkpoint, if its id can be stored."""
    run = metadata.get("run_id")
    text = str(run) if isinstance(run, (str, UUID)) else ""
    return text if 0 < len(text) <= 200 and text.isprintable() else None


def _ids(name: str, given: Any) -> Sequence[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ArgumentTypeError(f"{name} must be a list of ids, not {given!r:.80}")
    return list(given)


def _config(thread: Any, namespace: str, checkpoint: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}


def _tuple(saved: SavedCheckpoint) -> Any:
    """Return a checkpoint as LangGraph's tuple."""
    place = saved.thread, saved.namespace
    parent = None if saved.parent is None else _config(*place, saved.parent)
    config = _config(*place, saved.id)
    return _base.CheckpointTuple(config, saved.checkpoint, saved.metadata, parent, saved.writes)
