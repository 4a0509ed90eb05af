"""Compilation of the functions of ``count_labels``: labels of neighbours, and what is done with the best of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.traverse.bodies import check_returned, content_key, kept, result_of, shown_type
from gpu_pregel.host.traverse.functions import device_function
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.traverse.fields import Fields, generated
from gpu_pregel.kernels.traverse.tables import EMPTY

Function = Callable[..., Any]


def label_total(v: Any, label: Any, total: Any, *arrays: Any) -> Any:  # noqa: ARG001
    """Return the sum of a label: the most frequent label is chosen."""
    return total


class LabelBodies(NamedTuple):
    """What a kernel that counts labels is made from.

    Attributes
    ----------
    label, weigh, choose, finish : callable
        The user's functions; ``weigh`` is None if every edge counts 1.
    kinds : tuple of Numba types
        The types of the arrays and numbers that are passed to all of them.
    weight : Numba type
    has_weights : bool
        Whether the weights of the graph are read; without, every weight is 1.
    transpose : bool
        Whether rows are those of the in-edges.
    """

    label: Function
    weigh: Function | None
    choose: Function
    finish: Function
    kinds: tuple[Any, ...]
    weight: Any
    has_weights: bool
    transpose: bool

    @property
    def roles(self) -> dict[str, tuple[Function, tuple[Any, ...]]]:
        """The user's functions and the types of their arguments, by role."""
        edge, number = (types.int64, types.int64, self.weight, *self.kinds), types.int64
        roles = {"label": (self.label, edge)}
        if self.weigh is not None:
            roles["weigh"] = (self.weigh, edge)
        of_label = (number, number, number, *self.kinds)
        return roles | {"choose": (self.choose, of_label), "finish": (self.finish, of_label)}

    @property
    def key(self) -> tuple[Any, ...]:
        """What kernels of these bodies depend on."""
        own = tuple((role, content_key(function)) for role, (function, _) in self.roles.items())
        return (*own, self.kinds, self.weight, self.has_weights)


class CompiledLabels(NamedTuple):
    """The functions compiled for use in kernels, after checks of their results.

    Attributes
    ----------
    label, weigh, choose, finish : callable
        ``weigh`` is None if every edge counts 1.
    score : dtype
        Of what ``choose`` returns: int64 or float64.
    total : dtype or None
        Of the sum of what ``finish`` returns; None if it is not summed.
    """

    label: Any
    weigh: Any
    choose: Any
    finish: Any
    score: np.dtype[Any]
    total: np.dtype[Any] | None

    @property
    def fields(self) -> Fields:
        """The types of a label that is found: its score, its number times -1, and its sum. The largest wins."""
        return Fields((self.score, np.dtype(np.int64), np.dtype(np.int64)), True)


def compile_labels(bodies: LabelBodies, returns: str | None, jit: Any = device) -> CompiledLabels:
    """Return the functions compiled with ``jit``, after a check of their results, which is kept on disk.

    Raises
    ------
    ProgramError
        A function cannot be compiled, or returns something else than it must.
    """
    functions = {role: function for role, (function, _) in bodies.roles.items()}
    score, total = kept("labels", bodies, functions.values(), returns, lambda: _check(bodies, returns))
    compiled = {role: device_function(function, jit) for role, function in functions.items()}
    return CompiledLabels(
        **{"weigh": None, **compiled}, score=np.dtype(score), total=None if total is None else np.dtype(total)
    )


def _check(bodies: LabelBodies, returns: str | None) -> tuple[str, str | None]:
    """Raise an error unless the functions return what they must; return the dtypes of scores and of a sum."""
    results = {}
    for role, (function, arguments) in bodies.roles.items():
        results[role], place = result_of(function, role, arguments, bodies.kinds)
        if role == "finish":
            check_returned("finish", results[role], returns, place)
            continue
        kinds: tuple[Any, ...] = (types.Boolean, types.Integer) + ((types.Float,) if role == "choose" else ())
        if not isinstance(results[role], kinds):
            wanted = "a number" if role == "choose" else "an integer"
            raise ProgramError(f"{role} returns {shown_type(results[role])}, but must return {wanted}{place}")
    score, total = ("<f8" if isinstance(results[role], types.Float) else "<i8" for role in ("choose", "finish"))
    return score, total if returns == "sum" else None


def label_body(labels: CompiledLabels, count: int, *, has_weights: bool) -> Any:
    """Return ``body(v, indptr, indices, weights, keys, sums, *arrays)`` for the CPU: count the labels of v's row.

    ``count`` is the number of arrays. The table of a row, in ``keys`` and ``sums``, has the places of its edges.
    """
    names = "".join(f", a{k}" for k in range(count))
    weight = "weights[e]" if has_weights else "one"
    amount = "1" if labels.weigh is None else f"int64(weigh(v, u, {weight}{names}))"
    source = (
        f"def body(v, indptr, indices, weights, keys, sums{names}):\n"
        f"    begin, end = indptr[v], indptr[v + 1]\n"
        f"    for i in range(begin, end):\n"
        f"        keys[i] = EMPTY\n"
        f"    for e in range(begin, end):\n"
        f"        u = int64(indices[e])\n"
        f"        own = int64(label(v, u, {weight}{names}))\n"
        f"        if own >= 0:\n"
        f"            i = begin + own % (end - begin)\n"
        f"            while keys[i] != EMPTY and keys[i] != own:\n"
        f"                i = i + 1 if i + 1 < end else begin\n"
        f"            if keys[i] == EMPTY:\n"
        f"                keys[i] = own\n"
        f"                sums[i] = 0\n"
        f"            sums[i] += {amount}\n"
        f"    best, total, highest = int64(-1), int64(0), score(0)\n"
        f"    for i in range(begin, end):\n"
        f"        if keys[i] != EMPTY:\n"
        f"            own, found = int64(keys[i]), score(choose(v, int64(keys[i]), sums[i]{names}))\n"
        f"            if best < 0 or found > highest or (found == highest and own < best):\n"
        f"                best, total, highest = own, sums[i], found\n"
        f"    return finish(v, best, total{names})\n"
    )
    given: dict[str, Any] = labels._asdict() | {"EMPTY": EMPTY, "int64": np.int64, "one": np.float32(1)}
    return generated(device, "body", source, **given | {"score": labels.score.type})
