"""What went wrong for others, with the answer a good tool gives; each case with further ones of its kind."""

from __future__ import annotations

import json

import pytest

from scripts.lib.logs import checks, find_failure
from scripts.lib.logs.acceptance import effective_tokens, from_log, from_metrics
from scripts.lib.logs.prometheus import difference
from scripts.lib.logs.root_cause import failure_of_line
from tests.lib.logs.helpers import parse, sglang, vllm
from tests.lib.logs.test_prometheus import exposition

# -- F02: two capacity numbers disagree on a hybrid model ----------------------------------------------------


def test_f02_hybrid_capacity() -> None:
    report = parse(
        "(P) GPU KV cache size: 96,768 tokens\n(P) Maximum concurrency for 32,768 tokens per request: "
        "11.40x\n"
    )
    assert report.get("kv_cache_tokens") == 96768
    assert report.get("max_concurrency") == 11.40
    assert report.get("hybrid") is True
    note = report.facts["kv_cache_tokens"].note
    assert "not per-token capacity" in note
    assert "0.21" in note
    assert report.get("kv_bytes_per_token") is None


@pytest.mark.parametrize(
    ("tokens", "length", "requests", "hybrid"),
    [
        ("1,234,567", "32,768", "37.68", None),
        ("93,184", "2,048", "45.50", None),
        ("500,000", "131,072", "20.00", True),
        ("96,768", "32,768", "2.95", None),
    ],
)
def test_f02_other_models(tokens: str, length: str, requests: str, hybrid: bool | None) -> None:
    report = parse(
        vllm(
            f"GPU KV cache size: {tokens} tokens, Maximum concurrency for {length} tokens per request: "
            f"{requests}x"
        )
    )
    assert report.get("hybrid") is hybrid


def test_f02_release_decides_the_meaning() -> None:
    line = vllm("GPU KV cache size: 96,768 tokens") + vllm(
        "Maximum concurrency for 32,768 tokens per request: 11.40x"
    )
    dump = (
        "Initializing a V1 LLM engine (v{}) with config: model='t', speculative_config=None, "
        "max_seq_len=32768"
    )
    assert "underestimate" in parse(vllm(dump.format("0.12.0")) + line).facts["kv_cache_tokens"].note
    assert (
        "depends on max_model_len" in parse(vllm(dump.format("0.26.0")) + line).facts["kv_cache_tokens"].note
    )


# -- F04: a token budget limits concurrency under speculation ------------------------------------------------

F04 = (
    "(P) Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 402.0 tokens/s, "
    "Running: 10 reqs, "
    "Waiting: 54 reqs, GPU KV cache usage: 4.1%, Prefix cache hit rate: 0.0%\n"
)


def test_f04_scheduler_limited() -> None:
    report = parse(F04)
    (sample,) = report.intervals
    assert (sample.running, sample.waiting, sample.kv_usage_percent) == (10, 54, 4.1)
    found = checks.scheduler_limit(report, asked=64, max_num_batched_tokens=32, k=2)
    assert checks.budget_requests(32, 2) == 10
    assert found.text.startswith("scheduler-limited: 10 of 64 run, KV only 4 %")


# -- F13: not ready is not infeasible ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "phase", ["Starting to load model x...", "Graph capturing starts", "Capturing CUDA graphs (FULL): 10%"]
)
def test_f13_not_ready_is_tried_again(phase: str) -> None:
    failure = find_failure(parse(vllm("Starting to load model x...") + vllm(phase)), ended="timeout")
    assert (failure.catalogue_id, failure.failure_class) == ("not_ready", "transient")


# -- F14: out of memory long after readiness -----------------------------------------------------------------


def test_f14_run_time_oom() -> None:
    line = (
        "(Worker_TP0 pid=9) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.10 GiB. "
        "GPU 0 has 79 GiB\n"
    )
    alone = parse(line).failure
    ready = parse("(APIServer pid=1) INFO:     Application startup complete.\n" + line).failure
    for failure in (alone, ready):
        assert (failure.failure_class, failure.process) == ("resource_runtime", "Worker_TP0")
        assert failure.values == {"tried_gib": 2.1}
    start = parse(vllm("Starting to load model x...", "Worker_TP0 pid=9") + line).failure
    assert start.failure_class == "resource_start"


# -- F15: memory comes back after the pool was sized ---------------------------------------------------------

F15 = """\
[2026-02-03 04:05:06 TP0] Memory pool end. avail mem=0.31 GB
[2026-02-03 04:05:07 TP0] Capture target verify CUDA graph begin. avail mem=2.15 GB
[2026-02-03 04:05:30 TP0] max_total_num_tokens=13120, chunked_prefill_size=2048, max_prefill_tokens=16384, \
max_running_requests=48, context_len=8192, available_gpu_mem=1.80 GB
"""


