"""vLLM lines about the chosen attention, MoE, KV-cache and state-space backends, target and drafter apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scripts.lib.logs.rules import Rule, rule

if TYPE_CHECKING:
    from scripts.lib.logs.collect import Collector
    from scripts.lib.logs.model import Line

# Old releases name backends in words; the enumeration's names are used throughout, so that releases compare.
_OLD_NAMES = {
    "flash attention": "FLASH_ATTN",
    "flashattention": "FLASH_ATTN",
    "flashinfer": "FLASHINFER",
    "xformers": "XFORMERS",
    "flashmla": "FLASHMLA",
    "triton mla": "TRITON_MLA",
    "triton": "TRITON_ATTN",
    "triton attention": "TRITON_ATTN",
    "triton/flash attention": "TRITON_ATTN",
    "flexattention": "FLEX_ATTENTION",
    "flex attention": "FLEX_ATTENTION",
    "cutlass mla": "CUTLASS_MLA",
    "flashattn mla": "FLASH_ATTN_MLA",
    "flashattention mla": "FLASH_ATTN_MLA",
    "flashinfer mla": "FLASHINFER_MLA",
    "aiter mla": "ROCM_AITER_MLA",
    "aiter flash attention": "ROCM_AITER_FA",
    "rocmflashattention": "ROCM_FLASH",
    "torch sdpa": "TORCH_SDPA",
    "pallas": "PALLAS",
    "pallas v1": "PALLAS_V1",
    "tree attention": "TREE_ATTN",
}


def _attention(collector: Collector, line: Line, found: re.Match[str]) -> None:
    prefix = "drafter_" if collector.in_drafter(line) else ""
    collector.put(prefix + "attention_backend", found["b"], line, "vllm 0.11.1+")


def _attention_in_words(collector: Collector, line: Line, found: re.Match[str]) -> None:
    name = _OLD_NAMES.get(found["b"].lower())
    if name is not None:
        prefix = "drafter_" if collector.in_drafter(line) else ""
        collector.put(prefix + "attention_backend", name, line, "vllm 0.5-0.11.0")


def _moe(collector: Collector, line: Line, found: re.Match[str]) -> None:
    prefix = "drafter_" if collector.in_drafter(line) else ""
    collector.put(prefix + "moe_backend", found["b"], line, "vllm 0.11.1+")


# Layouts, samplers, prefill variants and all-reduce lines use the same words and must not match.
RULES: tuple[Rule, ...] = (
    rule(
        "vllm 0.12+",
        "Using ",
        r"Using (?:AttentionBackendEnum\.)?(?P<b>[A-Z][A-Z0-9_]+)(?: attention)? backend"
        r"(?: out of potential backends: (?P<alt>\[.*\]))?\.?\s*$",
        _attention,
    ),
    rule(
        "vllm 0.5-0.11.0",
        "Using ",
        r"Using (?P<b>(?:[A-Z][A-Za-z]+(?:/[A-Z][a-z]+)?)(?: (?:Attention|Flash Attention|MLA|SDPA|V1))?)"
        r" backend(?: on V[01] engine| with \w+ KV cache layout on V1 engine)?(?: by default for .*)?\.?\s*$",
        _attention_in_words,
    ),
    rule(
        "vllm 0.16+",
        "Using ",
        r"Using '?(?P<b>[\w ]+?)'? "
        r"(?P<kind>Unquantized|Fp8|NvFp4|MXFP4|MxFp4|MXFP8|MxFp8|Int8|INT8|WNA16) MoE backend",
        _moe,
    ),
    rule(
        "vllm 0.11.1-0.17",
        "Using ",
        r"Using '?(?P<b>[\w ]+?)'? backend for (?P<kind>\w+) MoE",
        _moe,
    ),
    rule("vllm", "Using ", r"Using (?P<kv_cache_dtype>\w+) data type to store kv cache"),
    rule("vllm 0.10+", "Using ", r"Using (?P<mamba_backend>\w+) Mamba SSU backend"),
)
