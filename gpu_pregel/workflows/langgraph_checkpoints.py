"""LangGraph's checkpoints as rows of a store: which values are stored, and how a checkpoint is put together again.

A stored checkpoint refers to its values, so that those that did not change are stored once. It takes them over from the
checkpoint that it follows; a value that is not there is stored again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.stores.blobs import MAX_BLOB
from gpu_pregel.host.stores.database import Database
from gpu_pregel.host.stores.thread_rows import CheckpointRow, ThreadRow, ValueRow
from gpu_pregel.host.stores.thread_table import ThreadTable
from gpu_pregel.workflows.value_chains import Chain, ChainReader, read_chain

Stored = bytes | tuple[int, int]
"""An encoded value of a few bytes, or the chain and the position of a longer one."""
Place = tuple[str, str]
"""A thread and a namespace."""
_SHORT = 64
_MAX_HEADS, _MAX_BYTES = 256, 64 << 20


class CheckpointRecord(NamedTuple):
    """What the row of a checkpoint holds.

    Attributes
    ----------
    checkpoint : dict
        The checkpoint without its values.
    values : dict of str to Stored
    metadata : dict
    """

    checkpoint: dict[str, Any]
    values: dict[str, Stored]
    metadata: dict[str, Any]

    def version(self, channel: str) -> Any:
        """Return the version of a channel, or None."""
        return self.checkpoint.get("channel_versions", {}).get(channel)


_EMPTY = CheckpointRecord({}, {}, {})


def read_record(row: CheckpointRow) -> CheckpointRecord:
    """Decode the row of a checkpoint."""
    checkpoint, values, metadata = decode(row.data, name=f"checkpoint {row.id}")
    return CheckpointRecord(decode(checkpoint, name="checkpoint"), values, decode(metadata, name="metadata"))


def read_values(record: CheckpointRecord, reader: ChainReader) -> dict[str, Any]:
    """Return the values of the channels."""
    return {
        channel: decode(
            stored if isinstance(stored, bytes) else reader.value(*stored), name=f"channel_values[{channel!r}]"
        )
        for channel, stored in record.values.items()
    }


def encode_value(value: Any, name: str) -> bytes:
    """Encode a value that is stored in one row."""
    data = encode(value, name=name)
    if len(data) > MAX_BLOB:
        raise CodecError(f"has {len(data):,} bytes, but at most {MAX_BLOB:,} are stored: put a part elsewhere", name)
    return data


@dataclass(frozen=True)
class ThreadHead:
    """A checkpoint that another one may follow.

    Attributes
    ----------
    row : ThreadRow
        The row of the namespace after the checkpoint was stored.
    parent : CheckpointRow or None
        The checkpoint, as far as it is known; None if there is none.
    record : CheckpointRecord
    chains : dict
        The values of channels that end their chains; None for one that does not.
    """

    row: ThreadRow
    parent: CheckpointRow | None
    record: CheckpointRecord = _EMPTY
    chains: dict[str, Chain | None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The bytes of the values."""
        return sum(len(chain.value) for chain in self.chains.values() if chain is not None)


