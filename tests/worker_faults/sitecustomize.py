"""Imported by Python at startup: in a worker, wraps the functions of the place at which it must end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def install(place: str, count: int, mark: str, how: str) -> None:
    """Wrap a function, so that the process ends in its ``count``-th call that reaches ``place``."""
    from gpu_pregel.host.agents.context import Context
    from gpu_pregel.host.agents.workers import pipes
    from gpu_pregel.host.agents.workers.executor import Executor

    left = count

    def is_now() -> bool:
        nonlocal left
        left -= 1
        if left:
            return False
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def strike() -> None:
        os.kill(os.getpid(), signal.SIGSTOP if how == "stop" else signal.SIGKILL)

    def before(owner: Any, name: str, applies: Callable[..., bool] = lambda *_: True) -> None:
        wrapped = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            if applies(*arguments) and is_now():
                strike()
            return wrapped(*arguments, **options)

        setattr(owner, name, call)

    def write(fd: int, kind: int, content: bytes) -> None:
        is_hit = kind == pipes.OUTCOMES and is_now()
        if is_hit and place == "torn":
            os.write(fd, pipes.header(len(content), kind) + content[: len(content) // 2])
            strike()
        whole(fd, kind, content)
        if is_hit:
            strike()

    whole = pipes.write
    if place in ("marked", "torn"):
        pipes.write = write
    elif place == "loading":
        before(pipes, "write", lambda _fd, kind, _content: kind == pipes.READY)
    elif place == "idle":
        before(pipes, "unpack_batch")
    elif place == "computing":
        before(Context, "__init__")
    elif place == "committing":
        before(Executor, "commit")
    else:
        raise ValueError(f"unknown place {place!r}")


def forbid_cgroups() -> None:
    """Let the worker find no cgroup that it may divide."""
    from gpu_pregel.host.agents.workers import watchdog

    def refuse() -> str:
        raise PermissionError

    watchdog.own_cgroup = refuse


_FAULT = os.environ.get("GPU_PREGEL_WORKER_FAULT")
if _FAULT and "gpu_pregel.host.agents.workers.worker" in sys.orig_argv:
    if _FAULT == "no cgroups":
        forbid_cgroups()
    else:
        _place, _count, _mark, _how = _FAULT.split(":")
        install(_place, int(_count), _mark, _how)
