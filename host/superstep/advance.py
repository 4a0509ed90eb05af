"""Checks that loops advance whose end depends on what a device returns."""

from __future__ import annotations

from gpu_pregel.errors import DeviceError
from gpu_pregel.host.devices.device import Device


class Advance:
    """A number that falls in every round of a loop: a loop that does not advance is an error, not an endless one.

    Parameters
    ----------
    work : str
        What the loop does, for the message of the error.
    device : Device
    limit : int
        The number at first, from theory: how many rounds the loop has at most, or how many vertices it can take.
    """

    def __init__(self, work: str, device: Device, limit: int) -> None:
        self._work, self._device, self._left, self._limit = work, device, limit, limit

    def take(self, amount: int = 1) -> None:
        """Subtract the vertices taken in a round, or one for the round; raise if more than the limit are taken."""
        self._left -= amount
        if self._left < 0:
            raise self._error(f"took {self._limit - self._left:,} steps of at most {self._limit:,}")

    def shrink(self, size: int) -> None:
        """Set the number of vertices that are left after a round; raise unless it has fallen."""
        if not 0 <= size < self._left:
            raise self._error(f"left {size:,} of {self._left:,} vertices in a round in which at least one is finished")
        self._left = size

    def _error(self, found: str) -> DeviceError:
        return stalled(self._device.name, f"does not advance in {self._work}: it {found}", "the graph")


def stalled(device: str, found: str, beside: str) -> DeviceError:
    """Return the error for a device whose results cannot be right; a report needs ``beside``, too."""
    return DeviceError(
        f"device {device!r} {found}: its kernels are wrong or its memory was overwritten; please report this, with "
        f"{beside} and the versions that `gpu-pregel info` prints"
    )
