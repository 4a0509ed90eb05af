"""Kills workers and what they have started when their master ends, for any reason and in any state of the workers.

Run by path and without site packages, which starts in a few milliseconds: ``watchdog.py MASTER NAME``, with lines
"+group" and "-group" on standard input; NAME begins the names of the workers in their environment. A worker that is
stopped, or inside a long C call, could not kill its own subprocesses.
"""

import os
import signal
import sys
import time
from contextlib import suppress

VARIABLE = "GPU_PREGEL_WORKER"
"""The environment variable with the name of a worker, which its subprocesses inherit into sessions of their own."""
_CGROUP = "gpu_pregel."
"""Begins the name of the cgroup of a worker; the name of the worker follows."""
_SECONDS = 5.0
"""How long to wait until the processes of a cgroup have ended."""


def enter_cgroup(name: str) -> bool:
    """Move this process into a new cgroup, which its subprocesses cannot leave; return False if that is not allowed."""
    try:
        folder = f"{own_cgroup()}/{_CGROUP}{name}"
        os.mkdir(folder)
        try:
            _write(f"{folder}/cgroup.procs", b"0")
        except OSError:
            os.rmdir(folder)
            raise
    except OSError:
        return False
    return True


def end_cgroups(name: str) -> None:
    """Kill all processes in the cgroups of the workers whose names begin so, and remove these cgroups."""
    try:
        own = own_cgroup()
        found = [entry for entry in os.listdir(own) if entry.startswith(_CGROUP + name)]
    except OSError:
        return
    for entry in found:
        until = time.monotonic() + _SECONDS
        while not _end_cgroup(f"{own}/{entry}") and time.monotonic() < until:
            time.sleep(0.001)


def own_cgroup() -> str:
    """Return the folder of the cgroup of this process (version 2); raise OSError if it must not be divided."""
    with open("/proc/self/cgroup") as cgroups, open("/proc/self/mountinfo") as mounts:
        folder = find_cgroup(cgroups.read(), mounts.read())
    if folder is None or not _is_delegated(folder):
        raise FileNotFoundError
    return folder


def find_cgroup(cgroups: str, mounts: str) -> str | None:
    """Return the folder of a cgroup from the contents of ``/proc/PID/cgroup`` and ``/proc/PID/mountinfo``."""
    for path in [line[3:] for line in cgroups.splitlines() if line.startswith("0::")]:
        for fields in map(str.split, mounts.splitlines()):
            root, point = fields[3].rstrip("/"), fields[4]
            if fields[fields.index("-") + 1] == "cgroup2" and f"{path}/".startswith(f"{root}/"):
                return f"{point}{path[len(root) :]}".rstrip("/")
    return None


def _is_delegated(folder: str) -> bool:
    """Whether systemd leaves a cgroup or one above it to its users, if they could write to those of others as well."""
    if os.geteuid() != 0 or not os.path.exists("/run/systemd/system"):
        return True
    while folder:
        for attribute in ("user.delegate", "trusted.delegate"):
            with suppress(OSError):
                if os.getxattr(folder, attribute) == b"1":
                    return True
        folder = folder.rpartition("/")[0]
    return False


def _end_cgroup(folder: str) -> bool:
    """Kill the processes of a cgroup and those below it; return whether they have ended and it was removed."""
    try:
        _write(f"{folder}/cgroup.kill", b"1")
    except OSError:  # before Linux 5.14
        for one, _, _ in os.walk(folder):
            with suppress(OSError), open(f"{one}/cgroup.procs") as file:
                _kill_all(set(map(int, file.read().split())))
    try:
        for one, _, _ in os.walk(folder, topdown=False):
            os.rmdir(one)
    except OSError:
        return False
    return True


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, data)
    finally:
        os.close(file)


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


def kill_descendants(pid: int) -> None:
    """Stop a process, unless it is this one, and kill its descendants.

    None of them escapes if the process is a subreaper, which becomes the parent of those that lose theirs.
    """
    if pid != os.getpid():
        with suppress(OSError):
            os.kill(pid, signal.SIGSTOP)
    killed: set[int] = set()
    while found := descendants(pid) - killed:
        _kill_all(found)
        killed |= found


def descendants(pid: int) -> set[int]:
    """Return the processes that a process and its descendants have started and that have not lost their parent."""
    found: set[int] = set()
    new = children(pid)
    while new:
        found |= new
        new = set().union(*map(children, new)) - found
    return found


def children(pid: int) -> set[int]:
    """Return the processes whose parent is a process, including those that have ended and that it has not reaped."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found.update(map(int, file.read().split()))
    return found


def _kill_all(pids: set[int]) -> None:
    for pid in pids:
        with suppress(OSError):  # it has ended, or belongs to another user
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Watch until the master ends or closes its end."""
    import select  # not needed by workers, which import this module

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
        kill_descendants(group)
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
    end_cgroups(name)
    kill_named(name)


if __name__ == "__main__":
    main()
