"""The columns that say how a server really ran: scheduler, kernels and caches, as its log states them.

They are facts of the boot, neither axes nor metrics. Two cells whose columns differ beside method and k were not
measured under the same conditions.
"""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib.logs import LogReport

_FROM_FACT = {
    "resolved_method": ("speculative_method", str),
    "resolved_k": ("num_speculative_tokens", int),
    "resolved_max_model_len": ("max_model_len", int),
}
_AS_NAMED: dict[str, type] = {
    "model_runner": str,
    "max_num_seqs": int,
    "max_num_batched_tokens": int,
    "max_num_scheduled_tokens": int,
    "async_scheduling": bool,
    "enable_prefix_caching": bool,
    "enforce_eager": bool,
    "cudagraph_mode": str,
    "compile_cache": str,
    "hybrid": bool,
    "attention_backend": str,
    "drafter_attention_backend": str,
    "moe_backend": str,
    "drafter_moe_backend": str,
    "dtype": str,
    "kv_cache_dtype": str,
}

CONFIG_FIELDS: dict[str, type] = {name: kind for name, (_, kind) in _FROM_FACT.items()} | _AS_NAMED
"""Columns by name: int, bool or str."""


def server_config(report: LogReport | None) -> tuple[dict[str, object], dict[str, str]]:
    """Values of all CONFIG_FIELDS, and for each that is None the reason."""
    values: dict[str, object] = dict.fromkeys(CONFIG_FIELDS)
    if report is None:
        return values, dict.fromkeys(CONFIG_FIELDS, "there is no server log")
    facts = {name: fact for name, (fact, _) in _FROM_FACT.items()}
    values |= {name: report.get(facts.get(name, name)) for name in CONFIG_FIELDS}
    return values, {
        name: _reason(report.missing, facts.get(name, name))
        for name, value in values.items()
        if value is None
    }


def _reason(missing: Mapping[str, str], fact: str) -> str:
    return missing.get(fact, "not found in the server log")
