"""Everything that is recommended, in the forms in which it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from scripts.lib.cell import Server
from scripts.lib.recommend.answer import answer, plan_text
from scripts.lib.recommend.candidates import operating_points
from scripts.lib.recommend.choice import Choice, choose
from scripts.lib.recommend.fleet import Route
from scripts.lib.recommend.table import choice_row, recommendation_table, recommendation_text
from scripts.lib.recommend.traffic_plan import TrafficPlan, plan_traffic
from scripts.lib.recommend.wishes import Wishes


@dataclass(frozen=True)
class Recommendation:
    choices: tuple[Choice, ...]
    plans: tuple[TrafficPlan, ...]

    @property
    def table(self) -> pl.DataFrame:
        return recommendation_table(self.choices)

    @property
    def text(self) -> list[str]:
        """All of it as lines of markdown."""
        lines = ["# Recommendation", "", *answer(self.choices), "", *recommendation_text(self.table)]
        for plan in self.plans:
            lines += ["", f"## What to run for {plan.model}", "", *plan_text(plan)]
        return lines

    @property
    def as_json(self) -> dict[str, object]:
        """For other programs: `answer` (sentences), `points` (rows of the table), `plans`."""
        return {
            "answer": answer(self.choices),
            "points": [choice_row(choice) for choice in self.choices],
            "plans": [_plan_json(plan) for plan in self.plans],
        }


def recommend(points: pl.DataFrame, wishes: Wishes, devices_of: Callable[[Server], int]) -> Recommendation:
    """Recommend from the points table. `devices_of`: how many devices a server occupies."""
    operating = operating_points(points)
    choices = tuple(choose(point, wishes.limits) for point in operating)
    return Recommendation(choices, tuple(plan_traffic(operating, wishes, devices_of)))


def _plan_json(plan: TrafficPlan) -> dict[str, object]:
    fleet = plan.fleet
    return {
        "model": plan.model,
        "traffic": [vars(kind) for kind in plan.traffic],
        "traffic_assumed": plan.assumed,
        "budget": vars(plan.budget),
        "obstacles": list(plan.obstacles),
        "requests_per_s": fleet and fleet.requests_per_s,
        "devices": fleet and fleet.devices,
        "proven": fleet and fleet.proven,
        "servers": [{**vars(server), "count": count} for server, count in fleet.servers.items()]
        if fleet
        else [],
        "routes": [_route_json(route) for route in fleet.routes] if fleet else [],
        "text": plan_text(plan),
    }


def _route_json(route: Route) -> dict[str, object]:
    kind = route.traffic
    return {
        "scenario": kind.scenario,
        "concurrency": kind.concurrency,
        "server": vars(route.server),
        "share": route.share,
    }
