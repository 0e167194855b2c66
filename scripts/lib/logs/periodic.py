"""Periodic throughput lines and the dialects of speculative metrics, read key by key into the two series.

Dialects of speculation: a (vLLM V0, cumulative), b (V1 before 0.8.3), c (0.8.3-0.8.4), d1 (0.8.5, mean
without the bonus token), d2 (0.9.0-0.10.1), e (0.10.2 on), sglang. d1 and d2 print the same text; only the
sum over positions tells them apart. Diffusion lines (f) are not speculation and are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from scripts.lib.logs.fields import INTEGER, NUMBER, NUMBER_OR_NAN, number

NAN = float("nan")
DEFAULT_DECODE_LOG_INTERVAL = 40
VARIABLE_K_METHODS = frozenset({"ngram", "ngram_gpu", "suffix"})

_STATS = {
    "running": re.compile(rf"Running: ({INTEGER}) reqs"),
    "waiting": re.compile(rf"(?:Waiting|Pending): ({INTEGER}) reqs"),
    "swapped": re.compile(rf"Swapped: ({INTEGER}) reqs"),
    "usage": re.compile(rf"\b[A-Z]+ KV cache usage: ({NUMBER})%"),
    "prompt": re.compile(rf"Avg prompt throughput: ({NUMBER}) tokens/s"),
    "generation": re.compile(rf"Avg generation throughput: ({NUMBER}) tokens/s"),
    "hit": re.compile(rf"Prefix cache hit rate: ({NUMBER})%"),
    "preempted": re.compile(rf"Preemptions: ({INTEGER})"),
}
_ENGINE = re.compile(r"Engine (\d+): |(\d+ Engines) Aggregated: ")

_SGLANG = {
    "running": re.compile(rf"#running-req: ({INTEGER})"),
    "waiting": re.compile(rf"#queue-req: ({INTEGER})"),
    "usage": re.compile(rf"(?:(?<=, )|(?<=full ))token usage: ({NUMBER})"),
    "generation": re.compile(rf"gen throughput \(token/s\): ({NUMBER})"),
    "prompt": re.compile(rf"input throughput \(token/s\): ({NUMBER})"),
    "new": re.compile(rf"#new-token: ({INTEGER})"),
    "cached": re.compile(rf"#cached-token: ({INTEGER})"),
    "length": re.compile(rf"(?<!block )accept len: ({NUMBER})"),
    "rate": re.compile(rf"(?<!block )accept rate: ({NUMBER})"),
}

_V0 = re.compile(
    rf"Draft acceptance rate: (?P<rate>{NUMBER_OR_NAN})"
    rf"(?:, System efficiency: (?P<efficiency>{NUMBER_OR_NAN}), Number of speculative tokens: "
    rf"(?P<k>{INTEGER}))?"
    rf", Number of accepted tokens: (?P<accepted>{INTEGER}), Number of draft tokens: (?P<drafted>{INTEGER})"
    rf"(?:, Number of emitted tokens: (?P<emitted>{INTEGER}))?"
)
_MEAN = re.compile(rf"Mean acceptance length: ({NUMBER_OR_NAN})")
_TOKENS = re.compile(rf"Accepted: ({INTEGER}) tokens.*?Drafted: ({INTEGER}) tokens")
_POSITIONS = re.compile(
    rf"Per-position acceptance rate: ({NUMBER_OR_NAN}(?:, {NUMBER_OR_NAN})*)(?=, [A-Z]|\s*$)"
)
_RATE = re.compile(rf"Draft acceptance rate: ({NUMBER_OR_NAN})%")


def _find(pattern: re.Pattern[str], text: str) -> float:
    found = pattern.search(text)
    return NAN if found is None else number(found[1])


def engine_label(message: str) -> str | None:
    """`000` of `Engine 000: ...`, `2 Engines` of an aggregated line, else None."""
    found = _ENGINE.search(message)
    return None if found is None else found[1] or found[2]


def parse_stats(message: str) -> tuple[float, ...] | None:
    """Interval's eight numbers from a vLLM statistics message, whatever keys it has; None if it has none."""
    values = {name: _find(pattern, message) for name, pattern in _STATS.items()}
    if values["prompt"] != values["prompt"] and values["generation"] != values["generation"]:
        return None
    order = ("running", "waiting", "swapped", "usage", "prompt", "generation", "hit", "preempted")
    return tuple(values[name] for name in order)


