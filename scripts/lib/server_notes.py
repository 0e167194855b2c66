"""Remarks on a measured cell from its server's log: what differs from the baseline's server, what disturbed the
window. They change no figure, no status and no validity; whoever compares cells reads them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from scripts.lib.asked import Asked
from scripts.lib.logs import LogReport
from scripts.lib.logs.model import Notice
from scripts.lib.truth_flags import flag_remarks

_HYBRID = (
    "hybrid cache: the KV token figure is no capacity in tokens; "
    "max_concurrency says how many requests of full length fit"
)
_AT_START = (
    "async_scheduling_disabled",
    "cudagraph_downgraded",
    "drafter_eager",
    "cpu_runtime_missing",
    "default_moe_config",
    "dflash_buffers_skipped",
    "dflash_block_mismatch",
    "flashinfer_disabled",
    "kv_blocks_forced",
    "memory_freed_after_pool",
    "sglang_slots_reset",
    "sglang_draft_tokens_adjusted",
    "sglang_pool_clamped",
    "sglang_mixed_chunk_disabled",
)
"""Notices (logs/notices.py) that set a server apart from its baseline, or its figures from what they seem."""

_IN_WINDOW = ("shared_memory_wait",)
"""Notices that matter where they fall into the measured window."""

_MOST_CHARACTERS = 120


def server_notes(asked: Asked, report: LogReport, start: int | None, end: int | None) -> list[str]:
    """Remarks, the most general first. `start` and `end` bound the measured window in bytes of the log; without
    them nothing is said about the window."""
    notes = [_HYBRID] if report.get("hybrid") else []
    notes += flag_remarks(asked, report)
    notes += _scheduled_tokens(asked, report)
    notes += _varying_k(report)
    for name in _AT_START:
        notes += [_remark(notice) for notice in report.notices(name)[:1]]
    if start is not None and end is not None:
        notes += _in_window(report, start, end)
    if report.note:
        notes.append(f"server log: {report.note}")
    return notes


def _scheduled_tokens(asked: Asked, report: LogReport) -> Iterator[str]:
    scheduled, budget = report.get("max_num_scheduled_tokens"), report.get("max_num_batched_tokens")
    if asked.k > 0 and scheduled is not None and budget is not None and scheduled < budget:
        yield (
            f"speculation takes slots from the token budget: {scheduled} of {budget} tokens a step are left to "
            "schedule, the baseline has them all"
        )


def _varying_k(report: LogReport) -> Iterator[str]:
    if report.get("dynamic_k"):
        yield "k depends on the batch size: the k of the row is the largest"


def _in_window(report: LogReport, start: int, end: int) -> Iterator[str]:
    for name in _IN_WINDOW:
        inside = [notice for notice in report.notices(name) if start <= notice.offset < end]
        if inside:
            times = f" ({len(inside)} times)" if len(inside) > 1 else ""
            yield f"in the measured window{times}: {_remark(inside[0])}"


def _remark(notice: Notice) -> str:
    """The advice, with the first sentence of the line behind it; no place, so that equal remarks of many cells are
    one."""
    sentence = notice.text.partition(". ")[0].rstrip(".")
    said = textwrap.shorten(sentence, _MOST_CHARACTERS, placeholder=" ...")
    return f"{notice.advice} (server log: {said})"
