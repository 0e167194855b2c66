"""From operating points and wishes to one plan per model: options, budget, the best fleet or what stands in its way."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scripts.lib.cell import Server
from scripts.lib.recommend.candidates import Candidate, OperatingPoint
from scripts.lib.recommend.choice import eligible
from scripts.lib.recommend.fleet import Budget, Fleet, Option, SolverError, best_fleet
from scripts.lib.recommend.obstacles import Question, obstacles
from scripts.lib.recommend.wishes import Traffic, Wishes


@dataclass(frozen=True)
class TrafficPlan:
    """What to run for `model`. `assumed`: the config names no traffic, so every measured kind has an equal share.
    `obstacles` says why `fleet` is None."""

    model: str
    traffic: tuple[Traffic, ...]
    assumed: bool
    budget: Budget
    fleet: Fleet | None
    obstacles: tuple[str, ...] = ()


def plan_traffic(
    points: Sequence[OperatingPoint], wishes: Wishes, devices_of: Callable[[Server], int]
) -> list[TrafficPlan]:
    """One plan per model of `points`. `devices_of`: how many devices a server occupies."""
    models = dict.fromkeys(str(point.axes["model"]) for point in points)
    return [
        _plan(model, [point for point in points if point.axes["model"] == model], wishes, devices_of)
        for model in models
    ]


def _plan(
    model: str, points: Sequence[OperatingPoint], wishes: Wishes, devices_of: Callable[[Server], int]
) -> TrafficPlan:
    traffic = wishes.traffic or _every_kind(points)
    hardware = dict.fromkeys(str(point.axes["hardware"]) for point in points)
    budget = Budget(
        {name: wishes.devices_of(name) for name in hardware},
        wishes.max_configurations,
        wishes.requests_per_s,
        wishes.tolerance,
    )

    def options_for(limits: Mapping[str, float]) -> list[Option]:
        return options(points, traffic, limits, devices_of)

    fleet, why = None, []
    try:
        fleet = best_fleet(options_for(wishes.limits), traffic, budget)
        why = [] if fleet else obstacles(Question(options_for, wishes.limits, traffic, budget))
    except SolverError as error:
        why = [
            f"It is not known whether one is possible: {error}; name fewer kinds of traffic or set limits."
        ]
    return TrafficPlan(model, traffic, not wishes.traffic, budget, fleet, tuple(why))


def _every_kind(points: Sequence[OperatingPoint]) -> tuple[Traffic, ...]:
    kinds = sorted({(str(point.axes["scenario"]), int(point.axes["concurrency"])) for point in points})
    return tuple(Traffic(scenario, concurrency, 1 / len(kinds)) for scenario, concurrency in kinds)


def options(
    points: Sequence[OperatingPoint],
    traffic: Sequence[Traffic],
    limits: Mapping[str, float],
    devices_of: Callable[[Server], int],
) -> list[Option]:
    """Every server that may serve some of `traffic` under `limits`, with its requests/s.

    A rate is total throughput / tokens of a typical request of that kind, the same for all servers: a method whose
    sampled answers happened to be short has not earned anything by it.
    """
    rates: dict[Server, dict[Traffic, float]] = {}
    for kind in traffic:
        fit = [candidate for point in _of(points, kind) for candidate in eligible(point, limits)[0]]
        tokens = _typical_tokens([candidate for point in _of(points, kind) for candidate in point.candidates])
        for candidate in fit:
            total = candidate.figures["aggregate_tps"]
            if tokens and total:
                rates.setdefault(candidate.server, {})[kind] = total / tokens
    return [Option(server, devices_of(server), by_kind) for server, by_kind in rates.items()]


def _of(points: Sequence[OperatingPoint], kind: Traffic) -> list[OperatingPoint]:
    wanted = (kind.scenario, kind.concurrency)
    return [point for point in points if (point.axes["scenario"], point.axes["concurrency"]) == wanted]


def _typical_tokens(candidates: Sequence[Candidate]) -> float | None:
    known = [candidate.figures["tokens_per_request"] for candidate in candidates if not candidate.objection]
    known = [tokens for tokens in known if tokens]
    return statistics.median(known) if known else None
