"""Errors: they cross the borders of processes whole."""

from __future__ import annotations

import copy
import pickle

import pytest

from gpu_pregel import errors


class Busy(errors.AttemptError):
    """An error of a user, whose arguments are its own."""

    def __init__(self, server: str, seconds: float) -> None:
        self.server = server
        super().__init__(f"{server} is busy", retry_after=seconds)


ERRORS = [
    errors.ArgumentError("a"),
    errors.CycleError([1, 2]),
    errors.UnknownVertexError("no vertex 'a'"),
    errors.FormatError("a.csv", "b", 3),
    errors.MissingFileError("a.csv does not exist"),
    errors.WriteError("a.csv cannot be written"),
    errors.VertexError("apply", "v", 2, "p", "x.py:1"),
    errors.CheckpointError("a.db", "b"),
    errors.StoreError("a.db", "p", "r", 1, 2),
    errors.ClaimedError("r", "o", 0.0, "--takeover"),
    errors.FencedError("r", "p"),
    errors.CodecError("p", "a.b"),
    errors.AttemptError("t", retryable=False),
    errors.ModelError("t", status=429, retry_after=3.0),
    errors.ToolError("t"),
    errors.MissingPackageError("m"),
    Busy("host", 3),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_pickled(error: errors.GpuPregelError) -> None:
    error.add_note("a note")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other), other.args) == (type(error), str(error), error.args)
        assert vars(other) == vars(error)
