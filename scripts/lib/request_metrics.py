"""The metrics that follow from the requests of one cell alone: counts, throughput, latencies."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib import formulas
from scripts.lib.evidence import Request
from scripts.lib.full_load import FullLoad
from scripts.lib.metrics import of_subject

Values = dict[str, object]
Reasons = dict[str, str]

PERCENTILES = {"p90": 0.90, "p99": 0.99}
_OF_TOKENS = ("completion_tokens", "tokens_per_request", "per_request_tps", "aggregate_tps", "full_load_tps")


def request_metrics(measured: Sequence[Request], asked: int, concurrency: int) -> tuple[Values, Reasons]:
    """Metrics of the subjects requests, throughput and latency, and for each that is None the reason.

    Only completed requests count: failed ones lower `completed`, and lengthen `wall_s` by the time they took.
    When none completed, everything but the three counts is None."""
    done = [request for request in measured if request.completed]
    values: Values = dict.fromkeys(of_subject("requests", "throughput", "latency"))
    values |= {"requests": asked, "completed": len(done), "failed": max(asked, len(measured)) - len(done)}
    if not done:
        return values, {name: "no request completed" for name, value in values.items() if value is None}
    reasons: Reasons = {}
    values["wall_s"] = _wall_s(measured)
    values["prompt_tokens"] = _total([request.prompt_tokens for request in done])
    if values["prompt_tokens"] is None:
        reasons["prompt_tokens"] = _without_usage([request.prompt_tokens for request in done])
    _throughput(done, values, reasons)
    _full_load(measured, concurrency, values, reasons)
    _latency(done, values, reasons)
    return values, reasons


def _wall_s(measured: Sequence[Request]) -> float:
    ends = [request.end_s for request in measured if request.end_s is not None]
    return max(ends) - min(request.start_s for request in measured)


def _full_load(measured: Sequence[Request], concurrency: int, values: Values, reasons: Reasons) -> None:
    spans = [(request.start_s, request.end_s) for request in measured if request.end_s is not None]
    load = FullLoad(spans, concurrency)
    values["full_load_share"] = load.share
    if load.share is None:
        reasons["full_load_share"] = "requests that took no time have no share of it"
    done = [request for request in measured if request.completed]
    if values["completion_tokens"] is not None:
        outputs = [
            (r.first_token_s, r.end_s, r.completion_tokens) for r in done if r.first_token_s is not None
        ]
        values["full_load_tps"] = load.tps(outputs)
        if values["full_load_tps"] is None:
            reasons["full_load_tps"] = f"there were never {concurrency} requests under way"


def _total(counts: Sequence[int | None]) -> int | None:
    return None if None in counts else sum(counts)


def _without_usage(counts: Sequence[int | None]) -> str:
    return f"the server sent no token usage for {counts.count(None)} of {len(counts)} completed requests"


def _throughput(done: Sequence[Request], values: Values, reasons: Reasons) -> None:
    tokens = [request.completion_tokens for request in done]
    total = _total(tokens)
    if total is None:
        reasons |= dict.fromkeys(_OF_TOKENS, _without_usage(tokens))
        return
    values["completion_tokens"] = total
    values["tokens_per_request"] = formulas.tokens_per_request(total, len(done))
    values["per_request_tps"] = formulas.per_request_tps(tokens, [request.elapsed_s for request in done])
    values["aggregate_tps"] = formulas.aggregate_tps(total, values["wall_s"])
    for name in ("per_request_tps", "aggregate_tps"):
        if values[name] is None:
            reasons[name] = "requests that took no time cannot be divided by"


def _latency(done: Sequence[Request], values: Values, reasons: Reasons) -> None:
    ttft = [request.ttft_s for request in done if request.ttft_s is not None]
    _spread("ttft", ttft, "no completed request had a first token", values, reasons)
    tpot = [
        formulas.tpot_s(request.elapsed_s, request.ttft_s, request.completion_tokens)
        for request in done
        if request.ttft_s is not None and request.completion_tokens is not None
    ]
    tpot = [value for value in tpot if value is not None]
    _spread(
        "tpot",
        tpot,
        "no completed request had a first token and more than one counted token",
        values,
        reasons,
    )


def _spread(stem: str, samples: Sequence[float], without: str, values: Values, reasons: Reasons) -> None:
    values[f"{stem}_mean_s"] = formulas.mean(samples)
    values[f"{stem}_median_s"] = formulas.median(samples)
    for way, share in PERCENTILES.items():
        values[f"{stem}_{way}_s"] = formulas.percentile(samples, share)
        if samples and values[f"{stem}_{way}_s"] is None:
            reasons[f"{stem}_{way}_s"] = f"{len(samples)} samples, {formulas.samples_needed(share)} needed"
    if not samples:
        reasons |= {f"{stem}_{way}_s": without for way in ("mean", "median", *PERCENTILES)}
