"""The one list of facts: name, unit, how a printed text becomes a value, how ranks and engines combine, what
it means.

Combination (logs hold one line per rank or per engine): an engine is one data-parallel replica, a rank one of
its worker processes. engine_min_sum    smallest value inside an engine (the tightest rank rules), summed over
engines rank_sum          lines of one process summed, then summed over an engine's ranks; replicas: the
largest engine process_sum_max   lines of one process summed, then the largest process (processes work side by
side) max, min, first, last   over all lines
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scripts.lib.logs.fields import integer, number


@dataclass(frozen=True)
class FactSpec:
    """One fact: unit, conversion from printed text, combination policy, meaning in one line."""

    unit: str | None
    convert: Callable[[str], Any]
    policy: str
    meaning: str


def _spec(unit: str | None, convert: Callable[[str], Any], policy: str, meaning: str) -> FactSpec:
    return FactSpec(unit, convert, policy, meaning)


FACTS: dict[str, FactSpec] = {
    # capacity
    "kv_cache_tokens": _spec("tokens", integer, "engine_min_sum", "KV cache capacity of the deployment"),
    "kv_cache_with_host_tokens": _spec(
        "tokens", integer, "engine_min_sum", "KV capacity with host memory added"
    ),
    "kv_available_gib": _spec(
        "GiB", number, "engine_min_sum", "memory for the KV cache, per rank (drafter included)"
    ),
    "drafter_kv_gib": _spec(
        "GiB", number, "engine_min_sum", "the drafter's own KV pool, part of kv_available_gib"
    ),
    "kv_bytes_per_token": _spec(
        "B/token", number, "first", "kv_available_gib over kv_cache_tokens, per rank"
    ),
    "max_concurrency": _spec(
        "requests", number, "engine_min_sum", "requests of full length that fit at once"
    ),
    "max_concurrency_length_tokens": _spec("tokens", integer, "min", "the length max_concurrency is for"),
    "block_size_tokens": _spec("tokens", integer, "last", "tokens of one KV page"),
    "hybrid": _spec(
        None, bool, "first", "the cache mixes layer kinds: token figures are not per-token capacity"
    ),
    "mamba_cache_gib": _spec("GiB", number, "max", "recurrent-state pool"),
    "swa_tokens": _spec("tokens", integer, "min", "tokens of the sliding-window pool"),
    "num_gpu_blocks": _spec("blocks", integer, "engine_min_sum", "KV pages on the device"),
    # memory
    "weights_gib": _spec("GiB", number, "rank_sum", "weights on the devices of one engine, drafter included"),
    "drafter_weights_gib": _spec(
        "GiB", number, "rank_sum", "the drafter's part of weights_gib, where printed"
    ),
    "activation_gib": _spec("GiB", number, "max", "peak activation memory at profiling"),
    "non_torch_gib": _spec("GiB", number, "max", "memory outside the framework's allocator"),
    "device_total_gib": _spec("GiB", number, "min", "memory of one device"),
    "gpu_memory_utilization": _spec(None, number, "first", "fraction of device memory the server may take"),
    # start-up by phase
    "weights_load_s": _spec("s", number, "max", "reading the target's weights"),
    "drafter_load_s": _spec("s", number, "max", "reading the drafter's weights"),
    "model_load_s": _spec("s", number, "process_sum_max", "building and loading target and drafter"),
    "compile_s": _spec("s", number, "process_sum_max", "torch.compile, target and drafter head summed"),
    "profile_s": _spec("s", number, "process_sum_max", "profiling and warm-up runs"),
    "capture_s": _spec("s", number, "process_sum_max", "CUDA graph capture"),
    "capture_gib": _spec("GiB", number, "process_sum_max", "memory of the CUDA graphs, per rank"),
    "capture_estimate_gib": _spec("GiB", number, "max", "CUDA graph memory as estimated before capture"),
    "init_s": _spec(
        "s", number, "max", "engine initialisation (profile, KV cache, warm-up), weights excluded"
    ),
    "init_compile_s": _spec("s", number, "max", "compilation inside init_s, as the engine sums it"),
    "compile_cache": _spec(
        None, str, "first", "cold if anything was compiled, warm if all came from the cache"
    ),
    # configuration as resolved
    "model": _spec(None, str, "first", "target model"),
    "architecture": _spec(None, str, "first", "target architecture"),
    "drafter_model": _spec(None, str, "first", "drafter model"),
    "drafter_architecture": _spec(None, str, "first", "drafter architecture"),
    "max_model_len": _spec("tokens", integer, "first", "resolved context length"),
    "asked_max_model_len": _spec("tokens", integer, "first", "context length on the command line"),
    "dtype": _spec(None, str, "first", "compute dtype"),
    "quantization": _spec(None, str, "first", "weight quantisation"),
    "load_format": _spec(None, str, "first", "weight load format"),
    "kv_cache_dtype": _spec(None, str, "first", "KV cache dtype"),
    "attention_backend": _spec(None, str, "first", "attention backend of the target"),
    "drafter_attention_backend": _spec(None, str, "first", "attention backend of the drafter"),
    "moe_backend": _spec(None, str, "first", "mixture-of-experts backend of the target"),
    "drafter_moe_backend": _spec(None, str, "first", "mixture-of-experts backend of the drafter"),
    "mamba_backend": _spec(None, str, "first", "state-space backend"),
    "mamba_cache_mode": _spec(None, str, "last", "recurrent-state cache mode"),
    "mamba_ssm_cache_dtype": _spec(None, str, "last", "recurrent-state dtype"),
    "speculative_method": _spec(None, str, "first", "method as resolved; none when the engine says so"),
    "num_speculative_tokens": _spec("tokens", integer, "first", "k as resolved; 0 when the engine says none"),
    "dynamic_k": _spec(None, bool, "first", "k depends on the batch size"),
    "max_num_seqs": _spec("requests", integer, "first", "scheduler slots"),
    "max_num_batched_tokens": _spec("tokens", integer, "first", "tokens per step as asked"),
    "max_num_scheduled_tokens": _spec(
        "tokens", integer, "first", "tokens per step after speculation's slots"
    ),
    "chunked_prefill_tokens": _spec("tokens", integer, "first", "prefill chunk (SGLang)"),
    "async_scheduling": _spec(None, bool, "first", "asynchronous (overlapped) scheduling"),
    "enforce_eager": _spec(None, bool, "first", "no compilation, no CUDA graphs"),
    "enable_prefix_caching": _spec(None, bool, "first", "prefix (radix) cache on"),
    "cudagraph_mode": _spec(None, str, "last", "CUDA graph mode"),
    "model_runner": _spec(None, str, "first", "vLLM's runner: V0, V1 or V2"),
    "tensor_parallel_size": _spec("ranks", integer, "first", "tensor parallel ranks"),
    "pipeline_parallel_size": _spec("ranks", integer, "first", "pipeline parallel ranks"),
    "data_parallel_size": _spec("engines", integer, "first", "data parallel engines"),
    "decode_log_interval": _spec("steps", integer, "first", "decode steps between SGLang's log lines"),
}
