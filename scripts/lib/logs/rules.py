"""What a reading rule is, and the byte prefilter that lets a 200 MB log pass without looking at every
line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scripts.lib.logs.collect import Collector
    from scripts.lib.logs.model import Line

Handler = Callable[["Collector", "Line", re.Match[str]], None]


@dataclass(frozen=True)
class Rule:
    """One kind of line.

    starts: literal texts, one of which opens every match (they feed the prefilter); pattern: its named groups
    are names in registry.FACTS; dialect: the releases that print it so; handler: for what a plain reading
    cannot express; anywhere: the text may stand behind other words of the message.
    """

    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    dialect: str
    handler: Handler | None = None
    anywhere: bool = False


def rule(
    dialect: str,
    starts: str | tuple[str, ...],
    pattern: str,
    handler: Handler | None = None,
    anywhere: bool = False,
) -> Rule:
    """A Rule from its parts; a single start need not be a tuple, the pattern is compiled so that dots
    match all."""
    names = (starts,) if isinstance(starts, str) else starts
    return Rule(names, re.compile(pattern, re.DOTALL), dialect, handler, anywhere)


# What stands before a message: a record head, a process prefix, an outer prefix or timestamp, a quote of
# JSON, or nothing.
_BEFORE_MESSAGE = ("\\] ", "\\) ", ":(?:\\d\\d)? ", "\\| ", "Z ", "F ", '"', "\\n", "\\r")


@dataclass(frozen=True)
class Prefilter:
    """Finds the places of a text where a line opens with one of the starts.

    `anywhere` looks behind every blank, so that unknown prefixes do no harm; `anchored` only where a message
    can begin in the formats normalise.py knows. The second is ten times as fast, since its patterns lead with
    a literal.
    """

    anywhere: tuple[re.Pattern[bytes], ...]
    anchored: tuple[re.Pattern[bytes], ...]

    def hits(self, text: bytes, everywhere: bool) -> list[int]:
        """Positions inside lines that may matter, in no order."""
        found: list[int] = []
        for pattern in self.anywhere if everywhere else self.anchored:
            found += [match.end() - 1 for match in pattern.finditer(text)]
        return found


def prefilter(starts: Iterable[str]) -> Prefilter:
    """A Prefilter for these openings. Alternatives are grouped by first character, which is tested first."""
    groups: dict[str, set[str]] = {}
    for start in starts:
        groups.setdefault(start[0], set()).add(start[1:])
    parts = []
    for first, rests in sorted(groups.items()):
        body = "|".join(re.escape(rest) for rest in sorted(_without_longer(rests)))
        parts.append(f"{re.escape(first)}(?:{body})")
    firsts = "".join(re.escape(first) for first in sorted(groups))
    openings = f"(?=[{firsts}])(?:{'|'.join(parts)})"
    return Prefilter(
        (re.compile(f"[ \\n\\r\"'|\\]]{openings}".encode()),),
        tuple(re.compile(f"{before} *{openings}".encode()) for before in _BEFORE_MESSAGE),
    )


def _without_longer(rests: set[str]) -> set[str]:
    return {rest for rest in rests if not any(other != rest and rest.startswith(other) for other in rests)}


def by_first_character(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    """Rules by the first character of a message they can read, so that a message meets only a few."""
    groups: dict[str, list[Rule]] = {}
    for item in rules:
        for first in dict.fromkeys(start[0] for start in item.starts):
            groups.setdefault(first, []).append(item)
    return {first: tuple(group) for first, group in groups.items()}
