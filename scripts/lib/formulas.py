"""The arithmetic of the metrics (definitions: metrics.py). Pure; a value that cannot be computed is None,
never 0."""

from __future__ import annotations

import math
from collections.abc import Sequence


def per_request_tps(tokens: Sequence[int], elapsed_s: Sequence[float]) -> float | None:
    """Mean over requests of tokens / elapsed, in tokens/s; None without requests or with an elapsed time of
    zero."""
    if not tokens or min(elapsed_s) <= 0:
        return None
    return math.fsum(n / s for n, s in zip(tokens, elapsed_s, strict=True)) / len(tokens)


def aggregate_tps(tokens: int, wall_s: float) -> float | None:
    """Tokens of all requests / wall time, in tokens/s; None when no time passed."""
    return tokens / wall_s if wall_s > 0 else None


def tokens_per_request(tokens: int, completed: int) -> float | None:
    return tokens / completed if completed else None


def tpot_s(elapsed_s: float, ttft_s: float, tokens: int) -> float | None:
    """Time per output token after the first, in seconds; None for an output of one token, which has no such
    time."""
    return (elapsed_s - ttft_s) / (tokens - 1) if tokens > 1 else None


def speedup(value: float | None, baseline: float | None) -> float | None:
    """Ratio to the baseline; None when either is absent or the baseline is zero."""
    return value / baseline if value is not None and baseline else None


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def median(values: Sequence[float]) -> float | None:
    return _quantile(values, 0.5) if values else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The `share` quantile (0 < share < 1), linear between samples; None with fewer than
    `samples_needed(share)`."""
    return _quantile(values, share) if len(values) >= samples_needed(share) else None


def samples_needed(share: float) -> int:
    """Smallest n for which the largest of n samples lies above the `share` quantile with 95% confidence.

    share ** n <= 0.05 (one-sided distribution-free bound by order statistics): 29 for 0.9, 299 for 0.99. With
    fewer the figure would be the sample's maximum under another name."""
    return math.ceil(math.log(0.05) / math.log(share))


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def pages(tokens: float, page_tokens: int) -> int:
    """KV pages that a request of `tokens` (at least 1) occupies; the last one is taken whole."""
    return math.ceil(tokens / page_tokens)
