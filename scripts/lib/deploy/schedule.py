"""vLLM's `num_speculative_tokens_per_batch_size`: which k at which number of running requests, from the measured K curve.

The engine takes a list of [first, last, k] with both ends in the range. The first range begins at 1, ranges do not overlap,
batch sizes after the last keep its k, no k is above num_speculative_tokens, and 0 stops drafting (vLLM 0.27.1,
v1/spec_decode/dynamic/utils.py). The concurrency of a measurement stands for the batch size; between two measured ones
the border is their geometric mean, since concurrencies are usually doubled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scripts.lib.cell import BASELINE, Server
from scripts.lib.deploy.scheduled import KEY, Scheduled
from scripts.lib.feasibility import parse_version
from scripts.lib.recommend.candidates import Candidate, OperatingPoint
from scripts.lib.recommend.choice import eligible
from scripts.lib.statistics import FASTER, compare

SINCE, CHECKED_BEFORE = (0, 26), (0, 28)
"""Releases whose syntax this is: earlier ones have none or another, later ones were not looked at."""

Range = tuple[int, int, int]


@dataclass(frozen=True)
class Curve:
    """The K curve of one method under one set of conditions: `best` has the k to take at each measured concurrency, 0 for
    the baseline. `gain`: geometric mean over concurrencies and scenarios of the throughput of those k to the baseline's."""

    server: Server
    """With the largest k that is drafted, which the engine must be started with."""
    best: Mapping[int, int]
    gain: float
    fixed_k: int
    """The best single k above 0 over all concurrencies; the largest drafted one where none was measured at all of them."""
    scenarios: tuple[str, ...]

    @property
    def varies(self) -> bool:
        return len(set(self.best.values())) > 1


@dataclass(frozen=True)
class EngineFacts:
    """What decides whether and how a server takes a schedule."""

    kind: str
    version: str | None
    data_parallel: int
    max_num_seqs: int


def curves(points: Sequence[OperatingPoint], limits: Mapping[str, float]) -> list[Curve]:
    """The K curve of every method measured with its baseline, best gain first.

    Operating points of several scenarios count alike: a server has one schedule for all of them.
    """
    groups: dict[tuple, list[OperatingPoint]] = {}
    for point in points:
        axes = point.axes
        groups.setdefault(
            (axes["hardware"], axes["engine"], axes["model"], axes["max_model_len"]), []
        ).append(point)
    found = [
        curve
        for group in groups.values()
        for method in dict.fromkeys(c.server.method for p in group for c in p.candidates)
        if method != BASELINE and (curve := _curve(group, method, limits))
    ]
    return sorted(found, key=lambda curve: -curve.gain)


@dataclass(frozen=True)
class _Measured:
    """One operating point: the candidates that may run, by k, and the baseline's throughput, whether it may run or not."""

    fit: Mapping[int, Candidate]
    baseline: float


def _measured(point: OperatingPoint, method: str, limits: Mapping[str, float]) -> _Measured | None:
    """None without a valid baseline."""
    sound = [c for c in point.candidates if c.server.method == BASELINE and c.objection is None]
    fit = {c.server.k: c for c in eligible(point, limits)[0] if c.server.method in (method, BASELINE)}
    return _Measured(fit, sound[0].value) if sound else None


def _curve(group: Sequence[OperatingPoint], method: str, limits: Mapping[str, float]) -> Curve | None:
    by_concurrency: dict[int, list[_Measured]] = {}
    for point in group:
        measured = _measured(point, method, limits)
        if measured is None:
            return None
        by_concurrency.setdefault(int(point.axes["concurrency"]), []).append(measured)
    chosen = {concurrency: _best_k(by_concurrency[concurrency]) for concurrency in sorted(by_concurrency)}
    if None in chosen.values():
        return None
    best = {concurrency: k for concurrency, (k, _) in chosen.items()}
    most = max(best.values())
    if most == 0:
        return None
    servers = (c.server for point in group for c in point.candidates)
    return Curve(
        server=next(server for server in servers if (server.method, server.k) == (method, most)),
        best=best,
        gain=_geometric_mean([ratio for _, ratio in chosen.values()]),
        fixed_k=_fixed_k(list(by_concurrency.values()), most),
        scenarios=tuple(dict.fromkeys(str(point.axes["scenario"]) for point in group)),
    )


def _fixed_k(concurrencies: Sequence[Sequence[_Measured]], most: int) -> int:
    everywhere = set.intersection(*(set(one.fit) for scenarios in concurrencies for one in scenarios)) - {0}
    ratio = {
        k: _geometric_mean([_mean_ratio(scenarios, k) for scenarios in concurrencies]) for k in everywhere
    }
    return min(ratio, key=lambda k: (-ratio[k], k)) if ratio else most


