"""Acceptance of drafted tokens: one definition, three sources, and what to do when they disagree.

acceptance_length = 1 + accepted / drafts (tokens a verification step puts out, bonus token included), where a
draft is one verification step that had a proposal; acceptance_rate = accepted / drafted tokens; per-position
acceptance divides by all drafts. Whatever an engine's release calls these is converted before it gets here.
"""

from __future__ import annotations

from dataclasses import dataclass

from scripts.lib.logs.line_acceptance import Acceptance, absent, from_log
from scripts.lib.logs.periodic import VARIABLE_K_METHODS
from scripts.lib.logs.prometheus import MetricsDelta

__all__ = [
    "CHUNKS_AGAINST_SERVER",
    "LOG_AGAINST_METRICS",
    "Acceptance",
    "Agreement",
    "Effective",
    "compare",
    "effective_tokens",
    "from_chunks",
    "from_log",
    "from_metrics",
]

LOG_AGAINST_METRICS = 0.05
"""Relative bound on acceptance_length. The sums are equal over whole intervals (seen in 18 real runs); a
window cuts the first and the last line, which at the default interval of 10 s and a minute of load moves
the length by a few percent."""

CHUNKS_AGAINST_SERVER = 0.10
"""Relative bound for tokens per chunk: a busy API server merges steps into one chunk, and stop tokens cut
steps short."""


@dataclass(frozen=True)
class Effective:
    """Tokens per decoding step of a sequence, steps without a proposal included (n-gram and suffix skip
    many).

    coverage: share of the steps that had a proposal.
    """

    tokens_per_step: float | None
    coverage: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Agreement:
    """Comparison of the sources; alarms name the pair, both values and the bound. compared: how many pairs
    were checked."""

    alarms: tuple[str, ...]
    compared: int

    @property
    def ok(self) -> bool:
        """Whether no pair disagrees beyond its bound."""
        return not self.alarms


def from_metrics(delta: MetricsDelta, k: int | None = None) -> Acceptance:
    """Acceptance from the difference of two /metrics snapshots.

    vLLM V0 counts no drafts: with k they are draft tokens / k. SGLang counts verification steps only, so
    accepted tokens are what was generated beyond one per step and one per prompt (stop tokens inside a draft
    make it a lower bound).
    """
    drafts, accepted, drafted = delta["drafts"], delta["accepted_tokens"], delta["draft_tokens"]
    if delta.engine == "sglang" and drafts is not None:
        return _sglang_metrics(delta, drafts, k)
    if accepted is None or drafted is None:
        return absent("metrics", delta.reasons.get("accepted_tokens") or delta.reasons["draft_tokens"])
    emitted = delta["emitted_tokens"]
    if drafts is None and k and emitted is not None and drafted:
        drafts = drafted / k
        length = emitted / drafts
        note = "vLLM V0: from emitted tokens"
        return Acceptance(
            "metrics",
            length,
            (length - 1) / k,
            accepted=(length - 1) * drafts,
            drafted=drafted,
            drafts=drafts,
            note=note,
        )
    if drafts is None:
        return absent("metrics", delta.reasons["drafts"], accepted=accepted, drafted=drafted)
    if not drafts:
        return absent(
            "metrics", "no draft between the snapshots", accepted=accepted, drafted=drafted, drafts=drafts
        )
    positions = tuple(count / drafts for count in delta.per_position or ())
    rate = accepted / drafted if drafted else None
    return Acceptance("metrics", 1 + accepted / drafts, rate, positions, accepted, drafted, drafts)


def _sglang_metrics(delta: MetricsDelta, drafts: float, k: int | None) -> Acceptance:
    tokens, requests = delta["generation_tokens"], delta["requests"]
    if not drafts:
        return absent("metrics", "no verification step between the snapshots", drafts=drafts)
    if tokens is None or requests is None:
        return absent(
            "metrics", delta.reasons.get("generation_tokens") or delta.reasons["requests"], drafts=drafts
        )
    accepted = max(tokens - requests - drafts, 0.0)
    drafted = drafts * k if k else None
    note = "SGLang counts verification steps only; accepted tokens follow from what was generated"
    rate = accepted / drafted if drafted else None
    return Acceptance(
        "metrics",
        1 + accepted / drafts,
        rate,
        accepted=accepted,
        drafted=drafted,
        drafts=drafts,
        exact=False,
        note=note,
    )


def from_chunks(tokens: float, chunks: float, requests: float) -> Acceptance:
    """Mean tokens per streamed chunk over requests: the client's view of the step length.

    tokens and chunks are totals over completed requests; each request's first chunk comes from its prefill
    and carries one token, so one of each per request is taken out.
    """
    steps = chunks - requests
    if steps <= 0:
        return absent("chunks", "no chunk behind the first one of each request")
    length = (tokens - requests) / steps
    return Acceptance("chunks", length, None, drafts=steps, accepted=tokens - requests - steps, exact=False)


def effective_tokens(
    output_tokens: float | None,
    accepted: float | None,
    drafts: float | None,
    decode_steps: float | None = None,
) -> Effective:
    """Tokens per step with steps that had no proposal counted in.

    decode_steps: steps of all sequences; without it they are output_tokens - accepted, since every step puts
    out one token of its own and the accepted ones on top.
    """
    if output_tokens is None:
        return Effective(None, None, "output tokens are not known")
    if decode_steps is None:
        if accepted is None:
            return Effective(None, None, "neither steps nor accepted tokens are known")
        decode_steps = output_tokens - accepted
    if decode_steps <= 0:
        return Effective(None, None, "no decoding step")
    coverage = None if drafts is None else drafts / decode_steps
    return Effective(output_tokens / decode_steps, coverage)


# -- agreement -----------------------------------------------------------------------------------------------


def compare(
    log: Acceptance | None = None,
    metrics: Acceptance | None = None,
    chunks: Acceptance | None = None,
    method: str | None = None,
    effective: Effective | None = None,
    skips_steps: bool = False,
) -> Agreement:
    """Check the sources against each other; an alarm is raised beyond LOG_AGAINST_METRICS or
    CHUNKS_AGAINST_SERVER.

    A method that does not draft at every step (n-gram, suffix; any other with `skips_steps`) is compared with the
    chunks by its effective tokens per step. Sources without a value are not compared.
    """
    by_log, by_metrics, by_chunks = (None if one is None else one.length for one in (log, metrics, chunks))
    if skips_steps or method in VARIABLE_K_METHODS:
        server, name = effective and effective.tokens_per_step, "effective tokens per step"
    else:
        server, name = (by_log, "log") if by_metrics is None else (by_metrics, "metrics")
    pairs = [
        ("log", by_log, "metrics", by_metrics, LOG_AGAINST_METRICS),
        (name, server, "chunks", by_chunks, CHUNKS_AGAINST_SERVER),
    ]
    known = [pair for pair in pairs if pair[1] is not None and pair[3] is not None]
    alarms = [alarm for pair in known if (alarm := _alarm(*pair)) is not None]
    return Agreement(tuple(alarms), len(known))


def _alarm(first: str, one: float, second: str, other: float, bound: float) -> str | None:
    off = abs(one - other) / max(one, other)
    if off <= bound:
        return None
    return (
        f"acceptance disagrees: {first} {one:.2f}, {second} {other:.2f} ({off:.0%} apart, bound "
        f"{bound:.0%}); look for a restart, other traffic, or a window that does not fit the load"
    )
