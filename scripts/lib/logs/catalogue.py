"""The failure catalogue: data in catalogue.yaml, matching here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

CATALOGUE_PATH = Path(__file__).with_name("catalogue.yaml")
CLASSES = frozenset(
    {
        "infeasible",
        "transient",
        "resource_start",
        "resource_runtime",
        "stale_software",
        "access",
        "mislabelled",
        "request",
        "unknown",
    }
)


@dataclass(frozen=True)
class Entry:
    """One known failure; see the head of catalogue.yaml for the fields."""

    id: str
    signature: tuple[re.Pattern[str], ...]
    stack: re.Pattern[str] | None
    phase: str | None
    scope: frozenset[str]
    failure_class: str
    cause: str
    fix: str
    source: str
    memory: str | None
    test: Mapping[str, str]
    order: int

    def match(self, text: str, stack: str = "", phase: str | None = None) -> re.Match[str] | None:
        """The signature found in text, if the frames and the phase (None: not known) allow this entry."""
        if self.phase is not None and phase != self.phase:
            return None
        if self.stack is not None and not self.stack.search(stack):
            return None
        for pattern in self.signature:
            found = pattern.search(text)
            if found is not None:
                return found
        return None


@dataclass(frozen=True)
class Hit:
    """An entry and the numbers its signature named."""

    entry: Entry
    values: Mapping[str, float]


def lookup(text: str, stack: str = "", phase: str | None = None) -> Hit | None:
    """The first entry that matches, or None."""
    for entry in load_catalogue():
        found = entry.match(text, stack, phase)
        if found is not None:
            return Hit(entry, _numbers(found))
    return None


def _numbers(found: re.Match[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, text in found.groupdict().items():
        if text is None or name.startswith("_"):
            continue
        try:
            value = float(text.replace(",", "").rstrip("."))
        except ValueError:
            continue
        values[name.removesuffix("_v0")] = int(value) if value.is_integer() and "." not in text else value
    return values


@cache
def load_catalogue(path: Path = CATALOGUE_PATH) -> tuple[Entry, ...]:
    """All entries in order. Raises ValueError, naming the entry, for a field that is missing or wrong."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    items = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - both loaders are safe
    return tuple(_entry(item, order) for order, item in enumerate(items))


def _entry(item: Mapping, order: int) -> Entry:
    name = item.get("id", f"number {order + 1}")
    missing = {"id", "signature", "scope", "class", "cause", "fix", "source", "test"} - item.keys()
    if missing:
        raise ValueError(f"{CATALOGUE_PATH.name}, entry {name}: add the missing {', '.join(sorted(missing))}")
    if item["class"] not in CLASSES:
        raise ValueError(
            f"{CATALOGUE_PATH.name}, entry {name}: class {item['class']!r} is none of {sorted(CLASSES)}"
        )
    try:
        signature = tuple(re.compile(pattern, re.MULTILINE) for pattern in item["signature"])
        stack = re.compile(item["stack"]) if "stack" in item else None
    except re.error as error:
        raise ValueError(
            f"{CATALOGUE_PATH.name}, entry {name}: {error}; correct the regular expression"
        ) from error
    test = item["test"] if isinstance(item["test"], Mapping) else {"text": item["test"]}
    return Entry(
        id=name,
        signature=signature,
        stack=stack,
        phase=item.get("phase"),
        scope=frozenset(part.strip() for part in str(item["scope"]).split(",")),
        failure_class=item["class"],
        cause=item["cause"],
        fix=item["fix"],
        source=item["source"],
        memory=item.get("memory"),
        test=test,
        order=order,
    )