def _best_k(scenarios: Sequence[_Measured]) -> tuple[int, float] | None:
    """(k, ratio to the baseline) at one concurrency; None where no k fits all scenarios.

    Of those k that no scenario shows to be slower than the one in the lead the smallest is taken.
    """
    common = set.intersection(*(set(one.fit) for one in scenarios))
    if not common:
        return None
    ratio = {k: _mean_ratio(scenarios, k) for k in common}
    leader = min(common, key=lambda k: (-ratio[k], k))
    tied = [k for k in common if k == leader or not _slower(scenarios, leader, k)]
    chosen = min(tied)
    return chosen, ratio[chosen]


def _mean_ratio(scenarios: Sequence[_Measured], k: int) -> float:
    return _geometric_mean([one.fit[k].value / one.baseline for one in scenarios])


def _geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def _slower(scenarios: Sequence[_Measured], leader: int, k: int) -> bool:
    """Whether `k` is behind the leader: shown by repeats in some scenario, or by single runs where there are no others."""
    found = [compare(one.fit[leader].samples, one.fit[k].samples) for one in scenarios]
    if any(comparison.verdict == FASTER for comparison in found):
        return True
    return all(comparison.low is None for comparison in found)


def ranges(best: Mapping[int, int], max_num_seqs: int) -> list[Range]:
    """`best` (k by measured concurrency) as [first, last, k] from 1 to `max_num_seqs`, neighbours of equal k joined."""
    measured = sorted(best)
    found: list[Range] = []
    first = 1
    for concurrency, following in zip(measured, [*measured[1:], None], strict=True):
        border = max_num_seqs if following is None else math.isqrt(concurrency * following)
        last = min(border, max_num_seqs)
        if last < first:
            continue
        if found and found[-1][2] == best[concurrency]:
            found[-1] = (found[-1][0], last, best[concurrency])
        else:
            found.append((first, last, best[concurrency]))
        first = last + 1
    return found


def objection(facts: EngineFacts) -> str | None:
    """Why this engine cannot be given a schedule, in words; None when nothing is known against it."""
    if facts.kind != "vllm":
        return f"{facts.kind} has no schedule of k by batch size"
    known = parse_version(facts.version)
    if known is not None and known < SINCE:
        return f"vLLM {facts.version} was not seen to know {KEY}; releases from {'.'.join(map(str, SINCE))} on do"
    if facts.data_parallel > 1:
        return f"vLLM switches {KEY} off with data-parallel-size above 1"
    return None


def caveat(version: str | None) -> str | None:
    """What to say beside a schedule for a release that was not looked at."""
    known = parse_version(version)
    if known is not None and SINCE <= known < CHECKED_BEFORE:
        return None
    return f"the syntax is that of vLLM 0.27.1; {version or 'this unknown version'} was not checked"


def derive(
    deployed: Iterable[Server],
    points: Sequence[OperatingPoint],
    limits: Mapping[str, float],
    facts_of: Callable[[Server], EngineFacts],
) -> tuple[list[Scheduled], list[str]]:
    """(schedules for the deployed servers, what to say about them and about servers without one)."""
    schedules: list[Scheduled] = []
    notes: list[str] = []
    deployed = list(deployed)
    if not deployed:
        notes.append(
            "There is no server to derive a schedule for: no plan is possible (results/tables/recommendation.md)."
        )
    for server in dict.fromkeys(replace(server, method="", k=0) for server in deployed):
        place = f"{server.hardware}, {server.engine}, {server.model}, max_model_len {server.max_model_len}"
        curve = next((c for c in curves(points, limits) if replace(c.server, method="", k=0) == server), None)
        if curve is None:
            notes.append(
                f"{place}: a schedule needs a method that beats `{BASELINE}` at some concurrency, both of them validly measured at all; "
                "there is none."
            )
            continue
        facts = facts_of(curve.server)
        why = objection(facts) or _no_need(curve)
        if why:
            notes.append(f"{place}: {why}.")
            continue
        count = sum(schedule.server.method == curve.server.method for schedule in schedules)
        name = f"{curve.server.method}-schedule" + (f"-{count + 1}" if count else "")
        parts = tuple(ranges(curve.best, facts.max_num_seqs))
        schedules.append(Scheduled(name, curve.server, parts, curve.best, curve.fixed_k, curve.scenarios))
        notes += [f"{place}: {words}." for words in [caveat(facts.version)] if words]
    return schedules, notes


def _no_need(curve: Curve) -> str | None:
    if curve.varies:
        return None
    k = curve.server.k
    return (
        f"of the k of {curve.server.method}, the method that gains most over all concurrencies, {k} is best at each of them, "
        "so no schedule is needed"
    )
