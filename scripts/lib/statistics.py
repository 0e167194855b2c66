"""What repeats say about a figure: how far they scatter, where the true value may lie, whether two figures differ.

A repeat is a measurement on a boot of its own. Two choices run through everything here:

Interval: Student's t interval of the mean at 95%, which takes repeats for independent and roughly normal. With two
repeats it is wide (t = 12.7): two points do not tell how noisy a machine is.

Ratio: repeats are paired, since all methods take their turn in each round of repeats and a drift of the machine falls
on both sides of a pair. The ratio is the geometric mean of the pairs' ratios, its interval that of the mean of their
logarithms.

A difference counts only when the interval leaves out 1 and it is larger than what the repeats of either side scatter by.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

CONFIDENCE = 0.95
_EQUAL = 1e-9

BASELINE, FASTER, SLOWER, UNRESOLVED, SINGLE_RUN, NO_VERDICT = (
    "baseline",
    "faster",
    "slower",
    "unresolved",
    "single run",
    "no verdict",
)
VERDICTS = (BASELINE, FASTER, SLOWER, UNRESOLVED, SINGLE_RUN, NO_VERDICT)


@cache
def half_width(count: int) -> float:
    """Half the 95% interval of the mean of `count` samples, in units of their standard deviation (n - 1).

    Raises ValueError below two samples, which have no such interval."""
    # Not scipy.stats, which takes seconds to import; and only here, since a single run needs none of it.
    from scipy.special import stdtrit

    if count < 2:
        raise ValueError(f"an interval needs two samples, not {count}")
    return float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) / math.sqrt(count)


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """(low, high) of the mean; None below two values."""
    if len(values) < 2:
        return None
    mean, width = statistics.fmean(values), half_width(len(values)) * statistics.stdev(values)
    return mean - width, mean + width


def spread(values: Sequence[float]) -> float | None:
    """(largest - smallest) / |median|; None below two values and for a median of zero."""
    middle = statistics.median(values) if len(values) > 1 else 0
    return (max(values) - min(values)) / abs(middle) if middle else None


@dataclass(frozen=True)
class Comparison:
    """`ratio` of a throughput to another with its 95% interval; None where it cannot be known. `pairs`: repeats that
    both sides have. `reason` says why the verdict is no plain faster or slower; empty when it is."""

    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    reason: str
    pairs: int


def compare(values: Mapping[int, float | None], reference: Mapping[int, float | None]) -> Comparison:
    """Compare two throughputs (higher is better), each given by repeat; None is a repeat without a figure.

    faster or slower needs two pairs, an interval without 1, and a difference above the spread of either side's own
    repeats. One pair is a `single run`; no pair is `no verdict`.
    """
    repeats = [repeat for repeat in values if _positive(values[repeat]) and _positive(reference.get(repeat))]
    if not repeats:
        return Comparison(None, None, None, NO_VERDICT, "no repeat has a figure on both sides", 0)
    logs = [math.log(values[repeat] / reference[repeat]) for repeat in repeats]
    ratio = math.exp(statistics.fmean(logs))
    interval = mean_interval(logs)
    if interval is None:
        return Comparison(ratio, None, None, SINGLE_RUN, "one repeat does not show its noise", 1)
    low, high = map(math.exp, interval)
    # Over all repeats of a side: one that the other side lacks shows its noise as well.
    noise = max(spread(list(filter(_positive, side.values()))) or 0.0 for side in (values, reference))
    verdict, reason = _verdict(ratio, low, high, noise)
    return Comparison(ratio, low, high, verdict, reason, len(repeats))


def _positive(value: float | None) -> bool:
    return value is not None and value > 0


def _verdict(ratio: float, low: float, high: float, noise: float) -> tuple[str, str]:
    if low <= 1 <= high:
        return UNRESOLVED, f"the interval {low:.2f} to {high:.2f} holds 1"
    # In the direction that makes the difference larger, so that 1 / ratio gets the same verdict.
    if max(ratio, 1 / ratio) - 1 <= noise + _EQUAL:
        return UNRESOLVED, f"repeats scatter by {noise:.1%}, more than the difference"
    return (FASTER if ratio > 1 else SLOWER), ""
