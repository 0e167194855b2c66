"""Flags against the facts that show their effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scripts.lib.asked import Asked
from scripts.lib.truth import compare, unconfirmed
from scripts.lib.truth_flags import flag_remarks
from tests.lib.logs.helpers import parse, vllm
from tests.lib.test_truth import dump

PLAIN = Asked("none", 0, 4096, "org/target")
BUDGET = vllm("Chunked prefill is enabled with max_num_batched_tokens=2048.")
ARGUMENTS = vllm("non-default args: {'max_num_seqs': 64}", process="APIServer pid=1")


@pytest.mark.parametrize(
    ("flag", "asked", "log", "agrees"),
    [
        ("max-num-batched-tokens", "2048", BUDGET, True),
        ("max-num-batched-tokens", "2K", BUDGET, True),
        ("max-num-batched-tokens", "2k", BUDGET, False),
        ("max-num-batched-tokens", "8192", BUDGET, False),
        ("max-num-batched-tokens", "8192", "", None),
        ("max-num-seqs", "64", ARGUMENTS, True),
        ("max-num-seqs", "8", ARGUMENTS, False),
        ("dtype", "bfloat16", "", True),
        ("dtype", "half", "", False),
        ("kv-cache-dtype", "fp8", "", False),
        ("kv-cache-dtype", "fp8", vllm("Using fp8_e4m3 data type to store kv cache. It is fast"), True),
        ("kv-cache-dtype", "fp8_e4m3", vllm("Using fp8 data type to store kv cache. It is fast"), True),
        ("kv-cache-dtype", "fp8_e5m2", vllm("Using fp8_e4m3 data type to store kv cache. It is"), False),
        ("enforce-eager", True, "", False),
        ("enforce-eager", False, "", True),
        ("async-scheduling", True, vllm("Asynchronous scheduling is enabled."), True),
        ("async-scheduling", True, vllm("Asynchronous scheduling is disabled."), False),
        ("async-scheduling", True, "", None),
    ],
)
def test_a_flag_and_what_became_of_it(flag: str, asked: str | bool, log: str, agrees: bool | None) -> None:
    subject, report = replace(PLAIN, flags={flag: asked}), parse(log + dump("None"))
    assert [mismatch.what for mismatch in compare(subject, report)] == ([flag] if agrees is False else [])
    assert unconfirmed(subject, report) == ([flag] if agrees is None else [])


def test_auto_asks_for_nothing() -> None:
    subject = replace(PLAIN, flags={"dtype": "auto", "kv-cache-dtype": "auto"})
    assert compare(subject, parse(dump("None"))) == []
    assert unconfirmed(subject, parse(dump("None"))) == []


def test_parallel_sizes() -> None:
    report = parse(dump("None", more=", tensor_parallel_size=2, pipeline_parallel_size=1"))
    assert compare(replace(PLAIN, flags={"tensor-parallel-size": "2"}), report) == []
    (found,) = compare(replace(PLAIN, flags={"tensor-parallel-size": "4"}), report)
    assert (found.asked, found.resolved) == ("4", "2")


def test_asynchronous_scheduling_that_the_method_switched_off_is_a_difference_only() -> None:
    off = vllm("Async scheduling not supported with ngram-based speculative decoding and will be disabled.")
    subject = Asked("ngram", 3, 4096, "org/target", flags={"async-scheduling": True})
    speculation = "SpeculativeConfig(method='ngram', model='ngram', num_spec_tokens=3)"
    assert compare(subject, parse(off + dump(speculation))) == []


@pytest.mark.parametrize(
    ("environment", "line", "agrees"),
    [
        ({"VLLM_USE_V2_MODEL_RUNNER": "1"}, "Using V2 Model Runner", True),
        ({"VLLM_USE_V2_MODEL_RUNNER": "0"}, "Using V2 Model Runner", False),
        (
            {"VLLM_USE_V2_MODEL_RUNNER": "true"},
            "Model Runner V2 requires Triton; using the V1 model runner instead.",
            False,
        ),
        ({"VLLM_USE_V2_MODEL_RUNNER": "1"}, "nothing about it", None),
        ({}, "Using V2 Model Runner", True),
    ],
)
def test_the_runner(environment: dict, line: str, agrees: bool | None) -> None:
    subject, report = replace(PLAIN, environment=environment), parse(vllm(line) + dump("None"))
    found = [mismatch.what for mismatch in compare(subject, report)]
    assert found == (["model runner"] if agrees is False else [])
    assert unconfirmed(subject, report) == (["model runner"] if agrees is None else [])


def test_choices_of_the_engine_are_remarks() -> None:
    log = parse(
        vllm("Mamba cache mode is set to 'none' when prefix caching is disabled")
        + vllm("Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].")
        + vllm("Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN'].")
        + dump("None", more=", enable_prefix_caching=False")
    )
    flags = {
        "mamba-cache-mode": "align",
        "attention-backend": "FLASHINFER",
        "moe-backend": "marlin",
        "enable-prefix-caching": True,
    }
    subject = replace(PLAIN, flags=flags)
    assert compare(subject, log) == []
    assert flag_remarks(subject, log) == [
        "enable-prefix-caching: asked True, the server has False",
        "attention-backend: asked FLASHINFER, the server has FLASH_ATTN",
        "mamba-cache-mode: asked align, the server has none",
    ]
