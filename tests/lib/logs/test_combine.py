"""Ranks and data-parallel engines become one figure for the deployment, as each figure means it."""

from __future__ import annotations

import pytest

from scripts.lib.logs.policies import engine_index
from tests.lib.logs.helpers import parse, sglang, vllm


def test_smallest_rank_rules_inside_an_engine() -> None:
    report = parse(
        vllm("GPU KV cache size: 1,000 tokens", "VllmWorker rank=0 pid=1")
        + vllm("GPU KV cache size: 960 tokens", "VllmWorker rank=1 pid=2")
    )
    fact = report.facts["kv_cache_tokens"]
    assert (fact.value, fact.process) == (960, "VllmWorker rank=1")
    assert [item.value for item in fact.observations] == [1000, 960]


@pytest.mark.parametrize("names", [("EngineCore_DP0", "EngineCore_DP1"), ("EngineCore_0", "EngineCore_1")])
def test_engines_are_summed(names: tuple[str, str]) -> None:
    text = ""
    for pid, (name, tokens, requests) in enumerate(
        zip(names, ("1,000", "900"), ("10.00", "9.00"), strict=True), 5
    ):
        text += vllm(f"GPU KV cache size: {tokens} tokens", f"{name} pid={pid}")
        text += vllm(f"Maximum concurrency for 100 tokens per request: {requests}x", f"{name} pid={pid}")
    report = parse(text)
    assert report.get("kv_cache_tokens") == 1900
    assert report.get("max_concurrency") == 19.0
    assert report.get("max_concurrency_length_tokens") == 100
    assert "2 data-parallel engines" in report.facts["kv_cache_tokens"].note


def test_dp0_alone_is_no_data_parallelism() -> None:
    report = parse(vllm("GPU KV cache size: 1,000 tokens", "EngineCore_DP0 pid=3") * 2)
    assert report.get("kv_cache_tokens") == 1000
    assert report.facts["kv_cache_tokens"].note is None


def test_workers_belong_to_their_engine() -> None:
    text = "".join(
        vllm(f"Available KV cache memory: {gib} GiB", f"Worker_DP{dp}_TP{tp} pid={dp}{tp}")
        for dp, tp, gib in ((0, 0, 51.3), (0, 1, 50.0), (1, 0, 49.0), (1, 1, 49.5))
    )
    assert parse(text).get("kv_available_gib") == 99.0


def test_weights_are_summed_over_ranks_of_one_engine() -> None:
    text = "".join(
        vllm("Model loading took 7.5 GiB memory and 3.0 seconds", f"Worker_TP{tp} pid={tp}")
        for tp in range(4)
    )
    report = parse(text)
    assert report.get("weights_gib") == 30.0
    assert report.get("model_load_s") == 3.0


def test_weights_of_replicas_are_not_added() -> None:
    text = "".join(
        vllm("Model loading took 7.5 GiB memory and 3.0 seconds", f"Worker_DP{dp}_TP{tp} pid={dp}{tp}")
        for dp in range(2)
        for tp in range(2)
    )
    assert parse(text).get("weights_gib") == 15.0


def test_rank_zero_without_prefix_counts_as_a_rank() -> None:
    report = parse(
        "INFO 08-12 06:11:52 model_runner.py:76] Loading model weights took 7.5000 GB\n"
        "(VllmWorkerProcess pid=91) INFO 08-12 06:11:52 model_runner.py:76] Loading model weights took "
        "7.5000 GB\n"
    )
    assert report.get("weights_gib") == 15.0


def test_ray_counts_what_it_dropped() -> None:
    first = (
        "(RayWorkerWrapper pid=1) INFO 11-29 18:22:15 [x.py:1] Model loading took 7.5 GiB memory and 3.0 "
        "seconds"
    )
    again = (
        "(RayWorkerWrapper pid=2) INFO 11-29 18:22:16 [x.py:1] Model loading took 7.5 GiB memory and 3.0 "
        "seconds"
    )
    report = parse(first + "\n" + again + " [repeated 3x across cluster]\n")
    assert report.get("weights_gib") == 30.0
    assert "Ray" in report.facts["weights_gib"].note


