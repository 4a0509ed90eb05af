"""Checkpoint data: a whole run as bytes, which a program may keep where it likes."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.formats import BegunSuperstep, Segment
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.state_format import pack_state, unpack_state
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.stores.blobs import digest

_NAME, _OLD_NAME = "gpu-pregel agents 2", "gpu-pregel agents 1"
"""The older format has no branch and no checksum."""


@dataclass
class RunSnapshot:
    """A whole run, as ``checkpoint_data`` returns it: its state, and the recorded part of the running superstep."""

    run_id: str
    branch: int
    superstep: int
    state: State
    segment: Segment | None
    answers: list[tuple[Id, bytes]]

    @classmethod
    def of(cls, run_id: str, branch: int, superstep: int, state: State, ledger: Ledger | None) -> RunSnapshot:
        """Return a snapshot of a run."""
        if ledger is None:
            return cls(run_id, branch, superstep, state, None, [])
        return cls(run_id, branch, superstep, state, Segment.of(ledger), ledger.answers())

    def pack(self) -> bytes:
        """Encode the snapshot, with a checksum."""
        segment = None if self.segment is None else encode(self.segment.columns())
        content = encode((self.run_id, self.branch, self.superstep, pack_state(self.state), segment, self.answers))
        return encode((_NAME, digest(_NAME.encode(), content), content))

    @classmethod
    def unpack(cls, data: bytes) -> RunSnapshot:
        """Decode a snapshot; raise ``CodecError`` if it was altered."""
        what = "the checkpoint data of a run of agents"
        try:
            name, *fields = decode(data, name=what)
            if name == _NAME:
                checksum, content = fields
                if digest(_NAME.encode(), content) != checksum:
                    raise CodecError("is damaged (its checksum does not match): restore a copy", what)
                fields = decode(content, name=what)
            elif name == _OLD_NAME:
                fields.insert(1, 0)
            else:
                raise ValueError(f"it is of another kind or a newer version, {name!r:.80}")
            run_id, branch, superstep, state, segment, answers = fields
            unpacked = None if segment is None else Segment.unpack(segment)
            check_integer("branch", branch, 0)
            check_integer("superstep", superstep, 0)
            snapshot = cls(str(run_id), branch, superstep, unpack_state(state), unpacked, answers)
            BegunSuperstep([] if unpacked is None else [unpacked], answers).check_vertices(snapshot.state.vertices)
        except CodecError:
            raise
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            raise CodecError(f"is damaged ({error}): restore a copy", what) from error
        return snapshot
