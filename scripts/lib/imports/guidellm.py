"""Reports of GuideLLM (`--output kind=json`, benchmarks.json): its concurrent and synchronous runs.

Its `inter_token_latency_ms` is (last token - first token) / (tokens - 1), our time per output token; what it calls
time_per_output_token_ms has the first token in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib import formulas
from scripts.lib.imports.result import Result, UnreadableResult, count, number, seconds, spread

_TIMINGS = {"ttft": "time_to_first_token_ms", "tpot": "inter_token_latency_ms"}
_WEIGHTED = "throughput per request is tokens / time over all requests: the report keeps no single requests"


def recognises(data: object) -> bool:
    benchmarks = data.get("benchmarks") if isinstance(data, Mapping) else None
    return (
        isinstance(benchmarks, list)
        and bool(benchmarks)
        and all(isinstance(benchmark, Mapping) and "metrics" in benchmark for benchmark in benchmarks)
    )


def read(data: Mapping[str, object]) -> list[Result]:
    """Every closed-loop run of a report. Raises UnreadableResult when there is none."""
    results = [result for benchmark in data["benchmarks"] if (result := _read_one(benchmark))]
    if not results:
        raise UnreadableResult(
            "no benchmark of it is concurrent or synchronous: only runs at a fixed concurrency compare"
        )
    return results


def _read_one(benchmark: Mapping[str, object]) -> Result | None:
    concurrency = _concurrency(benchmark)
    if concurrency is None:
        return None
    metrics, done = benchmark["metrics"], _done_requests(benchmark)
    totals = metrics["request_totals"]
    completed = count(totals, "successful") or 0
    asked = count(totals, "total") or completed
    values: dict[str, object] = {"requests": asked, "completed": completed, "failed": asked - completed}
    reasons: dict[str, str] = {}
    notes: list[str] = []
    if completed:
        _throughput(metrics, done, values, notes)
        values["wall_s"] = _duration(benchmark)
        for stem, name in _TIMINGS.items():
            spread(stem, _figures_s(_successful(metrics, name)), completed, values, reasons)
    return Result(concurrency, values, reasons, notes=tuple(notes))


def _concurrency(benchmark: Mapping[str, object]) -> int | None:
    """Streams of a closed loop; None for a run by rate, which has no fixed concurrency."""
    where = benchmark.get("config") or benchmark.get("args") or {}
    strategy = where.get("strategy") or (where.get("scheduler") or {}).get("strategy") or {}
    kind = strategy.get("type_") or strategy.get("kind")
    if kind == "synchronous":
        return 1
    return count(strategy, "streams") if kind == "concurrent" else None


def _duration(benchmark: Mapping[str, object]) -> float | None:
    scheduler = benchmark.get("scheduler_metrics") or {}
    start, end = number(scheduler, "measure_start_time"), number(scheduler, "measure_end_time")
    return end - start if start is not None and end is not None else number(benchmark, "duration")


def _done_requests(benchmark: Mapping[str, object]) -> list[Mapping[str, object]]:
    requests = benchmark.get("requests")
    done = requests.get("successful") if isinstance(requests, Mapping) else None
    return done if isinstance(done, list) else []


def _successful(metrics: Mapping[str, object], name: str) -> Mapping[str, object]:
    of_status = metrics.get(name)
    found = of_status.get("successful") if isinstance(of_status, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _throughput(metrics: Mapping[str, object], done: list, values: dict, notes: list[str]) -> None:
    tokens = _successful(metrics, "output_token_count")
    total, completed = count(tokens, "total_sum"), values["completed"]
    values |= {
        "prompt_tokens": count(_successful(metrics, "prompt_token_count"), "total_sum"),
        "completion_tokens": total,
        "aggregate_tps": number(_successful(metrics, "output_tokens_per_second"), "mean"),
        "per_request_tps": _per_request(done),
    }
    if total is None:
        return
    values["tokens_per_request"] = formulas.tokens_per_request(total, completed)
    busy_s = number(_successful(metrics, "request_latency"), "total_sum")
    if values["per_request_tps"] is None and busy_s:
        values["per_request_tps"] = total / busy_s
        notes.append(_WEIGHTED)


def _per_request(done: list) -> float | None:
    pairs = [(count(request, "output_tokens"), number(request, "request_latency")) for request in done]
    if not pairs or any(None in pair for pair in pairs):
        return None
    return formulas.per_request_tps([tokens for tokens, _ in pairs], [elapsed for _, elapsed in pairs])


def _figures_s(figures: Mapping[str, object]) -> dict[str, float | None]:
    percentiles = figures.get("percentiles") or {}
    told = {"mean": figures, "median": figures, "p90": percentiles, "p99": percentiles}
    return {way: seconds(number(source, way)) for way, source in told.items()}