class NewCheckpoint:
    """A checkpoint to be stored, which may take several attempts while other programs write to its thread.

    Parameters
    ----------
    checkpoint : mapping
    metadata : mapping
    changed : mapping
        The versions of the channels that have changed since the checkpoint before.

    Raises
    ------
    CodecError
        A part cannot be encoded; the error has the path to it.
    """

    def __init__(self, checkpoint: Mapping[str, Any], metadata: Mapping[str, Any], changed: Mapping[str, Any]) -> None:
        rest = {name: part for name, part in checkpoint.items() if name != "channel_values"}
        rest["channel_versions"] = dict(rest.get("channel_versions") or {})
        rest["versions_seen"] = {node: dict(seen) for node, seen in (rest.get("versions_seen") or {}).items()}
        self.id = checkpoint["id"]
        self._values = dict(checkpoint.get("channel_values") or {})
        self._changed = changed
        self._record = CheckpointRecord(rest, {}, dict(metadata))
        self._rest = encode(rest, name="checkpoint")
        self._metadata = encode(self._record.metadata, name="metadata")
        self._encoded: dict[str, bytes] = {}
        for channel in self._values.keys() & changed.keys():  # before anything is written
            self._encode(channel)

    def _encode(self, channel: str) -> bytes:
        data = self._encoded.get(channel)
        if data is None:
            data = self._encoded[channel] = encode_value(self._values[channel], f"channel_values[{channel!r}]")
        return data

    def after(
        self, head: ThreadHead, table: ThreadTable, parent: str | None, run: str | None
    ) -> tuple[ThreadHead, CheckpointRow, list[ValueRow]]:
        """Return the checkpoint as the one after ``head``, its row, and the values to store with it."""
        rows: list[ValueRow] = []
        record = self._record._replace(values={})
        chains: dict[str, Chain | None] = {}
        begun = head.row.chains
        for channel in self._values:
            old = head.record.values.get(channel)
            if old is not None and self._is_unchanged(channel, head.record):
                record.values[channel] = old
                if channel in head.chains:
                    chains[channel] = head.chains[channel]
                continue
            data = self._encode(channel)
            if len(data) <= _SHORT:
                record.values[channel] = data
                continue
            chain, value_row = _next_value(_chain_of(head, table, channel), data, begun)
            if value_row is not None:
                rows.append(value_row)
                begun += value_row.position == 0
            chains[channel] = chain
            record.values[channel] = chain.number, chain.position
        packed = encode((self._rest, record.values, self._metadata))
        if parent == self.id:  # stored again: it keeps the one before it
            parent = None if head.parent is None else head.parent.parent
        stored = CheckpointRow(head.row.key, head.row.id, head.row.namespace, self.id, parent, run, packed)
        is_new = self.id > head.row.latest or table.checkpoint(head.row, self.id) is None
        row = head.row.revised(
            checkpoints=head.row.checkpoints + is_new, chains=begun, latest=max(head.row.latest, self.id)
        )
        return ThreadHead(row, stored, record, chains), stored, rows

    def _is_unchanged(self, channel: str, before: CheckpointRecord) -> bool:
        version = self._record.version(channel)
        return channel not in self._changed and version is not None and version == before.version(channel)


def _chain_of(head: ThreadHead, table: ThreadTable, channel: str) -> Chain | None:
    """Return the last value of a channel, unless other values follow it in its chain."""
    stored = head.record.values.get(channel)
    if stored is None or isinstance(stored, bytes) or head.parent is None:
        return None
    if channel not in head.chains:
        number, position = stored
        is_last = table.chain_end(head.parent.key, number) == position
        head.chains[channel] = read_chain(number, table.values(head.parent, *stored)) if is_last else None
    return head.chains[channel]


def _next_value(chain: Chain | None, data: bytes, number: int) -> tuple[Chain, ValueRow | None]:
    """Return the chain that ends with a value, a new one if necessary, and the row to store."""
    if chain is not None and chain.value == data:
        return chain, None
    extended = None if chain is None else chain.extended(data)
    if extended is None:
        return Chain(number, 0, data), ValueRow(number, 0, data)
    longer, difference = extended
    return longer, ValueRow(longer.number, longer.position, difference)


class ThreadHeads:
    """The checkpoints stored last, so that the next one of a thread is stored without reading anything.

    Parameters
    ----------
    database : Database
        Its lock is used, which is free in a forked process.
    """

    def __init__(self, database: Database) -> None:
        self._heads: OrderedDict[Place, tuple[ThreadHead, int]] = OrderedDict()
        self._size = 0
        self._database = database

    def get(self, place: Place) -> ThreadHead | None:
        """Return the checkpoint stored last, or None."""
        with self._database.lock:
            if place not in self._heads:
                return None
            self._heads.move_to_end(place)
            return self._heads[place][0]

    def set(self, place: Place, head: ThreadHead | None) -> None:
        """Remember a checkpoint, or forget it."""
        with self._database.lock:
            self._size -= self._heads.pop(place, (None, 0))[1]
            if head is None:
                return
            self._heads[place] = head, head.size
            self._size += head.size
            while len(self._heads) > _MAX_HEADS or (self._size > _MAX_BYTES and len(self._heads) > 1):
                self._size -= self._heads.popitem(last=False)[1][1]
