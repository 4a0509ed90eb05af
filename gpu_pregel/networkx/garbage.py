"""Keeps Python's garbage collector from running while many lists are made: each run visits all dicts of the graph.

``pausing = can_pause()``, then ``try: if pausing: gc.disable()`` … ``finally: if pausing: gc.enable()``, written out:
Ctrl-C cannot come between the beginning of ``finally`` and the call; at the beginning of a context's method it can.
"""

from __future__ import annotations

import gc
import threading


def can_pause() -> bool:
    """Return whether to disable the collector: it is on, and no other thread does that at the same time."""
    return gc.isenabled() and threading.current_thread() is threading.main_thread()
