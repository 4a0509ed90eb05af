"""The inputs of agents, and messages that wait for agents, as data in a store."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.mixed.agent_context import AgentInput

Arrived = dict[int, list[tuple[Any, tuple[Any, ...]]]]
"""The messages along edges to each agent: (sender, fields)."""
_KINDS: tuple[Any, ...] = (bool, tuple, int, (bytes, list), list, list, list, tuple)
"""The types of the parts of an ``AgentInput``."""


def encode_inputs(inputs: Mapping[Id, bytes]) -> bytes:
    """Return packed inputs as data: what is in a store is never unmarshalled."""
    return encode([(key, marshal.loads(given)) for key, given in inputs.items()])


def decode_inputs(data: bytes) -> dict[Id, bytes]:
    """Return the packed inputs that :func:`encode_inputs` has encoded.

    Raises
    ------
    ValueError
        It has not.
    """
    found = {}
    for key, parts in decode(data):
        if type(key) is not bytes or len(parts) != len(_KINDS) or not _fits(parts):
            raise ValueError("an agent's input is damaged")
        found[key] = AgentInput(*parts).pack()
    return found


def _fits(parts: Sequence[Any]) -> bool:
    return all(isinstance(part, kind) for part, kind in zip(parts, _KINDS, strict=True))


def decode_arrived(data: bytes) -> Arrived:
    """Return the messages that wait for agents.

    Raises
    ------
    ValueError
        The data are not such messages.
    """
    found: Arrived = {}
    for vertex, sent in decode(data):
        if type(vertex) is not int or not all(isinstance(fields, tuple) for _, fields in sent):
            raise ValueError("messages to an agent are damaged")
        found[vertex] = [(sender, fields) for sender, fields in sent]
    return found
