"""The directions in which edges are followed: push along the edges of few vertices, pull along those of all."""

from __future__ import annotations

from typing import Literal, get_args

Mode = Literal["auto", "push", "pull"]


MODES: tuple[str, ...] = get_args(Mode)


PULL_SHARE = 20
"""Push while the active edges are less than 1 / PULL_SHARE of the stored ones (Gemini's threshold)."""
