"""The cache of nodes: outputs by node and input."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import MutableMapping
from typing import Any

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.workflows.cache_policy import CachePolicy
from gpu_pregel.workflows.commands import Send
from gpu_pregel.workflows.schemas import Writes
from gpu_pregel.workflows.task_messages import Target

Cache = MutableMapping[str, bytes]
"""Outputs as bytes by a digest, for example a ``dict`` or a mapping on disk."""
_MOST = 10_000


class LatestOutputs(OrderedDict[str, bytes]):
    """A cache in memory that keeps the latest outputs."""

    def __setitem__(self, name: str, output: bytes) -> None:
        super().__setitem__(name, output)
        while len(self) > _MOST:
            self.popitem(last=False)


def cache_key(node: str, policy: CachePolicy, given: Any) -> str:
    """Return the name under which the output for an input is kept."""
    part = given if policy.key is None else policy.key(given)
    if policy.key is None and not isinstance(given, dict) and hasattr(given, "__dict__"):
        part = dict(vars(given))
    try:
        return hashlib.sha256(encode((node, part))).hexdigest()
    except CodecError as error:
        raise CodecError(f"the cache key of node {node!r}: {error}; pass CachePolicy(key=...)") from None


def find_output(cache: Cache, name: str) -> tuple[Writes, list[Target]] | None:
    """Return a kept output, unless its time is over or it cannot be read: the node then runs, and keeps it again."""
    data = cache.get(name)
    if data is None:
        return None
    try:
        until, writes, targets = decode(data)
        if until is not None and until < time.time():
            return None
        return writes, [one if isinstance(one, str) else Send(*one) for one in targets]
    except (CodecError, TypeError, ValueError):  # a damaged file, or a type that is no longer registered
        return None


def keep_output(cache: Cache, name: str, policy: CachePolicy, writes: Writes, targets: list[Target]) -> None:
    """Keep an output."""
    until = None if policy.seconds is None else time.time() + policy.seconds
    cache[name] = encode((until, writes, [one if isinstance(one, str) else (one.node, one.arg) for one in targets]))
