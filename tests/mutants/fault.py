"""A fault: a change of one place in the code, and the test that finds it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Fault:
    """A change of one place in the code.

    Attributes
    ----------
    name : str
        What is wrong then.
    file : str
        Relative to the repository.
    old, new : str
        ``old`` occurs exactly once in the file.
    test : str
        The test that fails, as pytest names it: ``FILE::FUNCTION`` or ``FILE::FUNCTION[PARAMETERS]``, which may contain
        spaces; or several of them, one of which fails, separated by spaces.
    equivalent : str, optional
        Why no test can find it. It is not planted.
    """

    name: str
    file: str
    old: str
    new: str
    test: str = ""
    equivalent: str = ""

    @property
    def tests(self) -> list[str]:
        """The names in ``test``."""
        return re.split(r"\s+(?=tests/)", self.test) if self.test else []

    def problem(self, root: Path = ROOT) -> str | None:
        """Return why the fault cannot be planted in this state of the code, or None."""
        text = (root / self.file).read_text()
        if (count := text.count(self.old)) != 1:
            return f"{self.name}: {self.old!r} occurs {count} times in {self.file}, not once"
        if self.old == self.new:
            return f"{self.name}: old and new are equal"
        try:
            compile(text.replace(self.old, self.new), self.file, "exec")
        except SyntaxError as error:
            return f"{self.name}: {error}"
        if bool(self.tests) == bool(self.equivalent):
            return f"{self.name}: name either a test or the reason why there is none"
        for test in self.tests:
            file, _, function = test.partition("::")
            if f"def {function.partition('[')[0]}(" not in (root / file).read_text():
                return f"{self.name}: there is no {test}"
        return None


def faults_in(file: str, *rows: tuple[str, ...]) -> tuple[Fault, ...]:
    """Return the faults of a file from rows of ``(name, old, new, test)`` or ``(name, old, new, "", equivalent)``."""
    return tuple(Fault(row[0], file, *row[1:]) for row in rows)
