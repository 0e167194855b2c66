"""Acceptance from the speculative-metrics lines of a log. acceptance.py has the definition and the other
sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scripts.lib.logs.periodic import count_drafts
from scripts.lib.logs.series import SpecSample, SpeculationSeries


@dataclass(frozen=True)
class Acceptance:
    """Acceptance from one source. Values are None when the source does not tell, `reason` then says why.

    accepted, drafted, drafts: totals behind the ratios; exact: whether drafts were counted rather than
    recovered from rounded means; cumulative: since the server's start instead of the window; note: what a
    reader must know.
    """

    source: str
    length: float | None
    rate: float | None
    per_position: tuple[float, ...] = ()
    accepted: float | None = None
    drafted: float | None = None
    drafts: float | None = None
    samples: int = 0
    exact: bool = True
    cumulative: bool = False
    dialect: str | None = None
    reason: str | None = None
    note: str | None = None


def absent(source: str, reason: str, **known) -> Acceptance:
    """No value, for this reason."""
    return Acceptance(source, None, None, reason=reason, **known)


def from_log(
    series: SpeculationSeries | Sequence[SpecSample],
    start: int | None = None,
    end: int | None = None,
    k: int | None = None,
) -> Acceptance:
    """Token-weighted acceptance of the metric lines that start in the byte window [start, end) of the log.

    k: num_speculative_tokens, for dialects that do not print it. Cumulative lines (vLLM V0) are differenced.
    """
    inside = (
        [sample for sample in series if _within(sample, start, end)]
        if not isinstance(series, SpeculationSeries)
        else list(series.between(start, end))
    )
    if not inside:
        return absent(
            "log", "no speculative-metrics line in the window (statistics off, or shorter than one interval)"
        )
    if inside[-1].cumulative:
        return _from_cumulative(series, inside, start)
    return _pooled(inside, k)


def _within(sample: SpecSample, start: int | None, end: int | None) -> bool:
    return (start is None or sample.offset >= start) and (end is None or sample.offset < end)


def _pooled(samples: list[SpecSample], k: int | None) -> Acceptance:
    rows = [(sample, *_counts(sample, k)) for sample in samples]
    rows = [row for row in rows if row[2] is None or row[2] > 0]
    accepted = sum(row[1] for row in rows)
    drafted = [row[2] for row in rows if row[2] is not None]
    shared = {
        "accepted": accepted,
        "drafted": sum(drafted) if len(drafted) == len(rows) else None,
        "samples": len(samples),
        "dialect": samples[-1].dialect,
    }
    if not rows:
        return absent(
            "log", "no token was drafted in the window", samples=len(samples), dialect=samples[-1].dialect
        )
    rate = accepted / shared["drafted"] if shared["drafted"] else None
    if accepted == 0:
        return Acceptance("log", 1.0, rate, _positions(rows), **shared)
    drafts = _fill_unknown(rows)
    if drafts is None:
        return absent("log", "this dialect prints neither k nor a mean length: give k", **shared)
    exact = all(row[4] for row in rows)
    note = (
        "token counts of this release are unreliable (it summed running totals)"
        if shared["dialect"] == "b"
        else None
    )
    length = 1 + accepted / drafts
    return Acceptance("log", length, rate, _positions(rows), drafts=drafts, exact=exact, note=note, **shared)


def _counts(sample: SpecSample, k: int | None) -> tuple[float, float | None, float | None, bool]:
    """(accepted, drafted, drafts, drafts counted exactly)."""
    accepted, drafted, drafts = sample.accepted or 0.0, sample.drafted, sample.drafts
    if sample.dialect == "sglang":
        return accepted, drafted, drafts, False
    known = sample.k or k
    if sample.k is None:
        found = count_drafts(
            accepted, drafted or 0.0, sample.mean_length or float("nan"), known, known is not None
        )
        drafts = found if found == found else None
        if drafts is None and known and drafted and sample.mean_length is None:
            drafts = drafted / known
    exact = drafts is not None and bool(known) and drafted is not None and abs(drafts * known - drafted) < 0.5
    return accepted, drafted, drafts, exact


def _fill_unknown(rows: list) -> float | None:
    """Sum of drafts; lines that accepted nothing do not tell theirs and get the average drafted tokens per
    draft."""
    known = [(row[2], row[3]) for row in rows if row[3]]
    if not known:
        return None
    total = sum(drafts for _, drafts in known)
    drafted = sum(tokens or 0.0 for tokens, _ in known)
    missing = sum(row[2] or 0.0 for row in rows if not row[3])
    return total + (missing * total / drafted if drafted else 0.0)


def _positions(rows: list) -> tuple[float, ...]:
    weighted = [(row[0].per_position, row[3] or 0.0) for row in rows if row[0].per_position]
    weighted = [
        (rates, weight) for rates, weight in weighted if weight and all(rate == rate for rate in rates)
    ]
    total = sum(weight for _, weight in weighted)
    if not total:
        return ()
    width = max(len(rates) for rates, _ in weighted)
    return tuple(
        sum(rates[i] * weight for rates, weight in weighted if i < len(rates)) / total for i in range(width)
    )


def _from_cumulative(series: Iterable[SpecSample], inside: list[SpecSample], start: int | None) -> Acceptance:
    last = inside[-1]
    earlier = [
        sample for sample in series if start is not None and sample.offset < start and sample.cumulative
    ]
    base = earlier[-1] if earlier else None
    known = {"samples": len(inside), "dialect": last.dialect}
    if base is not None and (last.drafted or 0) < (base.drafted or 0):
        return absent("log", "the running totals fell: the server restarted", **known)
    drafts, emitted = last.drafts, last.emitted
    note = (
        "vLLM V0: from system efficiency; its acceptance rate counts tokens behind a rejection and is not "
        "used"
    )
    if base is None or drafts is None or emitted is None or base.drafts is None or base.emitted is None:
        length = last.mean_length
        cumulative = True
    else:
        drafts, emitted = drafts - base.drafts, emitted - base.emitted
        length = emitted / drafts if drafts > 0 else None
        cumulative = False
    if length is None:
        return absent("log", "nothing was drafted in the window", **known)
    rate = (length - 1) / last.k if last.k else None
    accepted = (length - 1) * drafts if drafts is not None else None
    drafted = drafts * last.k if drafts is not None and last.k else None
    return Acceptance(
        "log",
        length,
        rate,
        accepted=accepted,
        drafted=drafted,
        drafts=drafts,
        exact=False,
        cumulative=cumulative,
        note=note,
        **known,
    )
