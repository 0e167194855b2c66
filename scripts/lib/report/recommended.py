"""The recommendation (results/recommendation.json) in the words of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.lib.metrics import METRICS
from scripts.lib.plots.naming import SETTING, counted, series, value_words

_AXES = (*SETTING, "concurrency")


@dataclass(frozen=True)
class Choice:
    """One operating point: where, what, how much, how sure."""

    where: str
    best: str
    figure: str
    margin: str
    verdict: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Fleet:
    """One model's plan: a headline, then what to run with what it serves."""

    headline: str
    servers: tuple[tuple[str, tuple[str, ...]], ...]


def choices(recommendation: Mapping[str, Any]) -> list[Choice]:
    """Of every operating point; axes that all share are left out of `where`."""
    points = recommendation["points"]
    axes = [axis for axis in _AXES if len({point[axis] for point in points}) > 1] or ["concurrency"]
    return [_choice(point, axes) for point in points]


def _choice(point: Mapping[str, Any], axes: Sequence[str]) -> Choice:
    where = " · ".join(value_words(axis, point[axis]) for axis in axes)
    tied = f"as good as each other: {', '.join(point['tied'])}" if point["tied"] else ""
    remarks = tuple(filter(None, (tied, *(f"left out: {words}" for words in point["excluded"]))))
    if "method" not in point:
        return Choice(where, "", "", "", point["verdict"], remarks)
    metric = METRICS[point["headline"]]
    figure = f"{metric.text(point['value'])} {metric.unit}"
    if point["speedup"] is not None and point["k"]:
        figure += f" ({METRICS['speedup'].text(point['speedup'])}x none)"
    margin = f"{100 * (point['margin'] - 1):+.1f}% on {point['runner_up']}" if "margin" in point else ""
    return Choice(where, series(point["method"], point["k"]), figure, margin, point["verdict"], remarks)


def fleets(recommendation: Mapping[str, Any]) -> list[Fleet]:
    """The plan of each model; where none is possible, what stands against it."""
    return [_fleet(plan) for plan in recommendation["plans"]]


def _fleet(plan: Mapping[str, Any]) -> Fleet:
    mix = (
        "equal shares of every kind of traffic measured"
        if plan["traffic_assumed"]
        else "the traffic of the config"
    )
    if not plan["servers"]:
        against = tuple((words, ()) for words in plan["obstacles"])
        return Fleet(f"{plan['model']}: no plan is possible for {mix}.", against)
    rate = f"{plan['requests_per_s']:.3g} requests/s on {counted(plan['devices'], 'device')}"
    return Fleet(f"{plan['model']}: {rate}, for {mix}.", tuple(_server(row, plan) for row in plan["servers"]))


def _server(row: Mapping[str, Any], plan: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    axes = {name: value for name, value in row.items() if name != "count"}
    words = (
        f"{row['count']} x {row['hardware']}, {row['engine']}: {series(row['method'], row['k'])}, "
        f"max_model_len {row['max_model_len']}"
    )
    routes = tuple(
        f"{route['share']:.0%} of {route['scenario']} at concurrency {route['concurrency']}"
        for route in plan["routes"]
        if route["server"] == axes
    )
    return words, routes
