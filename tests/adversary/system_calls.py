"""Kill a process at one of its system calls, just before the kernel executes it.

A filter of the kernel (seccomp, since Linux 5.5) stops the process, its threads and its subprocesses at each call that
writes, until this process has decided. It needs neither another program nor privileges.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

_CALLS = {
    "x86_64": {
        "write": 1, "pwrite64": 18, "sendto": 44, "sendmsg": 46, "fsync": 74, "fdatasync": 75, "ftruncate": 77,
        "unlink": 87,
    },
    "aarch64": {
        "write": 64, "pwrite64": 68, "sendto": 206, "sendmsg": 211, "fsync": 82, "fdatasync": 83, "ftruncate": 46,
        "unlinkat": 35,
    },
}  # fmt: skip
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_CODES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SET_NO_NEW_PRIVS, _SET_MODE_FILTER, _NEW_LISTENER = 38, 1, 8
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_RECEIVE, _SEND, _CONTINUE = 0xC0502100, 0xC0182101, 1
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_MACHINE = platform.machine()


@cache
def why_unavailable() -> str | None:
    """Return why system calls cannot be watched on this machine, or None."""
    if _MACHINE not in _CALLS or platform.system() != "Linux":
        return f"no numbers of the system calls of {platform.system()} on {_MACHINE}"
    tried = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import install; install()"],
        cwd=Path(__file__).parents[2],
        check=False,
        capture_output=True,
        text=True,
    )
    return None if tried.returncode == 0 else f"the kernel reports no system calls: {tried.stderr[-200:]}"


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def hand_over(parent: socket.socket) -> None:
    """Let this process and its later subprocesses wait at each of the calls; send the parent a byte, and control."""
    listener: list[int] = []
    installed = threading.Event()

    def send() -> None:
        installed.wait()
        socket.send_fds(parent, [b"."], listener)

    thread = threading.Thread(target=send)  # began before, so that it need not wait itself
    thread.start()
    listener.append(install())
    installed.set()
    thread.join()
    os.close(listener[0])


def install() -> int:
    """Install the filter for this thread and those that it will start; return the descriptor that reports calls."""
    numbers = list(_CALLS[_MACHINE].values())
    # If the architecture or the number does not match, jump to the last two instructions.
    code = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 0, len(numbers) + 1, _CODES[_MACHINE]), (_LOAD, 0, 0, _NUMBER_AT)]
    code += [(_EQUAL, len(numbers) - k, 0, number) for k, number in enumerate(numbers)]
    code += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    buffer = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in code))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    program = _Program(len(code), ctypes.cast(buffer, ctypes.c_void_p))
    listener = libc.syscall(_SECCOMP[_MACHINE], _SET_MODE_FILTER, _NEW_LISTENER, ctypes.byref(program))
    if listener < 0:
        raise OSError(ctypes.get_errno(), "seccomp")
    return int(listener)


class CallWatcher:
    """Serves the calls of a process and its subprocesses on a thread, and kills one of them at the chosen call.

    Parameters
    ----------
    listener : int
        Owned by this object.
    pid : int
        The process that installed the filter.
    choose : callable, optional
        ``choose(kind, number, is_first)`` tells whether to kill the process of a call: the ``number``-th of its kind
        by the process itself (``is_first``) or, counted together, by its subprocesses.
    """

    def __init__(self, listener: int, pid: int, choose: Callable[[str, int, bool], bool] | None = None) -> None:
        self._listener, self._pid, self._choose = listener, pid, choose
        self._kinds = {number: kind for kind, number in _CALLS[_MACHINE].items()}
        self._processes: dict[int, int] = {}
        self.counts: Counter[tuple[str, bool]] = Counter()
        self.killed: list[tuple[float, str, int]] = []
        """Time, kind of the call and process id of each kill."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until all the processes have ended."""
        self._thread.join()

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        try:
            while not poll.poll()[0][1] & select.POLLHUP:
                call = bytearray(80)
                try:
                    fcntl.ioctl(self._listener, _RECEIVE, call)
                except OSError:  # the process has been killed
                    continue
                self._decide(call)
        finally:
            os.close(self._listener)

    def _decide(self, call: bytearray) -> None:
        name, thread, _, number = struct.unpack_from("=QIIi", call)
        process, kind = self._process(thread), self._kinds[number]
        place = kind, process == self._pid
        self.counts[place] += 1
        if self._choose is not None and self._choose(kind, self.counts[place], place[1]):
            self.killed.append((time.monotonic(), kind, process))
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            return
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, struct.pack("=QqiI", name, 0, 0, _CONTINUE))

    def _process(self, thread: int) -> int:
        """Return the process of a thread."""
        if thread not in self._processes:
            with suppress(OSError), open(f"/proc/{thread}/status") as file:
                found = [line for line in file if line.startswith("Tgid:")]
                self._processes[thread] = int(found[0].split()[1])
        return self._processes.get(thread, thread)
