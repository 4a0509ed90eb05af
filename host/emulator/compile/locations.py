"""Where in the source an instruction stands: LLVM's debug locations, resolved, and the table of numbered sites."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_METADATA = re.compile(r"!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_ATTACHED = re.compile(r"!dbg !(\d+)")
_NUMBER = re.compile(r"\b(line|scope|inlinedAt|file): !?(\d+)")
_PATH = re.compile(r'\b(filename|directory): "([^"]*)"')


@dataclass(frozen=True)
class Site:
    """An instruction of a kernel that the runtime is told of: "load", "store", "atomic", "sync", "fence" or "check"."""

    kind: str
    file: str
    line: int


@dataclass
class Locations:
    """Finds file and line of an instruction in a printed module."""

    lines: Iterable[str]
    fallback: tuple[str, int]
    _nodes: dict[str, tuple[str, str]] = field(default_factory=dict)
    _found: dict[str, tuple[str, int] | None] = field(default_factory=dict)
    _last: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        for line in self.lines:
            if line.startswith("!") and (match := _METADATA.match(line)):
                self._nodes[match[1]] = (match[2], match[3])

    def start_function(self, header: str) -> None:
        """Instructions without a location stand at the beginning of their function."""
        self._last = None
        if match := _ATTACHED.search(header):
            kind, content = self._nodes.get(match[1], ("", ""))
            if kind == "DISubprogram":
                fields = dict(_NUMBER.findall(content))
                self.fallback = (self._file(fields.get("file", "")), int(fields.get("line", 0)))

    def of(self, instruction: str) -> tuple[str, int]:
        """File and line of an instruction; of one before it, if it has none itself."""
        if match := _ATTACHED.search(instruction):
            if match[1] not in self._found:
                self._found[match[1]] = self._resolve(match[1])
            if (place := self._found[match[1]]) is not None:
                self._last = place
        return self._last or self.fallback

    def _resolve(self, number: str) -> tuple[str, int] | None:
        """The innermost location that is not in Numba's own files."""
        while number:
            kind, content = self._nodes.get(number, ("", ""))
            if kind != "DILocation":
                return None
            fields = dict(_NUMBER.findall(content))
            file = self._file_of_scope(fields.get("scope", ""))
            line = int(fields.get("line", 0))
            if line and not re.search(r"[/\\]numba(_cuda)?[/\\]", file):
                return file, line
            number = fields.get("inlinedAt", "")
        return None

    def _file_of_scope(self, number: str) -> str:
        _, content = self._nodes.get(number, ("", ""))
        fields = dict(_NUMBER.findall(content))
        if "file" in fields:
            return self._file(fields["file"])
        return self._file_of_scope(fields["scope"]) if "scope" in fields else ""

    def _file(self, number: str) -> str:
        _, content = self._nodes.get(number, ("", ""))
        parts = dict(_PATH.findall(content))
        name, folder = parts.get("filename", ""), parts.get("directory", "")
        return f"{folder}/{name}" if folder and not name.startswith("/") else name
