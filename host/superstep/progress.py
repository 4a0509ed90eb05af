"""A progress bar on stderr for long work; tqdm is imported only when one is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import time
from types import TracebackType
from typing import Any

from gpu_pregel.host.devices.threads import Tick

_DELAY_SECONDS = 0.5
"""Shorter work shows no bar."""


class Progress:
    """A context that shows a bar called ``name`` if ``shown``; otherwise ``tick`` is None and nothing is polled."""

    def __init__(self, name: str, *, shown: bool) -> None:
        self._name = name
        self._shown = shown
        self._bar: Any = None
        self._begin = time()

    def __enter__(self) -> Progress:
        return self

    @property
    def tick(self) -> Tick | None:
        """What to call with (done, size) as the work goes on, or None."""
        return self._update if self._shown else None

    def _update(self, done: int, size: int) -> None:
        if self._bar is None:
            if time() - self._begin < _DELAY_SECONDS:
                return
            from tqdm import tqdm

            bar_format = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} < {remaining}"
            self._bar = tqdm(total=size, desc=self._name, leave=False, bar_format=bar_format)
            self._bar.start_t = self._begin
        self._bar.total = size
        self._bar.n = done
        self._bar.refresh()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


class SuperstepProgress:
    """A context that counts supersteps on stderr if ``shown``, beginning once the run is long."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None
        self._begin = time()

    def __enter__(self) -> SuperstepProgress:
        return self

    def observe(self, kind: str, row: dict[str, Any]) -> None:
        """Take in what the master tells: of a commit, the row of the trace."""
        if not self._shown or kind != "commit" or time() - self._begin < _DELAY_SECONDS:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(desc="superstep", unit="", leave=False, bar_format="{desc} {n} [{elapsed}]{postfix}")
            self._bar.start_t = self._begin
        self._bar.n = row["superstep"]
        self._bar.set_postfix_str(f"{row['direction']}, {row['active_vertices']:,} active", refresh=False)
        self._bar.update(0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def announce_compilation(*, shown: bool) -> Iterator[None]:
    """Say on stderr, once, that kernels are being compiled, if ``shown``: the first run on a machine takes longer."""
    if not shown:
        yield
        return
    from numba.core import event

    class Announcer(event.Listener):
        said = False

        def on_start(self, _: Any) -> None:
            if not self.said:
                self.said = True
                text = "compiling   kernels, once for this machine; later calls load them from the cache"
                print(text, file=sys.stderr, flush=True)

        def on_end(self, _: Any) -> None:
            pass

    with event.install_listener("numba:compile", Announcer()):
        yield