def test_f15_memory_after_the_pool() -> None:
    report = parse(F15)
    assert report.get("kv_cache_tokens") == 13120
    assert [step.avail_gib for step in report.memory_steps] == [0.31, 2.15, 1.80]
    (notice,) = report.notices("memory_freed_after_pool")
    assert notice.values == {"gained_gib": 1.84}
    assert "1.84 GiB" in notice.text


def test_f15_each_rank_for_itself() -> None:
    other = F15.replace("TP0", "TP1").replace("2.15", "0.30").replace("1.80", "0.29")
    notices = parse(F15 + other).notices("memory_freed_after_pool")
    assert [notice.process for notice in notices] == ["TP0"]


def test_f15_memory_that_only_shrinks_is_no_notice() -> None:
    assert not parse(F15.replace("2.15", "0.28").replace("1.80", "0.20")).notices("memory_freed_after_pool")


# -- F16: opposite memory errors -----------------------------------------------------------------------------


def test_f16_no_value_works() -> None:
    low = failure_of_line("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. …")
    high = failure_of_line(
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.20 GiB …"
    )
    assert (low.memory_direction, high.memory_direction) == ("raise", "lower")
    bracket = checks.memory_bracket([(0.84, low), (0.85, high)])
    assert bracket.advice == "no feasible fraction in (0.84, 0.85); reduce capture batch, context, or draft"


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
            "ValueError: Free memory on device cuda:0 (12.0/79.1 GiB) on startup is less than desired GPU "
            "memory utilization (0.9, 71.2 GiB).",
        ),
        (
            "ValueError: To serve at least one request with the model's max seq len (8192), (0.18 GiB KV "
            "cache is needed, which is",
            "Exception: Capture decode CUDA graph failed: CUDA out of memory.",
        ),
    ],
)
def test_f16_other_engines(low: str, high: str) -> None:
    assert (failure_of_line(low).memory_direction, failure_of_line(high).memory_direction) == (
        "raise",
        "lower",
    )


# -- F18: a packaged speculator that did not run -------------------------------------------------------------


@pytest.mark.parametrize("key", ["speculators_config", "speculators_model_type"])
def test_f18_speculator_present_not_active(key: str) -> None:
    config = {key: {"proposal_methods": [{"speculative_tokens": 3}]}}
    log = (
        "(P) Initializing a V1 LLM engine (v0.11.0) with config: model='org/target', "
        "speculative_config=None\n"
    )
    error = checks.speculator_not_active(config, parse(log))
    assert "speculator present, not active" in error


# -- F20: two engines' capacity ------------------------------------------------------------------------------


def test_f20_bytes_per_token_and_totals() -> None:
    vllm_report = parse("vLLM:   Available KV cache memory: 24.75 GiB | GPU KV cache size: 180,224 tokens\n")
    sglang_report = parse(
        "SGLang: KV Cache is allocated. #tokens: 360448, K size: 24.75 GB, V size: 24.75 GB\n"
    )
    assert vllm_report.get("kv_bytes_per_token") == 147456
    assert sglang_report.get("kv_bytes_per_token") == 147456
    assert (vllm_report.get("kv_available_gib"), sglang_report.get("kv_available_gib")) == (24.75, 49.50)


def test_f20_one_sum_for_mla_pools() -> None:
    report = parse(sglang("KV Cache is allocated. #tokens: 360448, KV size: 49.50 GB"))
    assert (report.get("kv_available_gib"), report.get("kv_bytes_per_token")) == (49.5, 147456)


# -- F23: colours, prefixes, progress bars -------------------------------------------------------------------

F23 = (
    "2025-09-02T08:04:02.875067135Z \x1b[1;36m(EngineCore_0 pid=272)\x1b[0;0m INFO 09-02 08:04:02 "
    "[kv_cache_utils.py:849] "
    "GPU KV cache size: 64,512 tokens\r\n"
    "svc-1  | Loading safetensors checkpoint shards: 100% Completed | 4/4 [00:06<00:00, "
    "1.6s/it]\r(EngineCore_0 pid=272) INFO "
    "09-02 08:04:01 [default_loader.py:262] Loading weights took 6.48 seconds\n"
)


@pytest.mark.parametrize(
    "text",
    [F23, F23.replace("\x1b", "ESC").replace("\r\n", "\\r\\n\n")],
    ids=["real", "as printed in the report"],
)
def test_f23_layers(text: str) -> None:
    report = parse(text)
    assert report.get("kv_cache_tokens") == 64512
    assert report.get("weights_load_s") == 6.48
    assert report.facts["kv_cache_tokens"].process == report.facts["weights_load_s"].process == "EngineCore_0"


def test_f23_json_formatter() -> None:
    record = {
        "asctime": "2026-01-01 00:00:00",
        "levelname": "INFO",
        "name": "vllm.v1",
        "processName": "EngineCore",
        "message": "GPU KV cache size: 64,512 tokens",
    }
    assert parse(json.dumps(record) + "\n").get("kv_cache_tokens") == 64512


# -- F24: counters include the warm-up -----------------------------------------------------------------------


