"""Judgements that need a log and something beside it: what was asked, the checkpoint's config, other
tries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scripts.lib.logs.model import Failure, LogReport

_SPECULATOR_KEYS = ("speculators_config", "speculator_config", "speculators_model_type")
SMALLEST_STEP = 0.01


def speculator_not_active(checkpoint_config: Mapping, report: LogReport) -> str | None:
    """An error text if the checkpoint carries speculator settings but the server resolved none; else None.

    checkpoint_config: the model's config.json. Some releases serve a packaged speculator as its plain target.
    """
    carried = [key for key in _SPECULATOR_KEYS if checkpoint_config.get(key)]
    if not carried or report.get("speculative_method") != "none":
        return None
    release = f" {report.engine} {report.version}" if report.version else ""
    return (
        f"speculator present, not active: config.json has {carried[0]}, but the log "
        f"of{release or ' the server'} says speculative_config=None; name method, model and k explicitly"
    )


@dataclass(frozen=True)
class SchedulerLimit:
    """What kept requests waiting: most requests seen running, those asked for, the KV use and the budget's
    own limit."""

    running: int
    asked: int
    kv_usage_percent: float | None
    budget_requests: int | None

    @property
    def text(self) -> str:
        """One line for a table's remarks."""
        usage = ""
        if self.kv_usage_percent is not None:
            # Tenths say nothing here, unless they are all there is.
            digits = 0 if self.kv_usage_percent >= 1 else 1
            usage = f", KV only {self.kv_usage_percent:.{digits}f} %"
        budget = "" if self.budget_requests is None else f" (the token budget allows {self.budget_requests})"
        return f"scheduler-limited: {self.running} of {self.asked} run{usage}{budget}"


def budget_requests(max_num_batched_tokens: int, k: int) -> int:
    """Decoding requests one step's token budget holds: each needs k + 1 tokens."""
    return max_num_batched_tokens // (k + 1)


def scheduler_limit(
    report: LogReport,
    asked: int,
    start: int | None = None,
    end: int | None = None,
    max_num_batched_tokens: int | None = None,
    k: int | None = None,
) -> SchedulerLimit | None:
    """Whether the scheduler, not the KV cache, held requests back in the byte window: some wait, the KV
    cache is at most half full and fewer than `asked` run. None if not, or if the window has no periodic
    line."""
    samples = [sample for sample in report.intervals.between(start, end) if sample.running is not None]
    held = [sample for sample in samples if sample.waiting]
    if not held:
        return None
    busiest = max(held, key=lambda sample: sample.running)
    if busiest.running >= asked or (busiest.kv_usage_percent or 0.0) > 50.0:
        return None
    budget = (
        max_num_batched_tokens
        or report.get("max_num_scheduled_tokens")
        or report.get("max_num_batched_tokens")
    )
    k = report.get("num_speculative_tokens") if k is None else k
    limit = budget_requests(budget, k) if budget and k is not None else None
    return SchedulerLimit(busiest.running, asked, busiest.kv_usage_percent, limit)


@dataclass(frozen=True)
class MemoryBracket:
    """State of a search for a memory fraction: too_low failed for lack of it, too_high for too much of it.

    next_try is None when the search must end; `advice` then says what else to change.
    """

    too_low: float | None
    too_high: float | None
    next_try: float | None
    advice: str


def memory_bracket(
    tries: Iterable[tuple[float, Failure | None]], step: float = SMALLEST_STEP
) -> MemoryBracket:
    """Where to look next for a feasible memory fraction, given tried fractions and their failures (None: it
    started).

    The two memory errors point in opposite directions; when the gap between them is no larger than `step`, no
    value works and something else must change.
    """
    works, low, high = [], [], []
    for fraction, failure in tries:
        if failure is None:
            works.append(fraction)
        elif failure.memory_direction == "raise":
            low.append(fraction)
        elif failure.memory_direction == "lower":
            high.append(fraction)
    too_low, too_high = max(low, default=None), min(high, default=None)
    if works:
        return MemoryBracket(too_low, too_high, None, f"{max(works):g} works")
    if too_low is not None and too_high is not None:
        if too_high - too_low <= step + 1e-9:
            return MemoryBracket(
                too_low,
                too_high,
                None,
                f"no feasible fraction in ({too_low:g}, {too_high:g}); reduce capture batch, context, or "
                "draft",
            )
        middle = round((too_low + too_high) / 2, 4)
        return MemoryBracket(too_low, too_high, middle, f"try {middle:g}")
    if too_low is not None:
        return MemoryBracket(too_low, None, None, f"above {too_low:g}: raise it, the pool did not fit")
    if too_high is not None:
        return MemoryBracket(
            None, too_high, None, f"below {too_high:g}: lower it, capture or activations did not fit"
        )
    return MemoryBracket(None, None, None, "no try failed for memory")
