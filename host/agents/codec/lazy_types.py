"""Loading of the modules for NumPy, date and time types, Decimal and UUID on first use, as their imports are slow."""

from __future__ import annotations

from typing import Any

from gpu_pregel.host.agents.codec.decoder import readers
from gpu_pregel.host.agents.codec.encoder import writers
from gpu_pregel.host.agents.codec.format import ARRAY, DATE, DATETIME, DECIMAL, SCALAR, TIME, TIMEDELTA, UUID

_STANDARD_MODULES = {"datetime", "decimal", "uuid"}


def _load_writer(cls: type) -> None:
    """Load the module that adds the writer of a type, if there is one."""
    if str(cls.__module__).partition(".")[0] == "numpy":
        from gpu_pregel.host.agents.codec import arrays  # noqa: F401 - adds its writers
    elif not _STANDARD_MODULES.isdisjoint(str(base.__module__) for base in cls.__mro__):
        from gpu_pregel.host.agents.codec import standard_types  # noqa: F401 - adds its writers


def _read_numpy(data: bytes, i: int, depth: int) -> tuple[Any, int]:
    """Load the readers of NumPy arrays and scalars, which replace this one, and read the value."""
    from gpu_pregel.host.agents.codec import arrays  # noqa: F401 - replaces the readers

    return readers[data[i - 1]](data, i, depth)


def _read_standard(data: bytes, i: int, depth: int) -> tuple[Any, int]:
    """Load the readers of the standard types, which replace this one, and read the value."""
    from gpu_pregel.host.agents.codec import standard_types  # noqa: F401 - replaces the readers

    return readers[data[i - 1]](data, i, depth)


writers.load = _load_writer
readers[ARRAY] = readers[SCALAR] = _read_numpy
for _tag in (DATE, TIME, DATETIME, TIMEDELTA, DECIMAL, UUID):
    readers[_tag] = _read_standard
