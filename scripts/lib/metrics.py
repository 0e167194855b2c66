"""The one registry of metrics: what a number in a table, an axis or a caption is called, what it means and
how to read it.

Add a metric here, compute it in record.py (one cell) or in tables/compare.py (against other cells), and it
becomes a column of results/tables/cells.parquet under its name. Formulas are implemented in formulas.py under
the same names."""

from __future__ import annotations

from scripts.lib.metric import ABSENT, HIGHER, INTEGER, LOWER, NEUTRAL, NUMBER, NUMBERS, Metric

__all__ = [
    "ABSENT", "HIGHER", "INTEGER", "LOWER", "METRICS", "NEUTRAL", "NUMBER", "NUMBERS", "Metric", "headline", "of_subject",
]  # fmt: skip


def _timing(stem: str, label: str, decimals: int, formula: str) -> list[Metric]:
    ways = {
        "mean": f"mean over completed requests of {formula}",
        "median": f"median over completed requests of {formula}",
        "p90": f"90th percentile of {formula}; absent below 29 requests",
        "p99": f"99th percentile of {formula}; absent below 299 requests",
    }
    return [
        Metric(
            f"{stem}_{way}_s", f"{label} {way}", "s", LOWER, decimals, text, "latency", short=f"{stem} {way}"
        )
        for way, text in ways.items()
    ]


def _phase(name: str, label: str, formula: str, short: str = "") -> Metric:
    return Metric(name, label, "s", LOWER, 1, formula, "startup", short=short)


def _client(name: str, label: str, unit: str, decimals: int, formula: str) -> Metric:
    return Metric(name, label, unit, LOWER, decimals, formula, "client")


def _gpu(name: str, label: str, unit: str, better: str, decimals: int, formula: str) -> Metric:
    return Metric(name, label, unit, better, decimals, f"{formula}; {_NVML}", "power")


def _host(name: str, label: str, unit: str, decimals: int, formula: str) -> Metric:
    return Metric(name, label, unit, LOWER, decimals, formula, "host")


_NVML = "read through NVML every 0.5 s"
_CAPACITY = "(processors * duration)"
_USAGE = "sum over completed requests, as the server counts"
_WINDOW = "in the measured window"
_LOG = "from the start-up log"
_LAG = f"how late the client's event loop came to what was due, every 10 ms {_WINDOW}"


