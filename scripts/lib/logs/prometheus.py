"""Differences of two /metrics snapshots. Counters run since the server's start, so one snapshot alone says
little."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_SAMPLE = re.compile(
    r"^(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+(?:\.\d+)?)?\s*$"
)
_LABEL = re.compile(r'\s*(?P<name>[A-Za-z_]\w*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*,?')
_SKIPPED = ("_created", "_bucket")
START_TIME = "process_start_time_seconds"
POSITIONS = "vllm:spec_decode_num_accepted_tokens_per_pos"

# What each engine calls a counter, without `_total`; the first that is present counts.
COUNTERS: dict[str, tuple[str, ...]] = {
    "drafts": ("vllm:spec_decode_num_drafts", "sglang:spec_verify_calls"),
    "draft_tokens": ("vllm:spec_decode_num_draft_tokens",),
    "accepted_tokens": ("vllm:spec_decode_num_accepted_tokens",),
    "emitted_tokens": ("vllm:spec_decode_num_emitted_tokens",),
    "prefix_queries": ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries", "sglang:prompt_tokens"),
    "prefix_hits": ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits", "sglang:cached_tokens"),
    "preemptions": ("vllm:num_preemptions",),
    "requests": ("vllm:request_success", "sglang:num_requests"),
    "prompt_tokens": ("vllm:prompt_tokens", "sglang:prompt_tokens"),
    "generation_tokens": ("vllm:generation_tokens", "sglang:generation_tokens"),
    "engine_steps": ("vllm:iteration_tokens_total_count",),
}
_FINISH_REASONS = "vllm:request_success"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Metrics:
    """One snapshot: name as exposed -> labels -> value. `_created` twins and histogram buckets are left
    out."""

    samples: Mapping[str, Mapping[Labels, float]]

    def series(self, name: str) -> Mapping[Labels, float]:
        """Series of a counter given without `_total`; either spelling is found, histograms' sums and
        counts as named."""
        return self.samples.get(name + "_total") or self.samples.get(name) or {}


@dataclass(frozen=True)
class MetricsDelta:
    """Growth between two snapshots, engines summed. A counter that is None has its reason in `reasons`."""

    values: Mapping[str, float | None]
    reasons: Mapping[str, str]
    per_position: tuple[float, ...] | None = None
    finished: Mapping[str, float] = field(default_factory=dict)
    engine: str | None = None

    def __getitem__(self, name: str) -> float | None:
        return self.values[name]

    @property
    def prefix_hit_percent(self) -> float | None:
        """Share of looked-up prompt tokens found in the prefix cache."""
        queries, hits = self.values["prefix_queries"], self.values["prefix_hits"]
        return None if hits is None or not queries else 100 * hits / queries


def parse_metrics(text: str) -> Metrics:
    """Snapshot from Prometheus text (or OpenMetrics). Lines that are none are skipped; never raises for
    any text."""
    samples: dict[str, dict[Labels, float]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = _SAMPLE.match(line)
        if found is None or found["name"].endswith(_SKIPPED):
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        labels = tuple(sorted(_labels(found["labels"] or "")))
        samples.setdefault(found["name"], {})[labels] = value
    return Metrics(samples)


def _labels(text: str) -> Iterator[tuple[str, str]]:
    for found in _LABEL.finditer(text):
        yield (
            found["name"],
            re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], found["value"]),
        )


def difference(before: Metrics | str, after: Metrics | str) -> MetricsDelta:
    """What happened between two snapshots of one server.

    A counter that fell, or a process that started anew, means the server restarted: its values are None. A
    series that appears only later starts at 0 (engines create some at first use); one that vanished is a
    restart as well.
    """
    before = parse_metrics(before) if isinstance(before, str) else before
    after = parse_metrics(after) if isinstance(after, str) else after
    restarted = _restarted(before, after)
    values: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for name, spellings in COUNTERS.items():
        values[name], reason = _growth(before, after, spellings, restarted)
        if reason is not None:
            reasons[name] = reason
    return MetricsDelta(
        values,
        reasons,
        None if restarted else _positions(before, after),
        {} if restarted else _finished(before, after),
        next(
            (part for part in ("vllm", "sglang") if any(n.startswith(part + ":") for n in after.samples)),
            None,
        ),
    )


def _restarted(before: Metrics, after: Metrics) -> str | None:
    first = max(before.samples.get(START_TIME, {}).values(), default=None)
    second = max(after.samples.get(START_TIME, {}).values(), default=None)
    if first is not None and second is not None and second - first > 1:
        return "the server restarted between the snapshots (its process start time moved)"
    return None


def _leader(labels: Labels) -> bool:
    """Tensor-parallel ranks count the same work; only rank 0's copy is taken. Data-parallel engines are
    summed."""
    return all(value == "0" for name, value in labels if name in ("tp_rank", "pp_rank"))


def _growth(
    before: Metrics, after: Metrics, spellings: tuple[str, ...], restarted: str | None
) -> tuple[float | None, str | None]:
    present = [name for name in spellings if after.series(name) or before.series(name)]
    if not present:
        return None, f"/metrics has no {' or '.join(spellings)}"
    if restarted:
        return None, restarted
    old, new = before.series(present[0]), after.series(present[0])
    total = 0.0
    for labels in filter(_leader, set(old) | set(new)):
        if labels not in new:
            return None, f"{present[0]} vanished between the snapshots: the server restarted"
        grown = new[labels] - old.get(labels, 0.0)
        if grown < 0:
            return None, f"{present[0]} fell from {old[labels]:g} to {new[labels]:g}: the server restarted"
        if math.isnan(grown):
            return None, f"{present[0]} is not a number"
        total += grown
    return total, None


def _positions(before: Metrics, after: Metrics) -> tuple[float, ...] | None:
    totals: dict[int, float] = {}
    old = before.series(POSITIONS)
    for labels, value in after.series(POSITIONS).items():
        position = dict(labels).get("position", "")
        if position.isdecimal():
            grown = value - old.get(labels, 0.0)
            if grown < 0 or math.isnan(grown):
                return None
            totals[int(position)] = totals.get(int(position), 0.0) + grown
    if not totals:
        return None
    return tuple(totals.get(position, 0.0) for position in range(max(totals) + 1))


def _finished(before: Metrics, after: Metrics) -> dict[str, float]:
    old = before.series(_FINISH_REASONS)
    reasons: dict[str, float] = {}
    for labels, value in after.series(_FINISH_REASONS).items():
        reason = dict(labels).get("finished_reason")
        if reason is not None:
            reasons[reason] = reasons.get(reason, 0.0) + value - old.get(labels, 0.0)
    return reasons
