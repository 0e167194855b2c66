"""A report as text for people."""

from __future__ import annotations

import textwrap
from typing import Any

from scripts.lib.logs.acceptance import Acceptance, from_log
from scripts.lib.logs.model import Fact, Failure, LogReport

WIDTH = 100
ABSENT = "-"
_MAX_WARNINGS = 20
SHOWN_UNITS = frozenset({"tokens", "GiB", "s", "B/token"})

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "configuration as resolved",
        (
            "model",
            "speculative_method",
            "num_speculative_tokens",
            "drafter_model",
            "max_model_len",
            "asked_max_model_len",
            "max_num_seqs",
            "max_num_batched_tokens",
            "max_num_scheduled_tokens",
            "chunked_prefill_tokens",
            "async_scheduling",
            "enable_prefix_caching",
            "enforce_eager",
            "cudagraph_mode",
            "model_runner",
            "attention_backend",
            "drafter_attention_backend",
            "moe_backend",
            "drafter_moe_backend",
            "kv_cache_dtype",
            "mamba_ssm_cache_dtype",
            "gpu_memory_utilization",
            "tensor_parallel_size",
            "data_parallel_size",
        ),
    ),
    (
        "memory and capacity",
        (
            "weights_gib",
            "drafter_weights_gib",
            "kv_available_gib",
            "drafter_kv_gib",
            "kv_cache_tokens",
            "kv_bytes_per_token",
            "max_concurrency",
            "max_concurrency_length_tokens",
            "block_size_tokens",
            "hybrid",
            "mamba_cache_gib",
            "activation_gib",
            "capture_gib",
        ),
    ),
    (
        "start-up",
        (
            "weights_load_s",
            "drafter_load_s",
            "model_load_s",
            "compile_s",
            "compile_cache",
            "profile_s",
            "capture_s",
            "init_s",
        ),
    ),
)


def state(report: LogReport) -> str:
    """One word or two on what became of the server."""
    if report.failure is not None and report.failure.fatal:
        return "failed at start" if report.failure.phase == "start" else "failed"
    if report.failure is not None:
        return "requests failed"
    if report.shutdown_offset is not None:
        return "served, stopped" if report.ready else "stopped early"
    if report.ready:
        return "ready"
    return f"log ends in: {report.phase}" if report.phase else "not known"


