"""How the server really ran, as columns."""

from __future__ import annotations

from scripts.lib.server_config import CONFIG_FIELDS, server_config
from tests.lib.test_truth import report_of


def test_a_real_server_with_speculation() -> None:
    values, reasons = server_config(report_of("h200_dflash_k3"))
    assert values == {
        "resolved_method": "dflash",
        "resolved_k": 3,
        "resolved_max_model_len": 65536,
        "model_runner": "V1",
        "max_num_seqs": None,
        "max_num_batched_tokens": 8192,
        "max_num_scheduled_tokens": 6144,
        "async_scheduling": True,
        "enable_prefix_caching": False,
        "enforce_eager": False,
        "cudagraph_mode": "FULL_AND_PIECEWISE",
        "compile_cache": "cold",
        "hybrid": True,
        "attention_backend": "FLASH_ATTN",
        "drafter_attention_backend": values["drafter_attention_backend"],
        "moe_backend": values["moe_backend"],
        "drafter_moe_backend": values["drafter_moe_backend"],
        "dtype": "bfloat16",
        "kv_cache_dtype": "auto",
    }
    assert reasons["max_num_seqs"] == "printed only when it is set or differs from the default"
    assert set(reasons) == {name for name, value in values.items() if value is None}


def test_the_baseline_says_why_it_has_no_scheduled_tokens() -> None:
    values, reasons = server_config(report_of("vllm0271cpu_sweep_none_len1024"))
    assert (values["resolved_method"], values["resolved_k"]) == ("none", 0)
    assert values["max_num_seqs"] == 8
    assert reasons["max_num_scheduled_tokens"] == "printed only under speculation"
    assert reasons["compile_cache"] == "eager mode: nothing is compiled or captured"


def test_without_a_log_everything_is_absent_for_that_reason() -> None:
    values, reasons = server_config(None)
    assert values == dict.fromkeys(CONFIG_FIELDS)
    assert reasons == dict.fromkeys(CONFIG_FIELDS, "there is no server log")
