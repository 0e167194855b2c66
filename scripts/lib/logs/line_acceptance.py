"""Acceptance from the speculative-metrics lines of a log. acceptance.py has the definition and the other
sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    pool = _Pool(k)
    for sample in _inside(series, start, end):
        pool.add(sample)
    if pool.last is None:
        return absent(
            "log", "no speculative-metrics line in the window (statistics off, or shorter than one interval)"
        )
    if pool.last.cumulative:
        return _from_cumulative(pool, _last_before(series, start))
    return pool.result()


def _inside(
    series: SpeculationSeries | Sequence[SpecSample], start: int | None, end: int | None
) -> Iterator[SpecSample]:
    if isinstance(series, SpeculationSeries):
        return series.between(start, end)
    low, high = start or 0, float("inf") if end is None else end
    return (sample for sample in series if low <= sample.offset < high)


def _last_before(series: Iterable[SpecSample], start: int | None) -> SpecSample | None:
    last = None
    for sample in series:
        if start is None or sample.offset >= start:
            break
        last = sample if sample.cumulative else last
    return last


class _Pool:
    """Running sums over lines, so that a long log need not be held as objects."""

    def __init__(self, k: int | None) -> None:
        self.k = k
        self.last: SpecSample | None = None
        self.samples = self.weighing = 0
        self.accepted = self.drafted = self.drafts = 0.0
        self.drafted_known = self.drafted_without_drafts = 0.0
        self.complete = self.exact = True
        self.position_drafts = 0.0
        self.positions: list[float] = []

    def add(self, sample: SpecSample) -> None:
        """Take one line; one that drafted nothing has no weight."""
        self.last = sample
        self.samples += 1
        accepted, drafted, drafts, exact = _counts(sample, self.k)
        if drafted == 0:
            return
        self.weighing += 1
        self.accepted += accepted
        self.drafted += drafted or 0.0
        self.complete = self.complete and drafted is not None
        self.exact = self.exact and exact
        if drafts:
            self.drafts += drafts
            self.drafted_known += drafted or 0.0
            self._add_positions(sample.per_position, drafts)
        else:
            self.drafted_without_drafts += drafted or 0.0

    def _add_positions(self, rates: tuple[float, ...], drafts: float) -> None:
        if not rates or any(rate != rate for rate in rates):
            return
        self.positions += [0.0] * (len(rates) - len(self.positions))
        for position, rate in enumerate(rates):
            self.positions[position] += rate * drafts
        self.position_drafts += drafts

    def result(self) -> Acceptance:
        """Acceptance of all lines, weighted by tokens."""
        dialect = self.last.dialect if self.last else None
        shared = {"samples": self.samples, "dialect": dialect}
        if not self.weighing:
            return absent("log", "no token was drafted in the window", **shared)
        drafted = self.drafted if self.complete else None
        shared |= {"accepted": self.accepted, "drafted": drafted}
        rate = self.accepted / drafted if drafted else None
        positions = tuple(total / self.position_drafts for total in self.positions)
        if self.accepted == 0:
            return Acceptance("log", 1.0, rate, positions, **shared)
        if not self.drafts:
            return absent("log", "this dialect prints neither k nor a mean length: give k", **shared)
        # Lines that accepted nothing do not tell their drafts; they get the others' average.
        per_token = self.drafts / self.drafted_known if self.drafted_known else 0.0
        drafts = self.drafts + self.drafted_without_drafts * per_token
        unreliable = "token counts of this release are unreliable (it summed running totals)"
        return Acceptance(
            "log",
            1 + self.accepted / drafts,
            rate,
            positions,
            drafts=drafts,
            exact=self.exact,
            note=unreliable if dialect == "b" else None,
            **shared,
        )


def _counts(sample: SpecSample, k: int | None) -> tuple[float, float | None, float | None, bool]:
    """(accepted, drafted, drafts, drafts counted exactly)."""
    accepted, drafted, drafts = sample.accepted or 0.0, sample.drafted, sample.drafts
    if sample.dialect == "sglang":
        drafted = drafts * k if drafted is None and k and drafts is not None else drafted
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


def _from_cumulative(pool: _Pool, base: SpecSample | None) -> Acceptance:
    last = pool.last
    known = {"samples": pool.samples, "dialect": last.dialect}
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
