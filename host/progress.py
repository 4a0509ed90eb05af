"""A progress bar on stderr for long work; tqdm is imported only when one is shown."""

from __future__ import annotations

from time import time
from types import TracebackType
from typing import Any

from gpu_pregel.host.threads import Tick

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
