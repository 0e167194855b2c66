"""What a check of validity.py is, and what it looks at.

A value that is None was not told by the server, or not kept by an earlier version: that proves nothing, so no check
fires on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

UNFAIR, INVALID = "UNFAIR", "INVALID"

Row = Mapping[str, object]


@dataclass(frozen=True)
class Case:
    """A row, the `none` row under the same conditions, a row of the `none` server, and the config's limits."""

    row: Row
    baseline: Row | None
    settings: Row | None
    limits: Mapping[str, object]

    def share_of(self, count: str, whole: str) -> float | None:
        """Ratio of two columns; None where one is absent or the whole is zero."""
        part, total = self.row[count], self.row[whole]
        return None if part is None or not total else part / total


@dataclass(frozen=True)
class Check:
    """`name` is stable: it stands in tables and may be filtered by. `meaning` completes "a cell has this when".

    `find` says in words what is wrong with a case, or None."""

    name: str
    severity: str
    meaning: str
    find: Callable[[Case], str | None]


def check(severity: str, meaning: str) -> Callable[[Callable[[Case], str | None]], Check]:
    """Make a function the check of its name."""
    return lambda find: Check(find.__name__, severity, meaning, find)
