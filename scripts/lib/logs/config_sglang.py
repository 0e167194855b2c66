"""What SGLang's printed server arguments state, as facts."""

from __future__ import annotations

from scripts.lib.logs.fields import plain

_METHODS = {"NEXTN": "mtp", "STANDALONE": "draft_model"}


def _speculation(config: dict[str, str]) -> dict[str, object]:
    if "speculative_algorithm" not in config:
        return {}
    algorithm = plain(config["speculative_algorithm"])
    if algorithm is None:
        return {"speculative_method": "none", "num_speculative_tokens": 0}
    facts: dict[str, object] = {"speculative_method": _METHODS.get(str(algorithm), str(algorithm).lower())}
    verified = plain(config.get("speculative_num_draft_tokens"))
    if isinstance(verified, int):
        # SGLang counts the token that is verified for free; every other engine's k does not.
        facts["num_speculative_tokens"] = verified - 1
    drafter = plain(config.get("speculative_draft_model_path"))
    if drafter is not None:
        facts["drafter_model"] = drafter
    return facts


_ARG_FIELDS = {
    "model_path": "model",
    "dtype": "dtype",
    "load_format": "load_format",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "tp_size": "tensor_parallel_size",
    "pp_size": "pipeline_parallel_size",
    "dp_size": "data_parallel_size",
    "page_size": "block_size_tokens",
    "mem_fraction_static": "gpu_memory_utilization",
    "max_running_requests": "max_num_seqs",
    "chunked_prefill_size": "chunked_prefill_tokens",
    "context_length": "asked_max_model_len",
    "attention_backend": "attention_backend",
    "speculative_draft_attention_backend": "drafter_attention_backend",
    "moe_runner_backend": "moe_backend",
    "speculative_moe_runner_backend": "drafter_moe_backend",
    "mamba_backend": "mamba_backend",
    "decode_log_interval": "decode_log_interval",
    "disable_cuda_graph": "enforce_eager",
}


def facts_from_config(config: dict[str, str]) -> dict[str, object]:
    """Facts SGLang's printed server arguments state, absent keys left out."""
    facts = _speculation(config)
    for key, name in _ARG_FIELDS.items():
        value = plain(config.get(key))
        if value is not None:
            facts[name] = value
    for key, name in (
        ("disable_radix_cache", "enable_prefix_caching"),
        ("disable_overlap_schedule", "async_scheduling"),
    ):
        value = plain(config.get(key))
        if isinstance(value, bool):
            facts[name] = not value
    return facts