def parse_sglang_batch(message: str) -> tuple[str, tuple[float, ...], float, float] | None:
    """(kind, Interval's eight numbers, accept length, accept rate) of a decode or prefill batch line."""
    found = {name: _find(pattern, message) for name, pattern in _SGLANG.items()}
    usage = found["usage"] * 100
    if message.startswith("Decode"):
        if found["running"] != found["running"]:
            return None
        values = (found["running"], found["waiting"], NAN, usage, NAN, found["generation"], NAN, NAN)
        return "decode", values, found["length"], found["rate"]
    hit = prefix_hit(found["new"], found["cached"])
    values = (found["running"], found["waiting"], NAN, usage, found["prompt"], NAN, hit, NAN)
    return "prefill", values, NAN, NAN


def prefix_hit(new: float, cached: float) -> float:
    """Share of a prefill batch's tokens that came from the prefix cache, in percent; NaN for an empty one."""
    total = new + cached
    return 100 * cached / total if total > 0 else NAN


def count_drafts(accepted: float, drafted: float, mean: float, k: int | None, fixed_k: bool) -> float:
    """Verification steps behind one line, NaN if it does not tell.

    The log never prints them. Drafted/k is exact when every draft had k tokens, which the printed mean (two
    decimals) confirms; otherwise accepted/(mean - 1), undefined when nothing was accepted.
    """
    if drafted == 0:
        return 0.0
    full = drafted / k if k else NAN
    if accepted > 0 and mean > 1:
        if k and abs(1 + accepted / full - mean) <= 0.0051:
            return full
        return accepted / (mean - 1)
    return full if fixed_k else NAN


def parse_v0(message: str) -> list[float | None] | None:
    """Dialects a and b: rate, efficiency, k, accepted, drafted, emitted as printed, None for what is not."""
    found = _V0.search(message)
    return None if found is None else [text and number(text) for text in found.groups()]


def v0_sample(values: Sequence[float | None], configured_k: int | None) -> tuple[str, tuple[float, ...]]:
    """(dialect, SpecSample's eight numbers) from what parse_v0 gives."""
    rate, efficiency, k, accepted, drafted, emitted = values
    if efficiency is None:
        k = configured_k or NAN
        drafts = drafted / k
        mean = 1 + accepted / drafts if drafts > 0 else NAN
        return "b", (accepted, drafted, drafts, NAN, mean, rate, k, 0.0)
    drafts = drafted / k if k else NAN
    # V0 counts tokens accepted behind a rejection, so only the efficiency tells how many were emitted per
    # step.
    emitted = NAN if emitted is None else emitted
    return "a", (accepted, drafted, drafts, emitted, efficiency * (k + 1), rate, k, 1.0)


class Printed(NamedTuple):
    """What a line of dialects c to e prints; mean is None where it has none, rate a fraction; modern: with the words of e."""

    accepted: float
    drafted: float
    mean: float | None
    rate: float
    positions: Sequence[float]
    modern: bool


def parse_v1(message: str) -> Printed | None:
    """Dialects c, d1, d2 and e."""
    tokens = _TOKENS.search(message)
    if tokens is None:
        return None
    found = _POSITIONS.search(message)
    positions = [number(part) for part in found[1].split(", ")] if found else []
    mean = _MEAN.search(message)
    return Printed(
        accepted=number(tokens[1]),
        drafted=number(tokens[2]),
        mean=None if mean is None else number(mean[1]),
        rate=_find(_RATE, message) / 100,
        positions=positions,
        modern="Accepted throughput" in message or "Avg Draft acceptance rate" in message,
    )


def v1_sample(
    printed: Printed, configured_k: int | None, fixed_k: bool, before_0_9: bool | None
) -> tuple[str, tuple[float, ...]]:
    """(dialect, SpecSample's eight numbers)."""
    accepted, drafted, mean, rate, positions, modern = printed
    k = len(positions) or configured_k
    if mean is None:
        drafts = drafted / k if k and drafted else NAN
        mean = 1 + accepted / drafts if drafts > 0 else NAN
        return "c", (accepted, drafted, drafts, NAN, mean, rate, k or NAN, 0.0)
    dialect = (
        "e" if modern or (not positions and before_0_9 is None) else _d1_or_d2(mean, positions, before_0_9)
    )
    if dialect == "d1":
        mean += 1
    drafts = count_drafts(accepted, drafted, mean, k, fixed_k)
    return dialect, (accepted, drafted, drafts, NAN, mean, rate, k or NAN, 0.0)


def _d1_or_d2(mean: float, positions: Sequence[float], before_0_9: bool | None) -> str:
    total = sum(positions)
    if (
        positions
        and mean == mean
        and total == total
        and abs(abs(mean - total) - abs(mean - 1 - total)) > 0.02
    ):
        return "d1" if abs(mean - total) < abs(mean - 1 - total) else "d2"
    return "d1" if before_0_9 else "d2"
