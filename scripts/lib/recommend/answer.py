"""The answer in two sentences, and a traffic plan in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scripts.lib.cell import BASELINE
from scripts.lib.metrics import METRICS
from scripts.lib.recommend.candidates import POINT_AXES, label
from scripts.lib.recommend.choice import (
    CLEAR_WINNER,
    LIMIT,
    NO_CANDIDATE,
    NO_CLEAR_WINNER,
    ONLY_CANDIDATE,
    Choice,
)
from scripts.lib.recommend.traffic_plan import TrafficPlan
from scripts.lib.statistics import SINGLE_RUN

_MOST_GROUPS, _MOST_AXES = 3, 3
_HOW_SURE = {
    CLEAR_WINNER: "clear",
    NO_CLEAR_WINNER: "without a clear winner (the smallest k is taken)",
    SINGLE_RUN: "resting on a single run, which says nothing about noise",
    ONLY_CANDIDATE: "with one candidate only",
    NO_CANDIDATE: "without a valid measurement",
}


def answer(choices: Sequence[Choice]) -> list[str]:
    """Two sentences: what is best where, and how sure that is."""
    decided = [choice for choice in choices if choice.chosen]
    if not choices:
        return ["Nothing was measured.", "So there is nothing to recommend."]
    if not decided:
        kept = " that keeps the limits" if _by_limit(choices) else ""
        return [
            f"Nothing can be recommended: no operating point has a valid measurement{kept}.",
            _why(choices),
        ]
    return [_what(decided), _how_sure(choices)]


def _why(choices: Sequence[Choice]) -> str:
    kind, count, total = _commonest_objection(choices)
    if not total:
        return "There is no measurement at all."
    candidates = "candidate" if total == 1 else "candidates"
    return f"The commonest reason is {kind} ({count} of {total} {candidates})."


def _by_limit(choices: Sequence[Choice]) -> bool:
    return any(why.startswith(LIMIT) for choice in choices for why in choice.excluded.values())


def _commonest_objection(choices: Sequence[Choice]) -> tuple[str, int, int]:
    """(words, how often, how many objections there are). They read `INVALID: name: words` or `limit key: words`."""
    words = [why for choice in choices for why in choice.excluded.values()]
    kinds = Counter(
        why.split(": ")[0] if why.startswith(LIMIT) else ": ".join(why.split(": ")[:2]) for why in words
    )
    return (*kinds.most_common(1)[0], len(words)) if words else ("", 0, 0)


def _what(decided: Sequence[Choice]) -> str:
    groups: dict[str, list[Choice]] = {}
    for choice in decided:
        groups.setdefault(choice.chosen.label, []).append(choice)
    if len(groups) == 1:
        name, group = next(iter(groups.items()))
        return f"Best everywhere it was measured: {name}{_gain(group)}."
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    parts = [f"{name} {_where(group, decided)}{_gain(group)}" for name, group in ordered[:_MOST_GROUPS]]
    if len(ordered) > _MOST_GROUPS:
        rest = ordered[_MOST_GROUPS:]
        count = sum(len(group) for _, group in rest)
        parts.append(f"{len(rest)} others at {count} of {len(decided)} operating points")
    return f"What is best depends on the conditions: {'; '.join(parts)}."


def _gain(group: Sequence[Choice]) -> str:
    speedups = [c.chosen.figures["speedup"] for c in group if c.chosen.server.method != BASELINE]
    known = [value for value in speedups if value is not None]
    if not known:
        no_ratio = f" (no valid `{BASELINE}` to compare with)"
        return no_ratio if speedups else " (nothing is shown to be faster)"
    low, high = (METRICS["speedup"].text(value) for value in (min(known), max(known)))
    return f" ({low}x `{BASELINE}`)" if low == high else f" ({low} to {high}x `{BASELINE}`)"


def _where(group: Sequence[Choice], everything: Sequence[Choice]) -> str:
    """The conditions that set this group apart, where a few values of the axes do; else how often."""
    parts: list[str] = []
    chosen: dict[str, set] = {}
    for axis in POINT_AXES:
        values = list(dict.fromkeys(choice.point.axes[axis] for choice in everything))
        own = [value for value in values if any(choice.point.axes[axis] == value for choice in group)]
        if len(own) == len(values):
            continue
        chosen[axis] = set(own)
        shown = (
            " and ".join(map(str, own)) if len(own) < 3 else f"{', '.join(map(str, own[:-1]))} and {own[-1]}"
        )
        parts.append(f"{axis} {shown}" if axis in ("concurrency", "max_model_len") else shown)
    within = [c for c in everything if all(c.point.axes[axis] in own for axis, own in chosen.items())]
    if parts and len(within) == len(group) and len(parts) <= _MOST_AXES:
        return f"at {', '.join(parts)}"
    return f"at {len(group)} of {len(everything)} operating points"


def _how_sure(choices: Sequence[Choice]) -> str:
    counts = Counter(choice.verdict for choice in choices)
    parts = [f"{counts[verdict]} {words}" for verdict, words in _HOW_SURE.items() if counts[verdict]]
    total = len(choices)
    points = "operating point" if total == 1 else "operating points"
    kind, _, objections = _commonest_objection(choices)
    everything = sum(len(choice.point.candidates) for choice in choices)
    left_out = (
        f"; {objections} of {everything} candidates were left out, most often for {kind}"
        if objections
        else ""
    )
    return f"Of {total} {points}: {', '.join(parts)}{left_out}."


def plan_text(plan: TrafficPlan) -> list[str]:
    """The plan as lines of markdown, without a heading."""
    mix = "every kind of traffic measured, in equal shares" if plan.assumed else "the traffic of the config"
    lines = [f"Traffic: {mix}.", ""]
    if plan.fleet is None:
        return [*lines, "No plan is possible.", "", *(f"- {words}" for words in plan.obstacles)]
    fleet = plan.fleet
    wanted = plan.budget.requests_per_s
    goal = "" if wanted is None else f" ({wanted:g} wanted)"
    devices = "1 device" if fleet.devices == 1 else f"{fleet.devices} devices"
    unproven = "" if fleet.proven else " (the solver's time ran out: there may be a better plan)"
    lines += [f"{fleet.requests_per_s:.3g} requests/s{goal} on {devices}{unproven}:", ""]
    for server, count in fleet.servers.items():
        lines.append(
            f"- {count} x {server.hardware}, {server.engine}: {label(server)}, max_model_len {server.max_model_len}"
        )
        lines += [
            f"  - {100 * route.share:.0f}% of {route.traffic.label}"
            for route in fleet.routes
            if route.server == server
        ]
    return lines
