"""Ends the process groups of workers when their master ends, however it ends and whatever they do just then.

Run as a program of its own, by path and without site packages, so that it starts in a few milliseconds:
``guardian.py MASTER``, with lines "+group" and "-group" on standard input. A stopped worker, or one in a long call of
C, could not end its own tools.
"""

import os
import select
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Watch until the master is gone, or closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    master = int(sys.argv[1])
    groups: set[int] = set()
    rest = b""
    os.set_blocking(0, False)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    is_there = True
    try:
        poll.register(os.pidfd_open(master), select.POLLIN)
        is_there = os.getppid() == master
    except OSError:
        is_there = False
    while True:
        if is_there:
            is_there = all(fd == 0 for fd, _ in poll.poll())
        try:
            data = os.read(0, 1 << 16)
        except BlockingIOError:
            if is_there:
                continue
            break  # it is gone, and all that it had told is read
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
