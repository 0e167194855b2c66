"""Lines that change how a speculative benchmark must be read, though the server goes on.

Each has an id, the text that opens it, a pattern whose named groups become numbers, and advice. A start-up
notice that several processes repeat is kept once; a run-time notice is kept at every occurrence, since its
place decides whether it fell into a measured window.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scripts.lib.logs.fields import INTEGER as I
from scripts.lib.logs.fields import NUMBER as N


@dataclass(frozen=True)
class NoticeRule:
    """id, start (literal opening), pattern, advice, repeats (keep every occurrence)."""

    id: str
    start: str
    pattern: re.Pattern[str]
    advice: str
    repeats: bool = False


def _notice(notice_id: str, start: str, pattern: str, advice: str, repeats: bool = False) -> NoticeRule:
    return NoticeRule(notice_id, start, re.compile(pattern, re.DOTALL), advice, repeats)


NOTICES: tuple[NoticeRule, ...] = (
    _notice(
        "scheduled_tokens",
        "max_num_scheduled_tokens is set to",
        rf"max_num_scheduled_tokens is set to\s+(?P<scheduled_tokens>{I})(?!.*does not allow)",
        "speculation's slots come out of the token budget: the baseline ran with more tokens per step; "
        "compare N with max_num_batched_tokens (vLLM 0.20-0.27 subtracts slots x max_num_seqs, 0.28+ only "
        "says so)",
    ),
    _notice(
        "mtp_layer_reused",
        "Enabling num_speculative_tokens > 1",
        r"Enabling num_speculative_tokens > 1 will run ?multiple times of forward on same MTP layer",
        "one MTP layer drafts every position: acceptance falls with k by construction",
    ),
    _notice(
        "async_scheduling_disabled",
        "Async scheduling not supported with",
        r"Async scheduling not supported with (?P<method>[\w-]+?)-based speculative decoding",
        "the baseline schedules asynchronously, this server does not: not the same scheduler",
    ),
    _notice(
        "cudagraph_downgraded",
        "CUDAGraphMode.",
        r"CUDAGraphMode\.(?P<mode>\w+) is not supported with spec-decode for attention backend "
        r"(?P<backend>\S+)"
        r"(?:.*setting cudagraph_mode=(?P<new_mode>\w+))?",
        "the baseline keeps full CUDA graphs; part of a slow-down is this",
    ),
    _notice(
        "drafter_eager",
        "DFlash draft attention",
        r"DFlash draft attention .*does not support full CUDA graphs",
        "the drafter runs without CUDA graphs: slower than it could be",
    ),
    _notice(
        "sampling_settings_ignored",
        "min_p and logit_bias parameters won't work",
        r"min_p and logit_bias parameters won't work with speculative decoding",
        "drop min_p and logit_bias in every arm",
    ),
    _notice(
        "drafter_length_limited",
        "Overriding draft model max model len",
        rf"Overriding draft model max model len from (?P<from>{I}) to (?P<to>{I})",
        "the drafter's context was set to the target's",
    ),
    _notice(
        "target_length_limited",
        "draft model's max_model_len",
        rf"draft model's max_model_len \((?P<drafter_len>{I})\).*?smaller than.*?reducing "
        rf"max_model_len(?: from {I})? to (?P<to>{I})",
        "the drafter shortened the server's context: it no longer equals the baseline's",
    ),
    _notice(
        "kv_padding",
        "Add ",
        rf"Add (?P<layers>{I}) padding layers, may waste at most (?P<waste_percent>{N})% KV cache memory",
        "part of the KV cache holds padding layers; it explains a capacity loss against the baseline",
    ),
    _notice(
        "jit_during_inference",
        "Triton kernel JIT compilation during inference",
        r"Triton kernel JIT compilation during inference: (?P<kernel>[^\s.]+)",
        "a kernel was compiled while requests ran; inside a measured window it spoils latencies, so repeat "
        "the cell",
        repeats=True,
    ),
    _notice(
        "default_moe_config",
        "Using default MoE config",
        r"Using default MoE config\. Performance might be sub-optimal!(?: Config file not found at "
        r"(?P<path>\S+))?",
        "no tuned kernel configuration for this GPU and model: absolute numbers understate the machine",
    ),
    _notice(
        "method_renamed",
        "method ",
        r"method [`']?(?P<method>\w+)[`']? is deprecated and replaced with [`']?(?P<to>\w+)",
        "the method's label was normalised",
    ),
    _notice(
        "kv_blocks_forced",
        "Overriding num_gpu_blocks",
        rf"Overriding num_gpu_blocks=(?P<measured>{I}) with num_gpu_blocks_override=(?P<forced>{I})",
        "the KV cache size is forced, not measured: do not compare it",
    ),
    _notice(
        "compiled_again",
        "Compiling model again",
        r"Compiling model again due to a load failure",
        "the compile cache could not be loaded: this start was cold although a cache exists",
    ),
    _notice(
        "dflash_buffers_skipped",
        "DFlash buffer initialization was skipped",
        r"DFlash buffer initialization was skipped",
        "with real drafter weights this hints at a loading error: check acceptance",
    ),
    _notice(
        "shared_memory_wait",
        "No available shared memory broadcast block",
        rf"No available shared memory broadcast block found in (?P<seconds>{I}) seconds",
        "one rank waits for another: harmless while loading or compiling, a hang if the phase does not "
        "advance",
        repeats=True,
    ),
    _notice(
        "cpu_runtime_missing",
        "Speculative decoding on CPU without Intel OpenMP",
        r"Speculative decoding on CPU without Intel OpenMP",
        "preload Intel OpenMP in every arm, or the CPU numbers are not comparable",
    ),
    _notice(
        "flashinfer_disabled",
        "FlashInfer kernels are disabled",
        r"FlashInfer kernels are disabled:",
        "another backend is used than on an image with the CUDA toolkit",
    ),
    _notice(
        "capture_memory_budgeted",
        "CUDA graph memory profiling is enabled",
        rf"CUDA graph memory profiling is enabled.*?gpu-memory-utilization=(?P<asked>{N}) is equivalent to "
        rf"\S*?gpu-memory-utilization=(?P<effective>{N}) without",
        "from 0.21 on graph memory comes out of the KV budget: releases are not comparable at equal "
        "utilisation",
    ),
    _notice(
        "context_parallel_kv",
        "Multiplying the GPU KV cache size by",
        rf"Multiplying the GPU KV cache size by the \w*cp_world_size (?P<factor>{I})",
        "the KV figure already holds the context-parallel factor",
    ),
    _notice(
        "sglang_slots_reset",
        "Max running requests is reset to",
        rf"Max running requests is reset to (?P<slots>{I}) for speculative decoding",
        "SGLang cut the scheduler's slots under speculation: pass --max-running-requests in every arm",
    ),
    _notice(
        "sglang_draft_tokens_adjusted",
        "speculative_num_draft_tokens is adjusted",
        r"speculative_num_draft_tokens is adjusted to speculative_num_steps \+ 1",
        "k is what the number of steps says, not what was asked",
    ),
    _notice(
        "sglang_pool_clamped",
        "max_total_tokens=",
        rf"max_total_tokens=(?P<asked>{I}) is larger than the profiled value (?P<profiled>{I})",
        "the asked KV pool does not fit and was cut",
    ),
    _notice(
        "sglang_mixed_chunk_disabled",
        "The mixed chunked prefill are disabled",
        r"The mixed chunked prefill are disabled because of using (?P<method>\w+) speculative decoding",
        "prefill and decode are scheduled apart here, together in the baseline if it mixes chunks",
    ),
    _notice(
        "dflash_block_mismatch",
        "DFLASH block size mismatch",
        rf"DFLASH block size mismatch: using speculative_num_draft_tokens=(?P<used>{I}) but draft config "
        rf"block_size=(?P<trained>{I})",
        "the drafter was trained for another block: acceptance is not the drafter's; take k from its config",
    ),
)
