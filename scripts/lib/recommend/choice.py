"""The best method and k at an operating point, or that there is no clear winner.

The candidate with the highest throughput leads. Those that repeats cannot tell from it are tied with it, and of a tie the
smallest k is taken (`none` is k 0), since it costs least. Without repeats nothing is tied and nothing is certain: the leader
is taken and called a single run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.lib.recommend.candidates import Candidate, OperatingPoint
from scripts.lib.recommend.limits import broken
from scripts.lib.statistics import FASTER, SINGLE_RUN, Comparison, compare

CLEAR_WINNER = "clear winner"
NO_CLEAR_WINNER = "no clear winner"
ONLY_CANDIDATE = "only candidate"
NO_CANDIDATE = "no candidate"
LIMIT = "limit"
"""What the words about a limit begin with, before its key."""
VERDICTS = (CLEAR_WINNER, NO_CLEAR_WINNER, SINGLE_RUN, ONLY_CANDIDATE, NO_CANDIDATE)


@dataclass(frozen=True)
class Choice:
    """`chosen` is None exactly for NO_CANDIDATE. `tied`: all that are as good as the leader, the chosen one included.
    `runner_up`: the best of the others; `margin` compares the chosen one with it. `excluded`: words by candidate's label."""

    point: OperatingPoint
    verdict: str
    chosen: Candidate | None
    tied: tuple[Candidate, ...]
    runner_up: Candidate | None
    margin: Comparison | None
    excluded: Mapping[str, str]


def choose(point: OperatingPoint, limits: Mapping[str, float]) -> Choice:
    """Choose among the valid candidates of `point` that keep `limits` (recommend.limits of the config)."""
    fit, excluded = eligible(point, limits)
    if not fit:
        return Choice(point, NO_CANDIDATE, None, (), None, None, excluded)
    ranked = sorted(
        fit, key=lambda candidate: (-candidate.value, candidate.server.k, candidate.server.method)
    )
    leader, others = ranked[0], ranked[1:]
    verdicts = {other.server: compare(leader.samples, other.samples).verdict for other in others}
    if others and set(verdicts.values()) <= {SINGLE_RUN}:
        return _choice(point, SINGLE_RUN, leader, [leader], others, excluded)
    tied = [leader, *(other for other in others if verdicts[other.server] != FASTER)]
    chosen = min(tied, key=lambda candidate: (candidate.server.k, ranked.index(candidate)))
    verdict = NO_CLEAR_WINNER if len(tied) > 1 else CLEAR_WINNER if others else ONLY_CANDIDATE
    return _choice(point, verdict, chosen, tied, [other for other in ranked if other is not chosen], excluded)


def eligible(point: OperatingPoint, limits: Mapping[str, float]) -> tuple[list[Candidate], dict[str, str]]:
    """The candidates that may be ranked, and why the others may not, by their label."""
    fit, excluded = [], {}
    for candidate in point.candidates:
        outside = broken(limits, candidate.figures).items()
        words = candidate.objection or "; ".join(f"{LIMIT} {key}: {said}" for key, said in outside)
        if words:
            excluded[candidate.label] = words
        else:
            fit.append(candidate)
    return fit, excluded


def _choice(
    point: OperatingPoint,
    verdict: str,
    chosen: Candidate,
    tied: Sequence[Candidate],
    others: Sequence[Candidate],
    excluded: Mapping[str, str],
) -> Choice:
    runner_up = others[0] if others else None
    margin = compare(chosen.samples, runner_up.samples) if runner_up else None
    return Choice(point, verdict, chosen, tuple(tied), runner_up, margin, excluded)
