"""Every catalogue entry is complete, reachable, and hit first by its own test line."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scripts.lib.logs import catalogue
from tests.lib.logs.helpers import parse

ENTRIES = catalogue.load_catalogue()
# The rows of the collected failures that a catalogue must know, by a fragment of what such a server prints.
DOCUMENTED = {
    1: ("moe_backend='xyz' is not supported for unquantized MoE", "moe_backend_unquantized"),
    2: (
        "For parallel drafting, the draft model config must have pard_token",
        "parallel_drafting_needs_drafter",
    ),
    3: ("'>' not supported between instances of 'NoneType' and 'int'", "k_missing"),
    4: (
        "Stochastic rounding for Mamba cache requires the SSM cache to be float16",
        "stochastic_rounding_needs_float16",
    ),
    5: (
        "Free memory on device cuda:0 (12.0/79.1 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 71.2 GiB)",
        "memory_busy",
    ),
    6: (
        "Error in memory profiling. Initial free memory 12, current free memory 20",
        "memory_changed_while_profiling",
    ),
    7: ("No available memory for the cache blocks. Try increasing", "no_memory_for_blocks"),
    8: (
        "The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in "
        "KV cache (1024)",
        "context_does_not_fit",
    ),
    9: ("model type `x` but Transformers does not recognize this architecture", "model_type_unknown"),
    10: ("Model architectures ['X'] are not supported for now.", "architecture_unsupported"),
    11: ("num_speculative_tokens:3 must be divisible by n_predict=2", "k_not_multiple_of_heads"),
    12: ("Target and draft model should have the same vocabulary size.", "vocabulary_mismatch"),
    13: ("'draft_tensor_parallel_size' and 'tensor_parallel_size' must be the same", "draft_tensor_parallel"),
    14: (
        "'tensor_parallel_size' is not a valid argument in the speculative_config",
        "draft_tensor_parallel_key",
    ),
    16: ("Capture cuda graph failed: CUDA out of memory.", "capture_failed_sglang"),
    17: ("Not enough memory. Please try to increase --mem-fraction-static.", "pool_too_small_sglang"),
    18: ("ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'", "assembler_too_old"),
    19: ("No supported CUDA architectures found for major versions [10].", "jit_architecture_unknown"),
    20: ("CUDA error: no kernel image is available for execution on the device", "no_kernel_image"),
    21: ("[Errno 2] No such file or directory: 'ninja'", "toolkit_missing"),
    22: ("Error while creating shared memory segment /dev/shm/nccl-x", "shared_memory_small"),
    24: ("[Errno 98] error while attempting to bind: address already in use", "port_in_use"),
    25: ("Cannot access gated repo for url https://h/x", "gated_repository"),
    26: ("We couldn't connect to 'https://h' to load this file", "offline"),
    27: ("Failed to find C compiler. Please specify via CC", "compiler_missing"),
    28: ("No valid attention backend found for cuda with ...", "drafter_attention_backend"),
    29: (
        "In Mamba cache align mode, block_size (2128) must be <= max_num_batched_tokens (2048)",
        "align_block_over_budget",
    ),
    30: ("X currently does not support prefix caching", "hybrid_speculation_unsupported"),
    31: ("Chunked prefill and EAGLE are not compatible.", "chunked_prefill_exclusive"),
    32: (
        "max_num_scheduled_tokens is set to -1792 based on ..., which does not allow any tokens to be "
        "scheduled",
        "no_tokens_schedulable",
    ),
    33: ("does not have enough slots to schedule a token", "not_enough_slots"),
    34: ("No valid cudagraph sizes after rounding to multiple of 4", "capture_sizes_below_k"),
    35: ("Eagle3 is only supported for Llama models", "eagle3_target_unsupported"),
    36: ("KeyError: 'model.layers.0.self_attn.qkv_proj.weight'", "drafter_weights_mismatch"),
    37: ("Speculative decoding with draft model is not supported yet.", "draft_model_method_missing"),
    38: ("error: unrecognized arguments: --speculative-model x", "flags_removed"),
    39: ("All eagle layers should belong to the same kv cache group", "drafter_attention_groups"),
    40: ("drafter expects 5 concatenated aux hidden features", "drafter_layers_mismatch"),
    41: ("CUDA error: an illegal memory access was encountered", "illegal_memory_access"),
    42: ("RPC call to sample_tokens timed out.", "worker_stuck"),
    43: ("No available shared memory broadcast block found in 60 seconds", "rank_waits"),
    44: ("EngineDeadError: EngineCore encountered an issue.", "engine_dead"),
    45: ("default chat template is no longer allowed", "chat_template_missing"),
    46: ("This model requires `--tokenizer-mode mistral`", "tokenizer_mode"),
    47: (
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "context_exceeded",
    ),
    48: ("Failed core proc(s): {'EngineCore_DP0': -9}", "host_oom_kill"),
    49: ("Failed to load model - not enough GPU memory.", "weights_do_not_fit"),
    50: (
        "The min_p and logit_bias sampling parameters are not yet supported with speculative decoding.",
        "sampling_unsupported",
    ),
    51: ("Received sigquit from a child proces. It usually means the child failed.", "child_failed_sglang"),
    52: ("NameError: name 'tree_speculative_build_tree' is not defined", "tree_kernel_missing"),
    53: ("Prefill out of memory. Try to lower your batch size.", "prefill_oom_sglang"),
    54: ("Expected num_speculative_tokens to be greater than zero (0).", "k_zero"),
    55: (
        "Spec Decoding with >1 EngineCore per AsyncLLM is not supported yet",
        "speculation_with_data_parallel",
    ),
    57: (
        "Bfloat16 is only supported on GPUs with compute capability of at least 8.0.",
        "bfloat16_on_old_gpu",
    ),
    58: (
        "DFLASH block size mismatch: using speculative_num_draft_tokens=4 but draft config block_size=16",
        "dflash_block_mismatch",
    ),
    59: ("Watchdog timeout (self.watchdog_timeout=300)", "watchdog_sglang"),
    60: ("Model Runner V2 requires Triton.", "runner_needs_triton"),
}


def test_size_and_uniqueness() -> None:
    assert len(ENTRIES) >= 60
    assert max(Counter(entry.id for entry in ENTRIES).values()) == 1


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_own_line_hits_the_entry_first(entry: catalogue.Entry) -> None:
    test = entry.test
    hit = catalogue.lookup(test["text"], test.get("stack", ""), test.get("phase", "run"))
    assert hit is not None
    assert hit.entry.id == entry.id


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_signature_can_match_something(entry: catalogue.Entry) -> None:
    assert entry.signature
    assert not any(pattern.search("nothing of the kind") for pattern in entry.signature)
    assert entry.cause
    assert entry.fix
    assert entry.source
    assert entry.scope <= {"s", "r", "q", "h", "w"}


@pytest.mark.parametrize(("text", "name"), DOCUMENTED.values(), ids=[str(row) for row in DOCUMENTED])
def test_documented_signatures(text: str, name: str) -> None:
    assert catalogue.lookup(text, phase="start").entry.id == name


@pytest.mark.parametrize(
    ("name", "stack", "phase", "expected"),
    [
        ("row 15", '  File "gpu_model_runner.py", line 1, in capture_model', "start", "oom_in_capture"),
        ("row 23", "", "start", "oom_at_start"),
        ("row 56", "", "run", "oom_at_run_time"),
    ],
)
def test_out_of_memory_by_place_and_time(name: str, stack: str, phase: str, expected: str) -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.10 GiB."
    hit = catalogue.lookup(text, stack, phase)
    assert hit.entry.id == expected
    assert hit.values == {"tried_gib": 2.1}


def test_classes_follow_what_a_sweep_must_do() -> None:
    classes = {entry.id: entry.failure_class for entry in ENTRIES}
    computable = {
        "k_missing",
        "k_not_multiple_of_heads",
        "no_tokens_schedulable",
        "not_enough_slots",
        "k_zero",
    }
    retried = {"memory_busy", "memory_changed_while_profiling", "port_in_use", "host_oom_kill"}
    start = {
        "no_memory_for_blocks",
        "context_does_not_fit",
        "oom_in_capture",
        "capture_failed_sglang",
        "pool_too_small_sglang",
        "weights_do_not_fit",
    }
    assert {classes[name] for name in computable} == {"infeasible"}
    assert {classes[name] for name in retried} == {"transient"}
    assert {classes[name] for name in start} == {"resource_start"}
    assert classes["oom_at_run_time"] == "resource_runtime"
    assert {classes[name] for name in ("gated_repository", "offline", "repository_missing")} == {"access"}
    assert {classes[name] for name in ("model_type_unknown", "assembler_too_old", "no_kernel_image")} == {
        "stale_software"
    }
    assert {entry.failure_class for entry in ENTRIES if entry.scope == {"q"}} == {"request"}


def test_opposite_memory_errors_point_in_opposite_directions() -> None:
    directions = {entry.id: entry.memory for entry in ENTRIES}
    assert (directions["pool_too_small_sglang"], directions["capture_failed_sglang"]) == ("raise", "lower")
    assert (directions["no_memory_for_blocks"], directions["oom_in_capture"]) == ("raise", "lower")


def test_the_fatal_line_is_not_the_harmless_one_with_the_same_words() -> None:
    harmless = (
        "Free memory on device (75.1/79.1 GiB) on startup. Desired GPU memory utilization is (0.9, 71.2 GiB)."
    )
    assert catalogue.lookup(harmless) is None


def test_unknown_text_hits_nothing() -> None:
    assert catalogue.lookup("ValueError: something new") is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("- {id: x, signature: [a]}", "x: add the missing"),
        (
            "- {id: x, signature: ['('], scope: s, class: unknown, cause: c, fix: f, source: s, test: t}",
            "x: missing",
        ),
        (
            "- {id: x, signature: [a], scope: s, class: odd, cause: c, fix: f, source: s, test: t}",
            "class 'odd'",
        ),
    ],
)
def test_broken_entries_are_named(tmp_path: Path, body: str, words: str) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text(body, encoding="utf-8")
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        catalogue.load_catalogue(path)


@pytest.mark.parametrize(
    "entry",
    [
        entry
        for entry in ENTRIES
        if not entry.scope & {"w", "h"} and "stack" not in entry.test and entry.id not in ("argument_value",)
    ],
    ids=lambda entry: entry.id,
)
def test_found_through_a_whole_log_as_well(entry: catalogue.Entry) -> None:
    """The same text as the exception of a traceback in a worker that starts."""
    text = entry.test["text"].removeprefix("Value error, ")
    head = (
        ""
        if ": " in text.split(" ")[0] or text.split(":")[0].replace(".", "").isidentifier()
        else "ValueError: "
    )
    lines = ["Starting to load model x..."] if entry.phase != "run" else []
    log = "".join(f"(Worker pid=5) INFO 11-29 18:22:15 [x.py:1] {line}\n" for line in lines)
    log += "(Worker pid=5) ERROR 11-29 18:22:15 [w.py:9] Traceback (most recent call last):\n"
    log += '(Worker pid=5) ERROR 11-29 18:22:15 [w.py:9]   File "x.py", line 1, in load_model\n'
    log += f"(Worker pid=5) ERROR 11-29 18:22:15 [w.py:9] {head}{text}\n"
    failure = parse(log).failure
    assert failure is not None
    assert failure.catalogue_id == entry.id
