"""Ends the process groups of workers when their master ends, however it ends and whatever they do just then.

Run as a program of its own, by path and without site packages, so that it starts in a few milliseconds:
``guardian.py MASTER``, with lines "+group" and "-group" on standard input. A stopped worker, or one in a long call of C,
could not end its own tools.
"""

import os
import select
import signal
import sys


def main() -> None:
    """Watch until the master is gone, or closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    groups: set[int] = set()
    rest = b""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    try:
        poll.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
    except OSError:
        return  # it was gone before it had told of any worker
    while os.getppid() == int(sys.argv[1]):
        ready = [fd for fd, _ in poll.poll()]
        if 0 not in ready:
            break
        data = os.read(0, 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass


if __name__ == "__main__":
    main()