# One row a metric: name, label, unit, which way is better, decimals, formula, subject.
# fmt: off
_METRICS = [
    Metric("requests", "requests asked", "", NEUTRAL, 0, "requests of the measured phase", "requests", INTEGER),
    Metric("completed", "completed", "", HIGHER, 0, "requests that ended with a finish reason", "requests", INTEGER),
    Metric("failed", "failed", "", LOWER, 0, "requests - completed", "requests", INTEGER),
    Metric("wall_s", "wall time", "s", NEUTRAL, 2, "last end - first start of the measured requests", "requests"),
    Metric("full_load_share", "time at full load", "share", HIGHER, 2,
        "share of wall_s in which as many requests were under way as the concurrency asks for; what is missing is the "
        "start and the end of the window, where aggregate_tps is too low", "requests", short="full load"),
    Metric("prompt_tokens", "prompt tokens", "tokens", NEUTRAL, 0, _USAGE, "requests", INTEGER),
    Metric("completion_tokens", "completion tokens", "tokens", NEUTRAL, 0, _USAGE, "requests", INTEGER),
    Metric("tokens_per_request", "tokens per request", "tokens", NEUTRAL, 1, "completion_tokens / completed", "requests"),
    Metric("truncated_share", "answers cut off", "share", NEUTRAL, 2,
        "completed requests that ended at max_tokens / completed", "answers", short="cut off"),
    Metric("degenerate_share", "degenerate answers", "share", LOWER, 2,
        "answers that are empty, one word, a repetition or unreadable / answers looked at", "answers", short="degenerate"),
    Metric("per_request_tps", "throughput per request", "tok/s", HIGHER, 1,
        "mean over completed requests of completion tokens / elapsed", "throughput", short="per request"),
    Metric("aggregate_tps", "total throughput", "tok/s", HIGHER, 1, "completion_tokens / wall_s", "throughput", short="total"),
    Metric("full_load_tps", "throughput at full load", "tok/s", HIGHER, 1,
        "tokens that came while as many requests were under way as the concurrency asks for / that time: total throughput "
        "without the end of the window; a request's tokens after the first count as spread evenly",
        "throughput", short="at full load"),
    Metric("speedup", "speedup vs none", "x", HIGHER, 2,
        "throughput / throughput of `none` with the same hardware, engine, model, max_model_len, scenario, "
        "concurrency and repeat; per_request_tps at concurrency 1, aggregate_tps above; over repeats the geometric "
        "mean", "comparison"),
    *_timing("ttft", "time to first token", 3, "first token - start"),
    *_timing("tpot", "time per output token", 4, "(elapsed - ttft) / (completion tokens - 1)"),
    Metric("acceptance_length", "acceptance length", "tokens", HIGHER, 2,
        f"1 + accepted / drafts, {_WINDOW}", "acceptance", short="length"),
    Metric("acceptance_rate", "acceptance rate", "share", HIGHER, 3, f"accepted / drafted tokens, {_WINDOW}", "acceptance", short="rate"),
    Metric("acceptance_per_position", "accepted by position", "share", HIGHER, 2,
        f"accepted at position i / drafts, {_WINDOW}", "acceptance", NUMBERS, short="by position"),
    Metric("drafts", "drafts", "", NEUTRAL, 0, f"draft proposals {_WINDOW}", "acceptance", INTEGER),
    Metric("drafted_tokens", "drafted", "tokens", NEUTRAL, 0, f"draft tokens {_WINDOW}", "acceptance", INTEGER),
    Metric("accepted_tokens", "accepted", "tokens", NEUTRAL, 0, f"draft tokens kept {_WINDOW}", "acceptance", INTEGER),
    Metric("tokens_per_step", "tokens per step", "tokens", HIGHER, 2,
        f"decoded tokens / decoding steps, those without a draft included (ngram, suffix), {_WINDOW}", "acceptance", short="per step"),
    Metric("draft_coverage", "steps with a draft", "share", NEUTRAL, 2,
        f"drafts / decoding steps (ngram, suffix), {_WINDOW}", "acceptance", short="drafted"),
    Metric("running_max", "requests running", "", NEUTRAL, 0,
        f"most requests that ran at once on one engine, by its periodic log lines {_WINDOW}", "scheduler", INTEGER, short="running"),
    Metric("waiting_share", "requests waiting", "share", LOWER, 2,
        f"periodic log lines with waiting requests / those with running ones {_WINDOW}", "scheduler", short="waiting"),
    Metric("preemptions", "preemptions", "", LOWER, 0, f"by the server's counter {_WINDOW}", "scheduler", INTEGER),
    Metric("prefix_hit_share", "prefix cache hits", "share", NEUTRAL, 3,
        f"prompt tokens found in the prefix cache / looked up {_WINDOW}", "scheduler", short="cached"),
    Metric("kv_cache_tokens", "KV cache", "tokens", HIGHER, 0,
        f"as the engine states it; depends on max_model_len, so compare at equal length only; {_LOG}", "memory", INTEGER, short="KV"),
    Metric("kv_cache_change", "KV cache vs none", "%", HIGHER, 1,
        "100 * (kv_cache_tokens / kv_cache_tokens of `none` with the same hardware, engine, model and "
        "max_model_len - 1)", "comparison", short="vs none"),
    Metric("max_concurrency_change", "max concurrency vs none", "requests", HIGHER, 2,
        "max_concurrency - max_concurrency of `none` with the same hardware, engine, model and max_model_len",
        "comparison", short="vs none"),
    Metric("kv_available_gib", "KV memory", "GiB", HIGHER, 2, f"memory for the KV cache; {_LOG}", "memory", short="KV"),
    Metric("max_concurrency", "max concurrency", "requests", HIGHER, 2,
        f"requests of full length (max_concurrency_length_tokens) that fit at once; {_LOG}", "memory", short="fits"),
    Metric("max_concurrency_length_tokens", "length of max concurrency", "tokens", NEUTRAL, 0,
        f"the resolved max_model_len; {_LOG}", "memory", INTEGER),
    Metric("block_size_tokens", "KV block", "tokens", NEUTRAL, 0, f"tokens of one KV page; {_LOG}", "memory", INTEGER),
    Metric("kv_bytes_per_token", "KV bytes per token", "B/token", LOWER, 0,
        f"per rank; compares engines where the memory for the KV cache differs; {_LOG}", "memory", INTEGER),
    Metric("weights_gib", "weights", "GiB", LOWER, 2, f"target and drafter, all ranks; {_LOG}", "memory"),
    _phase("startup_health_s", "healthy", "from the start to the first good answer of /health"),
    _phase("startup_ready_s", "ready", "from the start to the first completed request"),
    _phase("model_load_s", "load model", f"build and load target and drafter; {_LOG}", "load"),
    _phase("weights_load_s", "load weights", f"reading the target's weights; {_LOG}", "weights"),
    _phase("drafter_load_s", "load drafter", f"reading the drafter's weights; {_LOG}", "drafter"),
    _phase("compile_s", "compile", f"torch.compile of target and drafter; {_LOG}"),
    _phase("capture_s", "capture graphs", f"CUDA graph capture; {_LOG}", "capture"),
    _phase("init_s", "init engine", f"profile, create KV cache, warm up, compile included; {_LOG}", "init"),
    Metric("gpu_energy_j", "energy", "J", LOWER, 0,
        f"energy of the server's GPUs {_WINDOW}: by their counter, else power integrated; {_NVML}", "power"),
    Metric("joules_per_token", "energy per token", "J/token", LOWER, 3, "gpu_energy_j / completion_tokens", "power"),
    _gpu("gpu_power_mean_w", "power mean", "W", LOWER, 0, "gpu_energy_j / duration of the window"),
    _gpu("gpu_power_max_w", "power max", "W", LOWER, 0, f"largest sum over the server's GPUs {_WINDOW}"),
    _gpu("gpu_memory_peak_gib", "GPU memory", "GiB", LOWER, 2, f"largest memory in use on the server's GPUs {_WINDOW}"),
    _gpu("gpu_clock_mean_mhz", "GPU clock", "MHz", NEUTRAL, 0, f"mean clock of the multiprocessors {_WINDOW}"),
    _gpu("gpu_utilization", "GPU busy", "%", NEUTRAL, 0, f"mean share of time in which a kernel ran {_WINDOW}"),
    _gpu("gpu_temperature_max_c", "GPU temperature", "C", LOWER, 0, f"largest {_WINDOW}"),
    _gpu("power_capped_share", "at the power limit", "share", NEUTRAL, 2, "samples in which the power limit held the clocks back"),
    _gpu("slowdown_share", "throttled", "share", LOWER, 2, "samples in which heat or the power supply held the clocks back"),
    _host("foreign_cpu_share", "foreign load", "share", 3, f"processor time of others than server and client {_WINDOW} / {_CAPACITY}"),
    _host("steal_share", "stolen time", "share", 3, f"processor time that the hypervisor kept back {_WINDOW} / {_CAPACITY}"),
    _host("host_load_1m", "load average", "", 1, "of the last minute at the end of the window"),
    _host("foreign_gpu_memory_gib", "foreign GPU memory", "GiB", 2, "of others' processes on the server's GPUs at the end of the window"),
    _host("foreign_gpu_utilization", "foreign GPU load", "%", 0, f"utilization by others' processes on the server's GPUs {_WINDOW}"),
    _client("client_lag_p99_s", "client lag p99", "s", 4, f"99th percentile of {_LAG}"),
    _client("client_lag_max_s", "client lag max", "s", 4, f"largest of {_LAG}"),
    _client(
        "client_lag_share",
        "client lag share",
        "share",
        4,
        "client_lag_p99_s / mean duration of the completed requests: by how much the client may have lengthened one",
    ),
    _client("client_cpu_s", "client CPU", "s", 2, f"CPU seconds of the client's process {_WINDOW}"),
    _client("client_cpu_share", "client CPU share", "cores", 3, "client_cpu_s / duration of the window"),
]
# fmt: on

METRICS: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
"""All metrics by name, in the order of the columns of the cells table."""


def of_subject(*subjects: str) -> list[str]:
    """Names of the metrics of the given subjects, in registry order."""
    return [metric.name for metric in METRICS.values() if metric.subject in subjects]


def headline(concurrency: int) -> str:
    """Which throughput answers the question at this concurrency: one user's at 1, the server's above (study
    A)."""
    return "per_request_tps" if concurrency == 1 else "aggregate_tps"
