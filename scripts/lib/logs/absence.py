"""Why a fact is missing: absent for a reason is another thing than not parsed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scripts.lib.logs.registry import FACTS

if TYPE_CHECKING:
    from scripts.lib.logs.collect import Collector
    from scripts.lib.logs.model import Fact

NO_DRAFTER = frozenset({"none", "ngram", "ngram_gpu", "suffix"})
"""Methods without a drafter model."""

_NAMES = {"vllm": "vLLM", "sglang": "SGLang"}
_NOT_ON_CPU = frozenset(
    {
        "weights_gib",
        "model_load_s",
        "attention_backend",
        "drafter_attention_backend",
        "moe_backend",
        "drafter_moe_backend",
        "activation_gib",
        "non_torch_gib",
        "device_total_gib",
    }
)
_PRINTED_IF_SET = {
    "vllm": (
        "max_num_seqs",
        "gpu_memory_utilization",
        "quantization",
        "asked_max_model_len",
        "block_size_tokens",
        "kv_cache_with_host_tokens",
    ),
    "sglang": ("quantization", "asked_max_model_len", "attention_backend", "drafter_attention_backend"),
}
_ONLY = {
    "vllm": (
        "chunked_prefill_tokens",
        "decode_log_interval",
        "swa_tokens",
        "mamba_cache_gib",
        "drafter_kv_gib",
        "drafter_weights_gib",
    ),
    "sglang": (
        "max_concurrency",
        "max_concurrency_length_tokens",
        "init_s",
        "init_compile_s",
        "compile_s",
        "compile_cache",
        "profile_s",
        "model_load_s",
        "max_num_batched_tokens",
        "max_num_scheduled_tokens",
        "model_runner",
        "kv_cache_with_host_tokens",
        "num_gpu_blocks",
        "capture_estimate_gib",
        "activation_gib",
        "non_torch_gib",
        "device_total_gib",
        "cudagraph_mode",
        "mamba_cache_mode",
    ),
}


def missing_facts(collector: Collector, facts: Mapping[str, Fact]) -> dict[str, str]:
    """Every fact of the registry that is not in `facts`, with its reason."""
    return {name: _reason(collector, facts, name) for name in FACTS if name not in facts}


def _reason(collector: Collector, facts: Mapping[str, Fact], name: str) -> str:
    def value(other: str) -> Any:
        return facts[other].value if other in facts else None

    engine = collector.engine
    if engine is None:
        return "no line of vLLM or SGLang was recognised"
    method = value("speculative_method")
    on_cpu = engine == "vllm" and collector.config.get("device_config") == "cpu"
    eager = value("enforce_eager") and name.startswith(("compile", "capture", "init_compile"))
    taken = (
        "printed only under speculation" if method == "none" else "not printed: speculation takes no slots"
    )
    hybrid = (
        "not meaningful for a hybrid cache"
        if value("hybrid")
        else "needs kv_available_gib and kv_cache_tokens"
    )
    reasons = (
        (on_cpu and name in _NOT_ON_CPU, "vLLM's CPU backend does not print it"),
        (eager, "eager mode: nothing is compiled or captured"),
        (name.startswith("capture") and value("cudagraph_mode") == "NONE", "CUDA graphs are off"),
        (name.startswith("drafter_") and method in NO_DRAFTER, f"method {method} has no drafter model"),
        (name in _ONLY[engine], f"{_NAMES[engine]} does not print it"),
        (name == "max_num_scheduled_tokens", taken),
        (name == "dynamic_k", "the arguments name no schedule of k by batch size"),
        (name in _PRINTED_IF_SET[engine], "printed only when it is set or differs from the default"),
        (name == "hybrid", "nothing in the log points to a hybrid cache"),
        (name == "kv_bytes_per_token", hybrid),
        (
            collector.ready_offset is None and collector.phase is not None,
            f"not printed before the log ends (last phase: {collector.phase})",
        ),
    )
    return next((reason for holds, reason in reasons if holds), "no line of this kind in the log")
