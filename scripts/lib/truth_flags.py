"""Flags whose effect the log states: asked value, the fact that shows it, and when the two agree."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from scripts.lib.asked import Asked
from scripts.lib.logs import Fact, LogReport

FlagClaim = tuple[str, str | bool, Fact | None, bool | None]

_AUTO = (None, "auto")
_DTYPES = {"half": "float16", "float": "float32"}
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
_TRUE, _FALSE = ("1", "true"), ("0", "false")


def _count(text: str) -> int | None:
    """8192, `8k` (thousands) or `8K` (1024s), as vLLM reads them."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)", text)
    return None if found is None else int(float(found[1]) * _UNITS.get(found[2], 1))


def _same_count(asked: str | bool, resolved: object) -> bool | None:
    wanted = _count(str(asked))
    return None if wanted is None else wanted == resolved


def _same_switch(asked: str | bool, resolved: object) -> bool | None:
    return asked == resolved if isinstance(asked, bool) else None


def _same_dtype(asked: str | bool, resolved: object) -> bool | None:
    if asked in _AUTO or resolved in _AUTO:
        return None
    return _DTYPES.get(str(asked), asked) == resolved


def _same_cache_dtype(asked: str | bool, resolved: object) -> bool | None:
    """`fp8` is a family (releases print fp8, fp8_e4m3 or torch's float8_e4m3fn for one setting)."""
    if asked in _AUTO:
        return None
    wanted, found = (re.sub(r"(fn|fnuz)$", "", str(t).replace("float8", "fp8")) for t in (asked, resolved))
    return wanted == found or found.startswith(wanted + "_") or (found == "fp8" and wanted.startswith("fp8"))


def _same_name(asked: str | bool, resolved: object) -> bool | None:
    """Backends are FLASHINFER_CUTLASS on one line and flashinfer-cutlass on another; variants add words."""
    if asked in _AUTO or resolved in _AUTO:
        return None
    wanted, found = (re.sub(r"[^a-z0-9]", "", str(text).lower()) for text in (asked, resolved))
    return wanted in found or found in wanted


Same = Callable[[str | bool, object], bool | None]

_STRICT: dict[str, tuple[str, Same]] = {
    "max-num-seqs": ("max_num_seqs", _same_count),
    "max-running-requests": ("max_num_seqs", _same_count),
    "max-num-batched-tokens": ("max_num_batched_tokens", _same_count),
    "tensor-parallel-size": ("tensor_parallel_size", _same_count),
    "pipeline-parallel-size": ("pipeline_parallel_size", _same_count),
    "dtype": ("dtype", _same_dtype),
    "kv-cache-dtype": ("kv_cache_dtype", _same_cache_dtype),
    "enforce-eager": ("enforce_eager", _same_switch),
    "async-scheduling": ("async_scheduling", _same_switch),
}
"""Another value than asked makes the cell mislabelled."""

_LOOSE: dict[str, tuple[str, Same]] = {
    "enable-prefix-caching": ("enable_prefix_caching", _same_switch),
    "block-size": ("block_size_tokens", _same_count),
    "quantization": ("quantization", _same_name),
    "attention-backend": ("attention_backend", _same_name),
    "moe-backend": ("moe_backend", _same_name),
    "mamba-backend": ("mamba_backend", _same_name),
    "mamba-cache-mode": ("mamba_cache_mode", _same_name),
    "mamba-ssm-cache-dtype": ("mamba_ssm_cache_dtype", _same_dtype),
}
"""The engine may choose otherwise for all methods alike, and prints other names: a remark, no mislabelling."""


def flag_claims(asked: Asked, report: LogReport) -> Iterator[FlagClaim]:
    """(flag, asked, fact, agreement) for every flag given that decides what is measured, and for the runner."""
    for flag, (name, same) in _STRICT.items():
        wanted, fact = asked.flags.get(flag), report.facts.get(name)
        if wanted in _AUTO or (flag == "async-scheduling" and report.notices("async_scheduling_disabled")):
            continue
        yield flag, wanted, fact, fact and same(wanted, fact.value)
    runner, wanted = report.facts.get("model_runner"), _runner(asked)
    if wanted is not None:
        yield "model runner", wanted, runner, runner and runner.value == wanted


def _runner(asked: Asked) -> str | None:
    if str(asked.environment.get("VLLM_USE_V1", "")).lower() in _FALSE:
        return "V0"
    choice = str(asked.environment.get("VLLM_USE_V2_MODEL_RUNNER", "")).lower()
    return "V2" if choice in _TRUE else "V1" if choice in _FALSE else None


def flag_remarks(asked: Asked, report: LogReport) -> list[str]:
    """Flags that the engine settled otherwise, in words."""
    remarks = []
    for flag, (name, same) in _LOOSE.items():
        wanted, resolved = asked.flags.get(flag), report.get(name)
        if wanted not in _AUTO and resolved is not None and same(wanted, resolved) is False:
            remarks.append(f"{flag}: asked {wanted}, the server has {resolved}")
    return remarks