def value_text(value: Any) -> str:
    """A value for reading: thousands separators, yes and no, ABSENT for None."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return str(value)


def _with_unit(fact: Fact) -> str:
    text = value_text(fact.value)
    return f"{text} {fact.unit}" if fact.unit in SHOWN_UNITS else text


def acceptance_text(acceptance: Acceptance) -> str:
    """Length, rate and per-position acceptance in one line."""
    if acceptance.length is None:
        return f"not known: {acceptance.reason}"
    rate = ABSENT if acceptance.rate is None else f"{acceptance.rate:.1%}"
    text = f"length {acceptance.length:.2f}, rate {rate}"
    if acceptance.per_position:
        text += ", by position " + " ".join(f"{rate:.3f}" for rate in acceptance.per_position[:20])
    weight = "" if acceptance.accepted is None else f" ({acceptance.accepted:,.0f} tokens accepted)"
    return text + weight


# -- one log -------------------------------------------------------------------------------------------------


def render_report(name: str, report: LogReport) -> str:
    """The whole report of one log, at most WIDTH columns wide (verbatim root lines may be longer)."""
    lines = [_title(name, report)]
    if report.note:
        lines += _wrapped("note: " + report.note, "  ")
    if report.failure is not None:
        lines += ["", *failure_lines(report.failure)]
    elif not report.ready and report.phase:
        lines += ["", f"no failure found; the log ends in phase: {report.phase} (killed, or still starting?)"]
    for title, names in GROUPS:
        rows = [(fact_name, report.facts[fact_name]) for fact_name in names if fact_name in report.facts]
        if rows:
            lines += ["", title]
            for fact_name, fact in rows:
                lines += _fact_lines(fact_name, fact)
    lines += _speculation_lines(report)
    lines += _load_lines(report)
    lines += _warning_lines(report)
    lines += _missing_lines(report)
    return "\n".join(lines)


def _title(name: str, report: LogReport) -> str:
    engine = report.engine or "neither vLLM nor SGLang recognised"
    version = f" {report.version}" if report.version else ""
    generation = f" ({report.generation})" if report.generation else ""
    return (
        f"{name}: {engine}{version}{generation}, {state(report)}; {report.lines:,} lines, "
        f"{report.size_bytes:,} bytes"
    )


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def failure_lines(failure: Failure) -> list[str]:
    """Title, root line, class, cause, advice, then numbers, context and how the failure spread."""
    title = "LIKELY ROOT CAUSE" if failure.fatal else "REQUESTS FAILED, the server lived on"
    where = ", ".join(
        part
        for part in (
            f"line {failure.line_number:,}" if failure.line_number else "",
            failure.process or "",
            {"start": "while starting", "run": "at run time"}.get(failure.phase, ""),
        )
        if part
    )
    lines = [f"{title} ({where})" if where else title]
    lines += [f"  {part}" for part in failure.root_line.splitlines()[:4]]
    known = f"{failure.catalogue_id} ({failure.source})" if failure.source else failure.catalogue_id
    named = f"known as {known}" if known else "not in the catalogue"
    lines += _wrapped(f"class   {failure.failure_class}, {named}", "  ")
    lines += _wrapped("cause   " + failure.cause, "  ")
    lines += _wrapped("advice  " + failure.fix, "  ")
    if failure.values:
        numbers = ", ".join(f"{name} {number:,}" for name, number in failure.values.items())
        lines += _wrapped("numbers " + numbers, "  ")
    if failure.context:
        lines.append("  context")
        lines += [f"    | {line[: WIDTH - 6]}" for line in failure.context]
    if len(failure.chain) > 1:
        lines.append("  how it spread")
        for link in failure.chain[:8]:
            text = (
                f"    {link.line:>6}  {link.role:<20} {link.process or ABSENT}: "
                f"{link.text.partition(chr(10))[0]}"
            )
            lines.append(text[:WIDTH])
    return lines


def _fact_lines(name: str, fact: Fact) -> list[str]:
    text = f"  {name:<30} {_with_unit(fact)}"
    return [text, *_wrapped(f"({fact.note})", " " * 33)] if fact.note else [text]


def _speculation_lines(report: LogReport) -> list[str]:
    if not len(report.speculation):
        return []
    acceptance = from_log(report.speculation, k=report.get("num_speculative_tokens") or None)
    lines = [
        "",
        f"speculation (dialect {report.speculation[-1].dialect}, {len(report.speculation):,} lines, "
        "token-weighted)",
    ]
    lines += _wrapped(acceptance_text(acceptance), "  ")
    if acceptance.note:
        lines += _wrapped(f"({acceptance.note})", "  ")
    return lines


def _count(value: float | None) -> str:
    return value_text(None if value is None else int(value))


def _load_lines(report: LogReport) -> list[str]:
    if not len(report.intervals):
        return []
    peaks = report.intervals.peaks()
    text = (
        f"running {_count(peaks['running'])}, waiting {_count(peaks['waiting'])}, generation "
        f"{value_text(peaks['generation_tps'])} tokens/s, KV use {value_text(peaks['kv_usage_percent'])} "
        f"%, prefix hits {value_text(peaks['prefix_hit_percent'])} %"
    )
    return ["", f"load ({len(report.intervals):,} periodic lines), highest values", *_wrapped(text, "  ")]


def _warning_lines(report: LogReport) -> list[str]:
    if not report.warnings:
        return []
    counts: dict[str, int] = {}
    for notice in report.warnings:
        counts[notice.id] = counts.get(notice.id, 0) + 1
    lines = ["", "warnings that change a benchmark"]
    shown: set[str] = set()
    for notice in report.warnings:
        if notice.id in shown:
            continue
        shown.add(notice.id)
        times = f" ({counts[notice.id]} times)" if counts[notice.id] > 1 else ""
        numbers = ", ".join(f"{name} {value_text(value)}" for name, value in notice.values.items())
        lines += _wrapped(
            f"line {notice.line:,}  {notice.id}{times}" + (f": {numbers}" if numbers else ""), "  "
        )
        lines += _wrapped(notice.advice, "      ")
        if len(shown) >= _MAX_WARNINGS:
            break
    return lines


def _missing_lines(report: LogReport) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in report.missing.items():
        by_reason.setdefault(reason, []).append(name)
    if not by_reason or report.engine is None:
        return []
    lines = ["", "not found"]
    for reason, names in by_reason.items():
        lines += _wrapped(f"{reason}: {', '.join(names)}", "  ")
    return lines
