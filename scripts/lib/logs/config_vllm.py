"""What vLLM's config dump and command line state, as facts."""

from __future__ import annotations

import re

from scripts.lib.logs.fields import parse_call, parse_fields, plain

_MTP_METHODS = re.compile(r"\w+_mtp$")
_NGRAM = ("[ngram]", "ngram")


def canonical_method(name: str) -> str:
    """One label per method: every model-specific `..._mtp` is mtp, `[ngram]` is ngram."""
    name = name.strip("[]")
    return "mtp" if _MTP_METHODS.match(name) else name


def speculation_from_config(config: dict[str, str]) -> dict[str, object]:
    """speculative_method, num_speculative_tokens and drafter_model from a config dump; empty if it has no
    such key.

    `speculative_config=None` is a statement (method none, k 0), a missing key is not.
    """
    text = config.get("speculative_config")
    if text is None:
        return {}
    if text == "None":
        return {"speculative_method": "none", "num_speculative_tokens": 0}
    call = parse_call(text)
    fields = call[1] if call else parse_fields(text.strip("{}"))
    drafter = plain(fields.get("model") or fields.get("draft_model"))
    k = plain(fields.get("num_spec_tokens") or fields.get("num_speculative_tokens"))
    method = plain(fields.get("method"))
    if method is None and drafter is not None:
        method = "ngram" if drafter in _NGRAM else "draft_model"
    facts: dict[str, object] = {}
    if isinstance(method, str):
        facts["speculative_method"] = canonical_method(method)
    if isinstance(k, int):
        facts["num_speculative_tokens"] = k
    if isinstance(drafter, str) and drafter not in _NGRAM:
        facts["drafter_model"] = drafter
    return facts


_DUMP_FIELDS = {
    "model": "model",
    "dtype": "dtype",
    "max_seq_len": "max_model_len",
    "load_format": "load_format",
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "data_parallel_size": "data_parallel_size",
    "quantization": "quantization",
    "enforce_eager": "enforce_eager",
    "kv_cache_dtype": "kv_cache_dtype",
    "enable_prefix_caching": "enable_prefix_caching",
}


def facts_from_config(config: dict[str, str]) -> dict[str, object]:
    """Facts a vLLM config dump states, absent keys left out."""
    facts = dict(speculation_from_config(config))
    for key, name in _DUMP_FIELDS.items():
        value = plain(config.get(key))
        if value is not None:
            facts[name] = value
    if isinstance(facts.get("dtype"), str):
        facts["dtype"] = str(facts["dtype"]).removeprefix("torch.")
    mode = re.search(r"'cudagraph_mode': <CUDAGraphMode\.(\w+)", config.get("compilation_config", ""))
    if mode is not None:
        facts["cudagraph_mode"] = mode[1]
    return facts


def facts_from_args(args: dict[str, str]) -> dict[str, object]:
    """Facts the command line states (`non-default args`, or the Namespace of releases before 0.9)."""
    facts: dict[str, object] = {}
    for key, name in (
        ("max_model_len", "asked_max_model_len"),
        ("max_num_seqs", "max_num_seqs"),
        ("max_num_batched_tokens", "max_num_batched_tokens"),
        ("block_size", "block_size_tokens"),
        ("gpu_memory_utilization", "gpu_memory_utilization"),
        ("model", "model"),
        ("kv_cache_dtype", "kv_cache_dtype"),
        ("enforce_eager", "enforce_eager"),
        ("async_scheduling", "async_scheduling"),
    ):
        value = plain(args.get(key))
        if value is not None:
            facts[name] = value
    if plain(args.get("speculative_config")) is not None:
        facts |= speculation_from_config(args)
    elif plain(args.get("speculative_model")) is not None:  # flags of vLLM 0.5-0.8
        drafter, k = plain(args["speculative_model"]), plain(args.get("num_speculative_tokens"))
        ngram = str(drafter).strip("[]") == "ngram"
        facts["speculative_method"] = "ngram" if ngram else "draft_model"
        if isinstance(k, int):
            facts["num_speculative_tokens"] = k
    if "per_batch_size" in args.get("speculative_config", ""):
        facts["dynamic_k"] = True
    return facts
