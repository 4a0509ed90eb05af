"""The operators on CUDA devices."""

from __future__ import annotations

from typing import Any

from gpu_pregel.errors import DeviceError


def CudaOperators(graph: Any, device: Any) -> Any:  # noqa: ARG001, N802
    """Raise an error."""
    raise DeviceError("operators run only on devices 'cpu' and 'python' so far")
