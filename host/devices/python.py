"""The Python interpreter as a device: runs the functions of vertex programs as they are, for debuggers."""

from __future__ import annotations

from typing import Any, NoReturn

from gpu_pregel.errors import DeviceError
from gpu_pregel.host.devices.cpu import HostMemory


class PythonDevice(HostMemory):
    """Runs no kernels: :class:`gpu_pregel.host.programs.python_state.PythonState` calls a program's functions."""

    name = "python"
    threads = None

    def kernels(self, family: str) -> NoReturn:  # noqa: ARG002
        """Raise ``DeviceError``, because kernels are compiled."""
        raise DeviceError(
            "device 'python' runs only vertex programs and the functions of process_vertices and process_edges, "
            "no compiled kernels: use device='cpu'"
        )

    def launch(self, *_: Any, **__: Any) -> NoReturn:
        """Raise ``DeviceError``, because kernels are compiled."""
        self.kernels("")
