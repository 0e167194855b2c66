"""Results of `vllm bench serve --save-result` and of `vllm bench sweep serve` (its run=N.json or summary.json).

With --save-detailed a file has figures per request; without it the throughput per request is weighted by tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from scripts.lib import formulas
from scripts.lib.imports.result import Result, UnreadableResult, count, number, seconds, spread

_MARKS = ("max_concurrency", "completed", "total_output_tokens", "duration")
_WEIGHTED = "throughput per request is tokens / time over all requests: the file has none per request (--save-detailed)"
_NO_P90 = "the file has no 90th percentile (--metric-percentiles)"


def recognises(data: object) -> bool:
    """Whether `data` is such a result, or a summary of several."""
    first = data[0] if isinstance(data, list) and data else data
    return isinstance(first, Mapping) and all(mark in first for mark in _MARKS)


def read(data: Mapping[str, object] | Sequence[Mapping[str, object]]) -> list[Result]:
    """Every run of a file. Raises UnreadableResult for a run without a limit of concurrency: those were paced by a
    request rate and cannot be compared with a closed loop."""
    return [_read_one(run) for run in (data if isinstance(data, list) else [data])]


def _read_one(run: Mapping[str, object]) -> Result:
    concurrency = count(run, "max_concurrency")
    if not concurrency:
        raise UnreadableResult(
            "max_concurrency is not set, so requests were sent by rate: only runs at a fixed concurrency compare"
        )
    values, reasons = _counts(run), {}
    notes: list[str] = []
    if values["completed"]:
        _throughput(run, values, reasons, notes)
        _latency(run, values, reasons)
        _acceptance(run, values)
    method, k = _method(run)
    return Result(
        concurrency=concurrency,
        values=values,
        reasons=reasons,
        method=method,
        k=k,
        notes=tuple(notes),
        repeat=(count(run, "run_number") or 0) + 1,
        started_at=str(run.get("date") or "") or None,
    )


def _counts(run: Mapping[str, object]) -> dict[str, object]:
    completed = count(run, "completed") or 0
    asked = count(run, "num_prompts") or completed + (count(run, "failed") or 0)
    return {"requests": asked, "completed": completed, "failed": asked - completed}


def _throughput(run: Mapping[str, object], values: dict, reasons: dict, notes: list[str]) -> None:
    tokens, duration, completed = (
        count(run, "total_output_tokens"),
        number(run, "duration"),
        values["completed"],
    )
    values |= {
        "wall_s": duration,
        "prompt_tokens": count(run, "total_input_tokens"),
        "completion_tokens": tokens,
    }
    if tokens is None or not duration:
        reasons["aggregate_tps"] = "the file has no total_output_tokens or no duration"
        return
    values["tokens_per_request"] = formulas.tokens_per_request(tokens, completed)
    values["aggregate_tps"] = formulas.aggregate_tps(tokens, duration)
    values["per_request_tps"] = _per_request(run)
    mean_elapsed_s = seconds(number(run, "mean_e2el_ms"))
    if values["per_request_tps"] is None and mean_elapsed_s:
        values["per_request_tps"] = tokens / (mean_elapsed_s * completed)
        notes.append(_WEIGHTED)


def _per_request(run: Mapping[str, object]) -> float | None:
    """From the lists of --save-detailed: a failed request has an error and counts for nothing."""
    lengths, first, gaps = run.get("output_lens"), run.get("ttfts"), run.get("itls")
    if not (isinstance(lengths, list) and isinstance(first, list) and isinstance(gaps, list)):
        return None
    errors = run.get("errors") or [""] * len(lengths)
    done = [
        (tokens, ttft + math.fsum(rest))
        for tokens, ttft, rest, error in zip(lengths, first, gaps, errors, strict=False)
        if tokens and not error
    ]
    return formulas.per_request_tps([tokens for tokens, _ in done], [elapsed for _, elapsed in done])


def _latency(run: Mapping[str, object], values: dict, reasons: dict) -> None:
    for stem in ("ttft", "tpot"):
        figures = {way: seconds(number(run, f"{way}_{stem}_ms")) for way in ("mean", "median", "p90", "p99")}
        if figures["p90"] is None:
            reasons[f"{stem}_p90_s"] = _NO_P90
        spread(stem, figures, values["completed"], values, reasons)


def _acceptance(run: Mapping[str, object], values: dict) -> None:
    rate = number(run, "spec_decode_acceptance_rate")
    positions = run.get("spec_decode_per_position_acceptance_rates")
    values |= {
        "acceptance_length": number(run, "spec_decode_acceptance_length"),
        "acceptance_rate": None if rate is None else rate / 100,
        "acceptance_per_position": positions if isinstance(positions, list) and positions else None,
        "drafts": count(run, "spec_decode_num_drafts"),
        "drafted_tokens": count(run, "spec_decode_draft_tokens"),
        "accepted_tokens": count(run, "spec_decode_accepted_tokens"),
    }


def _method(run: Mapping[str, object]) -> tuple[str | None, int | None]:
    """What a sweep passed to its server; a plain run tells nothing, also not that there was no speculation."""
    speculative = run.get("speculative_config")
    if isinstance(speculative, Mapping):
        k = count(speculative, "num_speculative_tokens")
        return str(speculative.get("method") or "") or None, k
    return ("none", 0) if run.get("_benchmark_name") == "none" else (None, None)