def test_f24_difference_not_total() -> None:
    found = from_metrics(difference(exposition(120, 360, 40), exposition(1120, 3360, 2140)))
    assert found.length == pytest.approx(3.10)
    assert found.rate == pytest.approx(0.700)


def test_f24_restart_is_null() -> None:
    found = from_metrics(difference(exposition(1120, 3360, 2140), exposition(120, 360, 40)))
    assert (found.length, found.rate) == (None, None)
    assert "restarted" in found.reason


# -- F25: n-gram's length describes the lucky steps ----------------------------------------------------------


def test_f25_effective_tokens() -> None:
    case = {
        "method": "ngram",
        "k": 5,
        "drafts": 200,
        "accepted": 720,
        "drafted": 1000,
        "output_tokens": 1720,
        "decode_steps": 1000,
    }
    logged = from_metrics(difference("", exposition(case["drafts"], case["drafted"], case["accepted"])))
    assert logged.length == pytest.approx(4.60)
    effective = effective_tokens(
        case["output_tokens"], case["accepted"], case["drafts"], case["decode_steps"]
    )
    assert effective.tokens_per_step == pytest.approx(1.72)
    assert effective.coverage == pytest.approx(0.20)


# -- F26: the old engine's rate ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "efficiency", "k", "length", "conservative"),
    [
        ("0.500", "0.400", 4, 2.00, 0.25),
        ("0.640", "0.600", 3, 2.40, 1.40 / 3),
        ("0.900", "1.000", 2, 3.00, 1.0),
    ],
)
def test_f26_efficiency_counts(
    rate: str, efficiency: str, k: int, length: float, conservative: float
) -> None:
    line = (
        f"Speculative metrics: Draft acceptance rate: {rate}, System efficiency: {efficiency}, Number of "
        f"speculative tokens: {k}, "
        "Number of accepted tokens: 2000, Number of draft tokens: 4000, Number of emitted tokens: 2000.\n"
    )
    found = from_log(parse(line).speculation)
    assert found.length == pytest.approx(length)
    assert found.rate == pytest.approx(conservative)
    assert (found.dialect, found.cumulative) == ("a", True)


# -- F27: longer starts, shorter does not --------------------------------------------------------------------

F27 = [
    (
        "ValueError: To serve at least one request with the models's max seq len (29000), (4.10 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (3.90 GiB). Based on the "
        "available memory, the estimated maximum model length is 27584.",
        {"max_model_len": 29000, "needed_gib": 4.1, "available_gib": 3.9, "estimated_max_model_len": 27584},
    ),
    (
        "ValueError: To serve at least one request with the models's max seq len (29000), (4.10 GiB KV "
        "cache is needed, … (3.90 GiB) … estimated maximum model length is 27584.",
        {"max_model_len": 29000, "needed_gib": 4.1, "available_gib": 3.9, "estimated_max_model_len": 27584},
    ),
    (
        "ValueError: To serve at least one request with the model's max seq len (1,048,576), (34.18 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (-0.02 GiB). Try increasing "
        "`gpu_memory_utilization`",
        {"max_model_len": 1048576, "needed_gib": 34.18, "available_gib": -0.02},
    ),
    (
        "ValueError: The model's max seq len (8192) is larger than the maximum number of tokens that can "
        "be stored in KV cache (1024).",
        {"max_model_len": 8192, "kv_cache_tokens": 1024},
    ),
]


@pytest.mark.parametrize(("line", "values"), F27, ids=["issue", "shortened", "no estimate", "V0"])
def test_f27_numbers(line: str, values: dict) -> None:
    failure = failure_of_line(line)
    assert (failure.catalogue_id, failure.failure_class) == ("context_does_not_fit", "resource_start")
    assert failure.values == values


# -- F28: the page grows with the drafter --------------------------------------------------------------------


def test_f28_block_size_is_a_value_and_the_last_one_counts() -> None:
    line = (
        "(P) Setting attention block size to {} tokens to ensure that attention page size is >= mamba "
        "page size.\n"
    )
    assert parse(line.format(784)).get("block_size_tokens") == 784
    assert parse(line.format("1,600")).get("block_size_tokens") == 1600
    assert parse(line.format(784) + line.format(1600)).get("block_size_tokens") == 1600


# -- F30: picked or unweighted lines -------------------------------------------------------------------------

F30 = (
    "Mean acceptance length: 2.90, … Accepted: 1900 tokens, Drafted: 3000 tokens, …\n"
    "Mean acceptance length: 2.88, … Accepted: 1861 tokens, Drafted: 2970 tokens, …\n"
    "Mean acceptance length: 1.33, … Accepted: 1 tokens, Drafted: 9 tokens, …\n"
)


def test_f30_weighted_by_tokens() -> None:
    found = from_log(parse(F30).speculation, k=3)
    assert found.length == pytest.approx(1 + 3762 / 1993)
    assert round(found.length, 2) == 2.89
    assert found.samples == 3
