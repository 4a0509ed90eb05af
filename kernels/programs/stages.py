"""The functions of a program that draws random numbers: each has a stream of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.draws import STAGES
from gpu_pregel.kernels.programs.functions import Functions, VertexContext, rebuilt
from gpu_pregel.kernels.traverse.fields import Jit, generated


def stage_of(role: str, number: int = 0) -> int:
    """Return the number of a function whose random numbers are its own; ``number`` is that of an aggregator."""
    return STAGES.index(role) if role in STAGES else len(STAGES) + number


def with_stages(jit: Jit, functions: Functions) -> Functions:
    """Return functions that draw random numbers of streams of their own; unchanged if the program draws none."""
    if not functions.context.draws:
        return functions

    def staged(function: Any, role: str, arguments: str, number: int) -> Any:
        stage = np.int64(stage_of(role, number))
        at_stage = "def at_stage(ctx):\n" + rebuilt("Context", "(ctx.stream[0], stage, ctx.stream[2])")
        names = {"at_stage": generated(jit, "at_stage", at_stage, Context=VertexContext, stage=stage)}
        passed = arguments.replace("ctx", "at_stage(ctx)")
        source = f"def staged({arguments}):\n    return function({passed})\n"
        return generated(jit, "staged", source, function=function, **names)

    return functions.wrapped(staged)
