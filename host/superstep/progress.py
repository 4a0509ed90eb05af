"""A progress bar on stderr for long work; tqdm is imported when the bar first appears."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic, time
from types import TracebackType
from typing import Any, Self

from gpu_pregel.host.devices.threads import Tick

_DELAY_SECONDS = 0.5
"""Work that ends sooner shows no bar."""
_PERIOD_SECONDS = 0.1
"""The bar is redrawn at most this often."""
REMAINING_TIME = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} < {remaining}"
COUNTS = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}]"
WITHOUT_TOTAL = "{desc} {n} [{elapsed}]{postfix}"


class ProgressBar:
    """A bar on stderr that appears once the work has taken half a second.

    The time counts from entering the context or, without one, from the first call of :meth:`update`.

    Parameters
    ----------
    description : str, optional
    bar_format : str
        ``REMAINING_TIME``, ``COUNTS`` or ``WITHOUT_TOTAL``.
    shown : bool, default True
        If False, nothing is ever drawn.
    """

    def __init__(self, description: str = "", *, bar_format: str = REMAINING_TIME, shown: bool = True) -> None:
        self._description = description
        self._bar_format = bar_format
        self._shown = shown
        self._bar: Any = None
        self._begin: float | None = None
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._begin = monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def tick(self) -> Tick | None:
        """:meth:`update` for functions that report ``(done, total)``; None if the bar is not shown."""
        return self.update if self._shown else None

    def update(self, done: int, total: int | None = None, description: str | None = None, note: str = "") -> None:
        """Set the amount of work done, and redraw the bar if it is due."""
        if not self._shown:
            return
        now = monotonic()
        if self._begin is None:
            self._begin = now
        elif self._bar is None and now - self._begin >= _DELAY_SECONDS:
            self._open(now - self._begin)
            self._draw(now, done, total, description, note)
        elif self._bar is not None and now - self._drawn >= _PERIOD_SECONDS:
            self._draw(now, done, total, description, note)

    def close(self) -> None:
        """Remove the bar from the screen; a later :meth:`update` starts a new one."""
        self._begin = None
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _open(self, elapsed: float) -> None:
        from tqdm import tqdm

        begin = time() - elapsed
        self._bar = tqdm(leave=False, unit="", bar_format=self._bar_format, delay=_DELAY_SECONDS)
        self._bar.start_t = begin  # tqdm clears a bar only if it was created at least the delay later

    def _draw(self, now: float, done: int, total: int | None, description: str | None, note: str) -> None:
        self._drawn = now
        self._bar.n, self._bar.total = done, total
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.set_description_str(self._description if description is None else description)


class SuperstepProgress(ProgressBar):
    """A bar that counts the supersteps of a numeric run; :meth:`observe` is an observer of the master."""

    def __init__(self, *, shown: bool) -> None:
        super().__init__("superstep", bar_format=WITHOUT_TOTAL, shown=shown)

    def observe(self, kind: str, row: dict[str, Any]) -> None:
        """Update the bar after a commit, from the row of the trace."""
        if self._shown and kind == "commit":
            self.update(row["superstep"], note=f"{row['direction']}, {row['active_vertices']:,} active")


@contextmanager
def announce_compilation(*, shown: bool) -> Iterator[None]:
    """Report on stderr, once, that kernels are being compiled, if ``shown``."""
    if not shown:
        yield
        return
    from numba.core import event

    class Announcer(event.Listener):
        announced = False

        def on_start(self, _: Any) -> None:
            if not self.announced:
                self.announced = True
                text = "compiling   kernels, once per machine; later calls load them from the cache"
                print(text, file=sys.stderr, flush=True)

        def on_end(self, _: Any) -> None:
            pass

    with event.install_listener("numba:compile", Announcer()):
        yield