def test_compile_lines_of_a_process_are_summed_and_checked() -> None:
    text = vllm("torch.compile took 20.16 s in total") + vllm("torch.compile took 16.92 s in total")
    text += vllm("torch.compile and initial profiling/warmup run together took 31.00 s in total")
    fine = parse(
        text
        + vllm("init engine (profile, create kv cache, warmup model) took 171.73 s (compilation: 37.08 s)")
    )
    assert fine.get("compile_s") == 37.08
    assert "the engine itself" not in fine.facts["compile_s"].note
    off = parse(
        text
        + vllm("init engine (profile, create kv cache, warmup model) took 171.73 s (compilation: 50.00 s)")
    )
    assert "50.0" in off.facts["compile_s"].note


def test_compile_of_ranks_side_by_side_is_the_slowest() -> None:
    text = "".join(
        vllm(f"torch.compile took {seconds} s in total", f"Worker_TP{rank} pid={rank}")
        for rank, seconds in ((0, "20.0"), (0, "5.0"), (1, "21.0"), (1, "6.0"))
    )
    assert parse(text).get("compile_s") == 27.0


def test_target_and_drafter_loading_by_boundary() -> None:
    report = parse(
        vllm("Loading weights took 4.90 seconds", "Worker pid=5")
        + vllm(
            "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].", "Worker pid=5"
        )
        + vllm("Loading drafter model...", "Worker pid=5")
        + vllm(
            "Using FLASHINFER attention backend out of potential backends: ['FLASHINFER'].", "Worker pid=5"
        )
        + vllm("Using TRITON Unquantized MoE backend out of potential backends: ['TRITON'].", "Worker pid=5")
        + vllm("Loading weights took 0.50 seconds", "Worker pid=5")
    )
    names = (
        "weights_load_s",
        "drafter_load_s",
        "attention_backend",
        "drafter_attention_backend",
        "moe_backend",
        "drafter_moe_backend",
    )
    assert tuple(map(report.get, names)) == (4.9, 0.5, "FLASH_ATTN", "FLASHINFER", None, "TRITON")


DUMP = (
    "Initializing a V1 LLM engine (v0.26.0) with config: model='t', speculative_config={}, load_format={}, "
    "max_seq_len=1024"
)
SPEC = "SpeculativeConfig(method='dspark', model='d', num_spec_tokens=3)"


def test_without_boundary_the_second_line_is_the_drafters() -> None:
    report = parse(
        vllm(DUMP.format(SPEC, "auto"))
        + vllm("Loading weights took 4.90 seconds")
        + vllm("Loading weights took 0.50 seconds")
    )
    assert (report.get("weights_load_s"), report.get("drafter_load_s")) == (4.9, 0.5)


def test_with_dummy_weights_the_first_line_is_the_drafters() -> None:
    report = parse(vllm(DUMP.format(SPEC, "dummy")) + vllm("Loading weights took 0.50 seconds"))
    assert (report.get("weights_load_s"), report.get("drafter_load_s")) == (None, 0.5)


def test_without_speculation_all_lines_are_the_targets() -> None:
    report = parse(vllm(DUMP.format("None", "auto")) + vllm("Loading weights took 4.90 seconds"))
    assert (report.get("weights_load_s"), report.get("drafter_load_s")) == (4.9, None)
    assert "no drafter" in report.missing["drafter_load_s"]


def test_served_length_beats_the_dump() -> None:
    report = parse(
        vllm(DUMP.format("None", "auto")) + vllm("Maximum concurrency for 512 tokens per request: 3.00x")
    )
    assert report.get("max_model_len") == 512
    assert "1024" in report.facts["max_model_len"].note


def test_target_length_is_not_the_drafters() -> None:
    report = parse(
        vllm("Using max model len 65536", "APIServer pid=1")
        + vllm("Using max model len 262144", "APIServer pid=1")
    )
    assert report.get("max_model_len") == 65536


def test_forced_block_count_is_flagged() -> None:
    report = parse(
        vllm("Overriding num_gpu_blocks=900 with num_gpu_blocks_override=100")
        + vllm("GPU KV cache size: 1,600 tokens")
    )
    assert "not measured" in report.facts["kv_cache_tokens"].note


