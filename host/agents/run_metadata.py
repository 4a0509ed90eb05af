"""What a store keeps about a run of agents as a whole: the names of its functions, and its limit of supersteps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.options import RunOptions


class RunMetadata(NamedTuple):
    """The metadata of a run.

    Attributes
    ----------
    functions : dict of str to str
        Module and qualified name of each compute function, by the name that ``m.use`` takes; empty for runs of
        releases that did not store them.
    limits : dict of str to int or None
        ``max_supersteps``; empty for such runs.
    """

    functions: Mapping[str, str]
    limits: Mapping[str, int | None]

    @classmethod
    def of_options(cls, options: RunOptions) -> RunMetadata:
        """Return the metadata of a run that starts with these options."""
        names = {name: function_name(one) for name, one in options.functions_by_name.items()}
        return cls(names, {"max_supersteps": options.max_supersteps})

    @classmethod
    def unpack(cls, data: bytes | None) -> RunMetadata:
        """Decode metadata; there is none if it is empty, or encrypted with an unknown key."""
        return cls(*decode(data, name="metadata")[:2]) if data else cls({}, {})

    def pack(self) -> bytes:
        """Encode the metadata."""
        return encode((dict(self.functions), dict(self.limits)))

    def difference(self, other: RunMetadata) -> str | None:
        """Return how the functions of another program differ from those of this run, or None if they do not."""
        for name, function in self.functions.items():
            if name not in other.functions:
                return f"needs the function {name!r} ({function}), which was not passed"
            if not _is_same(function, other.functions[name]):
                return f"was started with {function}, not {other.functions[name]}"
        return None


def function_name(function: Callable[..., Any]) -> str:
    """Return ``module:name`` of a function, or of the class of another callable object."""
    while isinstance(function, partial):
        function = function.func
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    module = str(named.__module__)
    text = f"{_name_of_main() if module == '__main__' else module}:{named.__qualname__}"
    return text.encode("utf-8", "backslashreplace").decode()


def _name_of_main() -> str:
    """Return the name under which another program would import the main module."""
    main: Any = sys.modules["__main__"]
    if getattr(main, "__spec__", None) is not None:
        return str(main.__spec__.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return "__main__" if file is None else Path(file).stem


def _is_same(one: str, other: str) -> bool:
    """Whether two names are equal, apart from packages that a script's own name lacks."""
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")
