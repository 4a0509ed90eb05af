"""Kills the process groups of workers when their master ends, for any reason and in any state of the workers.

Run by path and without site packages, which starts in a few milliseconds: ``watchdog.py MASTER``, with lines "+group"
and "-group" on standard input. A worker that is stopped, or inside a long C call, could not kill its own subprocesses.
"""

import os
import select
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Watch until the master ends or closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    master = int(sys.argv[1])
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


if __name__ == "__main__":
    main()