def test_usage_line_is_not_a_size() -> None:
    report = parse(vllm("GPU KV cache usage: 3.1%"))
    assert report.get("kv_cache_tokens") is None


def test_mixed_compile_cache_is_cold() -> None:
    report = parse(
        vllm("Directly load the compiled graph(s) for compile range (1, 8192) from the cache, took 2.10 s")
        + vllm("Compiling a graph for compile range (1, 8192) takes 10.50 s")
    )
    assert report.get("compile_cache") == "cold"
    assert report.facts["compile_cache"].note


def test_sglang_drafter_pool_and_weights_are_told_apart_per_rank() -> None:
    text = ""
    for rank in (" TP0", " TP1"):
        text += sglang(
            "Load weight end. elapsed=3.00 s, type=T, avail mem=60.00 GB, mem usage=7.00 GB.", rank
        )
        text += sglang(
            "Load weight end. elapsed=0.50 s, type=D, avail mem=59.00 GB, mem usage=1.00 GB.", rank
        )
        text += sglang("KV Cache is allocated. #tokens: 1000, K size: 4.00 GB, V size: 4.00 GB", rank)
        text += sglang("KV Cache is allocated. #tokens: 1000, K size: 0.50 GB, V size: 0.50 GB", rank)
    report = parse(text)
    expected = {
        "weights_gib": 16.0,
        "drafter_weights_gib": 2.0,
        "weights_load_s": 3.0,
        "drafter_load_s": 0.5,
        "architecture": "T",
        "drafter_architecture": "D",
        "kv_cache_tokens": 1000,
        "kv_available_gib": 9.0,
        "drafter_kv_gib": 1.0,
    }
    assert {name: report.get(name) for name in expected} == expected


def test_sglang_capacity_line_beats_the_pools_and_data_parallel_ranks_sum() -> None:
    line = (
        "max_total_num_tokens={}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
        "max_running_requests=48, context_len=32768"
    )
    report = parse(
        sglang("KV Cache is allocated. #tokens: 999, K size: 4.00 GB, V size: 4.00 GB", " DP0 TP0")
        + sglang(line.format(1000), " DP0 TP0")
        + sglang(line.format(900), " DP1 TP0")
    )
    assert report.get("kv_cache_tokens") == 1900


def test_second_boot_in_one_log_starts_afresh() -> None:
    first = (
        vllm("non-default args: {'model': 'a'}", "APIServer pid=1")
        + vllm("GPU KV cache size: 1,000 tokens")
        + "(APIServer pid=1) INFO:     Application startup complete.\n"
        + vllm("[shutdown] API server: shutdown triggered", "APIServer pid=1")
    )
    second = vllm("non-default args: {'model': 'b'}", "APIServer pid=101") + vllm(
        "GPU KV cache size: 500 tokens", "EngineCore pid=133"
    )
    report = parse(first + second)
    assert report.get("kv_cache_tokens") == 500
    assert report.boots == 2
    assert "2 boots" in report.note
    assert not report.ready


@pytest.mark.parametrize(
    ("process", "engine"),
    [
        (None, 0),
        ("EngineCore", 0),
        ("EngineCore_DP3", 3),
        ("EngineCore_2", 2),
        ("Worker_DP1_PP0_TP3_EP3", 1),
        ("DP4 TP0", 4),
        ("Worker_TP3", 0),
    ],
)
def test_engine_index(process: str | None, engine: int) -> None:
    assert engine_index(process) == engine


def test_what_fits_into_sglang_s_pool_follows_from_its_tokens_unless_states_share_it() -> None:
    capacity = sglang(
        "max_total_num_tokens=10000, chunked_prefill_size=2048, max_prefill_tokens=1, context_len=4096"
    )
    report = parse(capacity)
    assert report.get("max_concurrency") == 2.44
    assert report.get("max_concurrency_length_tokens") == 4096
    mamba = sglang(
        "Mamba Cache is allocated. max_mamba_cache_size: 96, conv_state size: 0.21GB, ssm_state size: 3.10GB"
    )
    hybrid = parse(mamba + capacity)
    assert hybrid.get("max_concurrency") is None
    assert hybrid.missing["max_concurrency"] == "SGLang does not print it"
