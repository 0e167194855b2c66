"""Why no plan is possible: each limit is relaxed alone, and those whose relaxing helps are the ones that bind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scripts.lib.recommend.fleet import Budget, Option, feasible, reach
from scripts.lib.recommend.wishes import Traffic

OptionsFor = Callable[[Mapping[str, float]], Sequence[Option]]
"""The options that keep the given limits (key of `recommend.limits` to bound)."""


@dataclass(frozen=True)
class Question:
    """What could not be planned. `options_for` gives the options under any subset of `limits`."""

    options_for: OptionsFor
    limits: Mapping[str, float]
    traffic: Sequence[Traffic]
    budget: Budget


def obstacles(question: Question) -> list[str]:
    """A sentence for each limit that binds, with what would do; at least one sentence.

    To be asked after best_fleet has found nothing.
    """
    unmeasured = _unmeasured(question)
    if unmeasured:
        return unmeasured
    found = [*_limits(question), *_budget(question)]
    if found:
        return found
    return [
        "No limit binds alone: no plan is possible until several of them are relaxed together."
        + _rate(question)
    ]


def _unmeasured(question: Question) -> list[str]:
    """Traffic that nothing can serve, whatever the limits."""
    options = [o for o in question.options_for({}) if question.budget.devices.get(o.server.hardware, 0)]
    return [
        f"There is no valid measurement of {kind.label} on hardware that the budget has."
        for kind in question.traffic
        if not any(option.rates.get(kind) for option in options)
    ]


def _limits(question: Question) -> list[str]:
    words = []
    for key, bound in question.limits.items():
        others = {name: value for name, value in question.limits.items() if name != key}
        if feasible(question.options_for(others), question.traffic, question.budget):
            words.append(f"The limit {key} ({bound:g}) binds: without it a plan is possible.")
    return words


def _budget(question: Question) -> list[str]:
    options, traffic, budget = question.options_for(question.limits), question.traffic, question.budget
    words = []
    more = _fewest_configurations(options, traffic, budget)
    if more is not None:
        words.append(f"max_configurations ({budget.configurations}) binds: a plan is possible with {more}.")
    many = _plenty(options, traffic, budget)
    plenty = replace(budget, devices={name: many if count else 0 for name, count in budget.devices.items()})
    fleet = reach(options, traffic, plenty)
    if fleet is not None:
        given = ", ".join(f"{name} {count}" for name, count in budget.devices.items() if count)
        words.append(f"devices ({given}) binds: a plan is possible with {fleet.devices} in all.")
    rate = "" if budget.requests_per_s is None else _rate(question)
    if rate:
        words.append(f"requests_per_s ({budget.requests_per_s:g}) binds:{rate}")
    return words


def _fewest_configurations(
    options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget
) -> int | None:
    """How many configurations would do, None if no number does. More never hurt, so halving finds it."""
    few, enough = budget.configurations, len(options)
    if enough <= few or not feasible(options, traffic, replace(budget, configurations=enough)):
        return None
    while enough - few > 1:
        middle = (few + enough) // 2
        if feasible(options, traffic, replace(budget, configurations=middle)):
            enough = middle
        else:
            few = middle
    return enough


def _plenty(options: Sequence[Option], traffic: Sequence[Traffic], budget: Budget) -> int:
    """A number of devices with which their number cannot bind: every kind of traffic on servers of its own."""
    need = 0
    for kind in traffic:
        for option in options:
            rate = option.rates.get(kind)
            servers = 1 if not rate else 1 + kind.share * (budget.requests_per_s or 0) / rate
            need = max(need, option.devices * int(servers + 1))
    return max(1, need * len(traffic), *budget.devices.values())


def _rate(question: Question) -> str:
    free = replace(question.budget, requests_per_s=None)
    fleet = reach(question.options_for(question.limits), question.traffic, free)
    return "" if fleet is None else f" the budget takes {fleet.requests_per_s:.3g} requests/s of this mix."
