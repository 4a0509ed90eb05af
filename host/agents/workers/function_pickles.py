"""Functions as bytes for worker processes: those of cloudpickle, with the names of their files."""

from __future__ import annotations

import io
from types import CodeType
from typing import Any

import cloudpickle

_NO_FILE = "<dynamic-code>"
"""What cloudpickle 3.1.3 puts in place of a file's name, so that tracebacks show no line of it."""


class _FunctionPickler(cloudpickle.Pickler):
    """Cloudpickle's pickler, which keeps the names of files."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how to make an object again, or ``NotImplemented`` for that of its class."""
        if type(obj) is not CodeType:
            return super().reducer_override(obj)
        make, arguments = self.dispatch_table[CodeType](obj)
        return make, tuple(obj.co_filename if one == _NO_FILE else one for one in arguments)


def dump_function(function: Any) -> bytes:
    """Return a function, or an object that refers to functions, as bytes that pickle loads in another process."""
    written = io.BytesIO()
    _FunctionPickler(written).dump(function)
    return written.getvalue()
