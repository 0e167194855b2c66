"""Limits that a user sets, and what they leave out.

A limit is kept by the median over repeats. A figure that is not known keeps no limit: nobody has seen that it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scripts.lib.metrics import LOWER, METRICS


@dataclass(frozen=True)
class Limit:
    """The metric that a key of `recommend.limits` bounds; at most for metrics where lower is better, else at least."""

    metric: str

    @property
    def at_most(self) -> bool:
        return METRICS[self.metric].better == LOWER


LIMITS: dict[str, Limit] = {
    "ttft_s": Limit("ttft_median_s"),
    "ttft_p99_s": Limit("ttft_p99_s"),
    "tpot_s": Limit("tpot_median_s"),
    "tpot_p99_s": Limit("tpot_p99_s"),
    "per_request_tps": Limit("per_request_tps"),
    "kv_cache_tokens": Limit("kv_cache_tokens"),
    "max_concurrency": Limit("max_concurrency"),
    "weights_gib": Limit("weights_gib"),
    "gpu_memory_gib": Limit("gpu_memory_peak_gib"),
    "joules_per_token": Limit("joules_per_token"),
}
"""Keys of `recommend.limits` in the config's schema."""


def broken(limits: Mapping[str, float], figures: Mapping[str, object]) -> dict[str, str]:
    """Words for each limit that `figures` (metric values by name) do not keep, by the limit's key."""
    words = {}
    for key, bound in limits.items():
        limit = LIMITS[key]
        metric, value = METRICS[limit.metric], figures.get(limit.metric)
        side = "most" if limit.at_most else "least"
        if value is None:
            words[key] = (
                f"{metric.label} is not known, at {side} {bound:g} {metric.unit}".rstrip() + " is asked"
            )
        elif value > bound if limit.at_most else value < bound:
            words[key] = (
                f"{metric.label} {metric.text(value)}, at {side} {bound:g} {metric.unit}".rstrip()
                + " is asked"
            )
    return words
