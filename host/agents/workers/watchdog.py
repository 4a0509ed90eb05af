"""Kills workers and what they have started when their master ends, for any reason and in any state of the workers.

Run by path and without site packages, which starts in a few milliseconds: ``watchdog.py MASTER NAME``, with lines
"+group" and "-group" on standard input; NAME begins the names of the workers in their environment. A worker that is
stopped, or inside a long C call, could not kill its own subprocesses.
"""

import os
import select
import signal
import sys
from contextlib import suppress

VARIABLE = "GPU_PREGEL_WORKER"
"""The environment variable with the name of a worker, which its subprocesses inherit into sessions of their own."""


def kill_named(name: str) -> None:
    """Kill all processes that the workers whose names begin so have started, also those that left their group."""
    mark = f"{VARIABLE}={name}".encode()
    killed: set[int] = set()
    while found := {pid for pid in _processes() if pid not in killed and _kill_if_marked(pid, mark)}:
        killed |= found  # search again: one of them may have started another one before its end


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _kill_if_marked(pid: int, mark: bytes) -> bool:
    """Kill a process if its environment has a mark; return whether it had."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            is_marked = any(variable.startswith(mark) for variable in file.read().split(b"\0"))
        if is_marked:
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError:  # it has ended, or belongs to another user
        return False
    finally:
        os.close(process)
    return is_marked


def descendants(pid: int) -> list[int]:
    """Return the processes that a process and its descendants have started and that have not lost their parent."""
    children: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                children += map(int, file.read().split())
    return [one for child in children for one in (child, *descendants(child))]


def main() -> None:
    """Watch until the master ends or closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    master, name = int(sys.argv[1]), sys.argv[2]
    groups: set[int] = set()
    rest = b""
    os.set_blocking(0, False)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    is_alive = True
    try:
        poll.register(os.pidfd_open(master), select.POLLIN)
        is_alive = os.getppid() == master
    except OSError:
        is_alive = False
    while True:
        if is_alive:
            is_alive = all(fd == 0 for fd, _ in poll.poll())
        try:
            data = os.read(0, 1 << 16)
        except BlockingIOError:
            if is_alive:
                continue
            break  # the master is gone, and all input has been read
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    kill_named(name)


if __name__ == "__main__":
    main()
