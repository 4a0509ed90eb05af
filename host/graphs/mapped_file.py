"""Files that are mapped into memory."""

from __future__ import annotations

import os
from typing import NamedTuple

from gpu_pregel.errors import GraphError


class MappedFile(NamedTuple):
    """A file that is mapped into memory: to read its pages once they are cut off ends the process."""

    path: str
    device: int
    inode: int
    size: int

    @classmethod
    def of(cls, path: str) -> MappedFile:
        """Return the file that has a path now."""
        status = os.stat(path)
        return cls(os.path.abspath(path), status.st_dev, status.st_ino, status.st_size)

    def check(self) -> None:
        """Raise ``GraphError`` if the file has been truncated; one that has been replaced or deleted stays mapped."""
        try:
            now = MappedFile.of(self.path)
        except OSError:
            return
        if now[1:3] == self[1:3] and now.size < self.size:
            raise GraphError(
                f"the graph is mapped from {self.path}, which another program has truncated from {self.size:,} to "
                f"{now.size:,} bytes: read a complete file, with mmap=False if it may change meanwhile"
            )
