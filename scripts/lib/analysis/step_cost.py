"""A speed-up as tokens per step against what a step costs.

    decode speed-up = tokens per step / step cost        step cost = step time / the baseline's step time
    speed-up        = decode speed-up * rest             rest: prefill, waiting, answers of another length

A step of the baseline gives one token, so its step time is its time per output token; that of a method with speculation is
its time per output token times its tokens per step. Break-even is the tokens per step at which the speed-up would be 1 if
steps cost what they did: tokens per step / speed-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scripts.lib.cell import BASELINE


@dataclass(frozen=True)
class Split:
    """Ratios without a unit, lengths in tokens, rates as shares of the drafted tokens; None where a figure is missing.
    `reason` says which."""

    tokens_per_step: float | None = None
    step_cost: float | None = None
    decode_speedup: float | None = None
    rest: float | None = None
    break_even_length: float | None = None
    break_even_rate: float | None = None
    reason: str | None = None


def tokens_per_step(point: Mapping[str, object]) -> float | None:
    """Tokens that a decoding step puts out: 1 for the baseline, else with steps that had no draft counted in where the
    method skips some (ngram, suffix)."""
    if point["method"] == BASELINE:
        return 1.0
    known = point["tokens_per_step"]
    return point["acceptance_length"] if known is None else known


def split(point: Mapping[str, object], baseline: Mapping[str, object] | None) -> Split:
    """Split the speed-up of a row of the points table; `baseline` is the `none` row under the same conditions."""
    length = tokens_per_step(point)
    if point["method"] == BASELINE:
        return Split(tokens_per_step=length)
    if baseline is None:
        return Split(length, reason=f"there is no `{BASELINE}` under the same conditions")
    own, base, speedup = point["tpot_mean_s"], baseline["tpot_mean_s"], point["speedup"]
    missing = [name for name, value in (("tokens per step", length), ("speed-up", speedup)) if not value]
    missing += ["time per output token"] if not own or not base else []
    if missing:
        return Split(length, reason=f"not known: {', '.join(missing)}")
    decode = base / own
    break_even = length / speedup
    return Split(
        tokens_per_step=length,
        step_cost=length / decode,
        decode_speedup=decode,
        rest=speedup / decode,
        break_even_length=break_even,
        break_even_rate=(break_even - 1) / point["k"],
    )
