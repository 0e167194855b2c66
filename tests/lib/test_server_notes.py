"""Remarks from the server's log: what sets it apart from the baseline, what happened in the window."""

from __future__ import annotations

import pytest

from scripts.lib.asked import Asked
from scripts.lib.server_notes import server_notes
from tests.lib.logs.helpers import parse, vllm
from tests.lib.test_truth import HEALTHY, MTP, dump, report_of, spec


def notes(log: str, asked: Asked = MTP, start: int | None = None, end: int | None = None) -> list[str]:
    return server_notes(asked, parse(log), start, end)


def test_a_plain_log_has_no_remarks() -> None:
    assert notes(dump(spec("mtp", 3))) == []


def test_settings_that_speculation_changes_are_remarks() -> None:
    log = (
        vllm("Async scheduling not supported with ngram-based speculative decoding and will be disabled.")
        + vllm(
            "CUDAGraphMode.FULL is not supported with spec-decode for attention backend FLASH_ATTN "
            "(support: UNIFORM_BATCH); setting cudagraph_mode=PIECEWISE"
        )
        + dump(spec("ngram", 3))
    )
    assert notes(log) == [
        "the baseline schedules asynchronously, this server does not: not the same scheduler (server log: Async "
        "scheduling not supported with ngram-based speculative decoding and will be disabled)",
        "the baseline keeps full CUDA graphs; part of a slow-down is this (server log: CUDAGraphMode.FULL is not "
        "supported with spec-decode for attention backend FLASH_ATTN (support: UNIFORM_BATCH); ...)",
    ]


@pytest.mark.parametrize(
    ("name", "scheduled", "budget"),
    [("h200_dspark_k3", 6144, 8192), ("vllm0271cpu_draftmodel_l10_k3", 1920, 2048)],
)
def test_tokens_that_drafting_takes_from_the_scheduler(name: str, scheduled: int, budget: int) -> None:
    found = server_notes(HEALTHY[name], report_of(name), None, None)
    assert any(f"{scheduled} of {budget} tokens a step" in note for note in found)


@pytest.mark.parametrize("name", ["vllm0271cpu_mtp_mimo_k3", "vllm0271cpu_sweep_eagle_k3_len1024"])
def test_a_budget_that_nothing_was_taken_from_is_no_remark(name: str) -> None:
    found = server_notes(HEALTHY[name], report_of(name), None, None)
    assert not any("token budget" in note for note in found)


def test_f02_a_hybrid_cache_is_remarked() -> None:
    log = vllm("GPU KV cache size: 96,768 tokens")
    log += vllm("Maximum concurrency for 32,768 tokens per request: 11.40x")
    assert notes(log)[0].startswith("hybrid cache: the KV token figure is no capacity in tokens")


def test_k_that_varies_is_remarked() -> None:
    name = "vllm0271cpu_dynamic_draft_l28_k4_k1"
    found = server_notes(HEALTHY[name], report_of(name), None, None)
    assert "k depends on the batch size: the k of the row is the largest" in found


def test_a_forced_cache_that_was_asked_for_is_a_remark() -> None:
    log = dump(spec("mtp", 3)) + vllm("Overriding num_gpu_blocks=900 with num_gpu_blocks_override=100")
    (note,) = notes(log)
    assert note.startswith(
        "the KV cache size is forced, not measured: do not compare it (server log: Overriding"
    )


def test_a_wait_in_the_window_counts_only_there() -> None:
    wait = vllm("No available shared memory broadcast block found in 60 seconds.")
    before = dump(spec("mtp", 3)) + wait
    log = before + wait + wait
    assert notes(log, start=len(log), end=len(log) + 1) == []
    assert notes(log) == []
    (note,) = notes(log, start=len(before), end=len(log))
    assert note.startswith("in the measured window (2 times): one rank waits for another")
