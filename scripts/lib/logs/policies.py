"""How the lines of ranks and engines become one fact; registry.FACTS names the policy of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from scripts.lib.logs.model import Fact, Observation
from scripts.lib.logs.registry import FACTS

_ENGINE_INDEX = re.compile(r"DP(\d{1,6})|^EngineCore_(\d{1,6})$")


def engine_index(process: str | None) -> int:
    """Data-parallel replica a process belongs to; 0 without a label (`EngineCore_DP0` alone proves no
    replicas)."""
    found = _ENGINE_INDEX.search(process or "")
    return 0 if found is None else int(found[1] or found[2])


def by_process(found: Iterable[Observation]) -> dict[tuple, list[Observation]]:
    """Observations by (process, pid), in log order."""
    groups: dict[tuple, list[Observation]] = defaultdict(list)
    for observation in found:
        groups[(observation.process, observation.pid)].append(observation)
    return groups


def _by_engine(found: Iterable[Observation]) -> dict[int, list[Observation]]:
    groups: dict[int, list[Observation]] = defaultdict(list)
    for observation in found:
        groups[engine_index(observation.process)].append(observation)
    return groups


def fact_of(
    name: str, source: Observation, value: Any, found: list[Observation], note: str | None = None
) -> Fact:
    """A fact of this value whose provenance is `source`."""
    return Fact(
        value, FACTS[name].unit, source.raw, source.line, source.process, source.dialect, tuple(found), note
    )


def _engine_min_sum(name: str, found: list[Observation]) -> Fact:
    engines = _by_engine(found)
    tightest = [min(group, key=lambda item: item.value) for _, group in sorted(engines.items())]
    total = _tidy(sum(item.value for item in tightest))
    note = f"sum over {len(engines)} data-parallel engines" if len(engines) > 1 else None
    if note is None and len({item.value for item in found}) > 1:
        note = f"smallest of {len(found)} lines: the tightest rank rules"
    return fact_of(name, tightest[0], total, found, note)


def _rank_sum(name: str, found: list[Observation]) -> Fact:
    totals = {}
    for engine, group in _by_engine(found).items():
        totals[engine] = _tidy(sum(item.value * (1 + _dropped(item)) for item in group))
    engine = max(totals, key=lambda index: totals[index])
    ranks = len(by_process(_by_engine(found)[engine]))
    notes = [f"sum over {ranks} ranks"] if ranks > 1 else []
    if len(totals) > 1:
        notes.append(f"largest of {len(totals)} data-parallel engines")
    if any(item.repeated for item in found):
        notes.append("Ray dropped lines of further ranks; they are counted with the printed value")
    return fact_of(name, found[0], totals[engine], found, ", ".join(notes) or None)


def _dropped(item: Observation) -> int:
    """Copies Ray left out behind a line; the line itself is one of the repeats it counts."""
    return max(item.repeated - 1, 0)


def _process_sum_max(name: str, found: list[Observation]) -> Fact:
    totals = {key: _tidy(sum(item.value for item in group)) for key, group in by_process(found).items()}
    slowest = max(totals, key=lambda key: totals[key])
    group = by_process(found)[slowest]
    notes = [f"sum of {len(group)} lines of one process"] if len(group) > 1 else []
    if len(totals) > 1:
        notes.append(f"largest of {len(totals)} processes")
    return fact_of(name, group[0], totals[slowest], found, ", ".join(notes) or None)


def _extreme(pick: Callable) -> Callable[[str, list[Observation]], Fact]:
    def policy(name: str, found: list[Observation]) -> Fact:
        chosen = pick(found, key=lambda item: item.value)
        return fact_of(name, chosen, chosen.value, found)

    return policy


_POLICIES: dict[str, Callable[[str, list[Observation]], Fact]] = {
    "engine_min_sum": _engine_min_sum,
    "rank_sum": _rank_sum,
    "process_sum_max": _process_sum_max,
    "max": _extreme(max),
    "min": _extreme(min),
    "first": lambda name, found: fact_of(name, found[0], found[0].value, found),
    "last": lambda name, found: fact_of(name, found[-1], found[-1].value, found),
}


def combined(name: str, found: list[Observation]) -> Fact:
    """The fact that these observations of one name make under its policy."""
    return _POLICIES[FACTS[name].policy](name, found)


def _tidy(value: float) -> float:
    """A sum of printed decimals without binary dust."""
    return round(value, 6) if isinstance(value, float) else value
