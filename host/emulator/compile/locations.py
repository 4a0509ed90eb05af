"""Source locations of LLVM instructions, resolved from the debug metadata of a printed module."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_pregel.errors import EmulationError

_METADATA = re.compile(r"!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$")
_ATTACHED = re.compile(r"!dbg !(\d+)")
_NUMBER = re.compile(r"\b(line|scope|inlinedAt|file): !?(\d+)")
_PATH = re.compile(r'\b(filename|directory): "([^"]*)"')


def located_error(kernel: str, location: tuple[str, int], problem: str) -> EmulationError:
    """Return an error whose message names the kernel, the file and the line."""
    file, line = location
    return EmulationError(f"kernel {kernel}, {os.path.basename(file)} line {line}: {problem}")


@dataclass
class Locations:
    """Finds the file and line of each instruction in a printed module."""

    lines: Iterable[str]
    kernel: str
    fallback: tuple[str, int]
    _nodes: dict[str, tuple[str, str]] = field(default_factory=dict)
    _found: dict[str, tuple[str, int] | None] = field(default_factory=dict)
    _last: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        for line in self.lines:
            if line.startswith("!") and (match := _METADATA.match(line)):
                self._nodes[match[1]] = (match[2], match[3])

    def start_function(self, header: str) -> None:
        """Use the function's first line for instructions that precede its first debug location."""
        self._last = None
        if match := _ATTACHED.search(header):
            kind, content = self._nodes.get(match[1], ("", ""))
            if kind == "DISubprogram":
                fields = dict(_NUMBER.findall(content))
                self.fallback = (self._file(fields.get("file", "")), int(fields.get("line", 0)))

    def of(self, instruction: str) -> tuple[str, int]:
        """Return the file and line of an instruction, or of the preceding one if it has no debug location."""
        if match := _ATTACHED.search(instruction):
            if match[1] not in self._found:
                self._found[match[1]] = self._resolve(match[1])
            if (place := self._found[match[1]]) is not None:
                self._last = place
        return self._last or self.fallback

    def error(self, instruction: str, problem: str) -> EmulationError:
        """Return an error that names the location of an instruction."""
        return located_error(self.kernel, self.of(instruction), problem)

    def _resolve(self, number: str) -> tuple[str, int] | None:
        """Return the innermost location outside Numba's own files."""
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
