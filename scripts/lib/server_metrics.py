"""The metrics that only the server knows: memory and start-up phases from its log, acceptance from its
counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from scripts.lib.asked import Asked
from scripts.lib.evidence import Evidence, Request
from scripts.lib.logs import LogReport
from scripts.lib.logs import acceptance as sources
from scripts.lib.logs.acceptance import Acceptance, Effective
from scripts.lib.logs.periodic import VARIABLE_K_METHODS
from scripts.lib.logs.prometheus import MetricsDelta
from scripts.lib.metrics import of_subject

_BY_CLIENT = {"startup_health_s": "health_s", "startup_ready_s": "ready_s"}
_FROM_LOG = tuple(name for name in of_subject("memory", "startup") if name not in _BY_CLIENT)
_ACCEPTANCE = tuple(of_subject("acceptance"))
_NO_LOG = "there is no server log"
_NO_COUNTERS = "there is no /metrics before and after the window"


@dataclass(frozen=True)
class Served:
    """Metric values (and the record's fields `engine_version`, `acceptance_source` and `acceptance_alarm`), the
    reasons of those that are None, and remarks a reader needs."""

    values: Mapping[str, object]
    reasons: Mapping[str, str]
    notes: list[str]


def server_metrics(
    evidence: Evidence, report: LogReport | None, counters: MetricsDelta | None, asked: Asked
) -> Served:
    """Metrics of the subjects memory, startup and acceptance, from the log's report and from what /metrics
    grew by over the window. What the evidence lacks is None with a reason."""
    values: dict[str, object] = {}
    reasons: dict[str, str] = {}
    _startup_by_client(evidence, values, reasons)
    _facts(report, values, reasons)
    values["engine_version"] = (report and report.version) or evidence.manifest["server"].get("version")
    notes = _other_version(evidence, values["engine_version"])
    notes += _acceptance(evidence, report, counters, asked, values, reasons)
    return Served(values, reasons, notes)


def _startup_by_client(evidence: Evidence, values: dict, reasons: dict) -> None:
    startup = evidence.manifest["server"].get("startup") or {}
    for name, key in _BY_CLIENT.items():
        values[name] = startup.get(key)
        if values[name] is None:
            reasons[name] = "this workflow did not start the server"


def _other_version(evidence: Evidence, version: object) -> list[str]:
    """A remark when the server is another release than its engine file says: rules about releases were asked of the wrong one."""
    named = (evidence.manifest.get("identity") or {}).get("engine", {}).get("version")
    if not named or not version or re.match(rf"{re.escape(named)}(?![0-9])", str(version)):
        return []
    return [f"the engine file says version {named}, the server says {version}: correct the file"]


def _facts(report: LogReport | None, values: dict, reasons: dict) -> None:
    """Fill in what the start-up log says."""
    if report is None:
        values |= dict.fromkeys(_FROM_LOG)
        reasons |= dict.fromkeys(_FROM_LOG, _NO_LOG)
        return
    for name in _FROM_LOG:
        values[name] = report.get(name)
        if values[name] is None:
            reasons[name] = report.missing.get(name, "not found in the server log")


def _acceptance(
    evidence: Evidence,
    report: LogReport | None,
    counters: MetricsDelta | None,
    asked: Asked,
    values: dict,
    reasons: dict,
) -> list[str]:
    """Fill in acceptance over the measured window, with an alarm where its sources disagree; returns remarks.

    The counters of /metrics are exact and come first; the log's lines are used where there are none.
    """
    values |= dict.fromkeys((*_ACCEPTANCE, "acceptance_source", "acceptance_alarm"))
    if asked.k == 0:
        reasons |= dict.fromkeys(_ACCEPTANCE, "no speculation")
        return []
    counted, lines = _from_counters(counters, asked.k), _from_log(evidence, report, asked.k)
    best = counted if counted.length is not None else lines
    method = asked.method or (report and report.get("speculative_method")) or ""
    skips = method in VARIABLE_K_METHODS or asked.stops_drafting
    if best.length is None:
        why = f"counters: {counted.reason}; log: {lines.reason}"
        reasons |= dict.fromkeys(_ACCEPTANCE, why)
        if counted.drafts == 0:
            values |= _without_a_draft(_effective(evidence.measured, counted, skips))
        return []
    steps = _effective(evidence.measured, best, skips)
    values |= {
        "acceptance_length": best.length,
        "acceptance_rate": best.rate,
        "acceptance_per_position": list(best.per_position) or None,
        "drafts": _count(best.drafts),
        "drafted_tokens": _count(best.drafted),
        "accepted_tokens": _count(best.accepted),
        "tokens_per_step": steps.tokens_per_step,
        "draft_coverage": steps.coverage,
        "acceptance_source": best.source,
    }
    lacking = [name for name in _ACCEPTANCE if values[name] is None]
    reasons |= dict.fromkeys(lacking, f"{best.source} does not tell")
    if steps.reason:
        reasons |= dict.fromkeys(("tokens_per_step", "draft_coverage"), steps.reason)
    chunks = _from_chunks(evidence.measured, asked.k)
    agreement = sources.compare(lines, counted, chunks, method, steps, skips)
    values["acceptance_alarm"] = "; ".join(agreement.alarms) or None
    return [f"acceptance: {best.note}"] if best.note else []


def _without_a_draft(steps: Effective) -> dict[str, object]:
    """The counters say that nothing was drafted: that is known, only what would be divided by it is not."""
    return dict.fromkeys(("drafts", "drafted_tokens", "accepted_tokens"), 0) | {
        "tokens_per_step": steps.tokens_per_step,
        "draft_coverage": steps.coverage,
        "acceptance_source": "metrics",
    }


def _from_counters(counters: MetricsDelta | None, k: int) -> Acceptance:
    if counters is None:
        return Acceptance("metrics", None, None, reason=_NO_COUNTERS)
    return sources.from_metrics(counters, k)


def _from_log(evidence: Evidence, report: LogReport | None, k: int) -> Acceptance:
    window = evidence.manifest["window"]
    start, end = window.get("log_start"), window.get("log_end")
    if report is None or start is None or end is None:
        return Acceptance("log", None, None, reason=_NO_LOG)
    return sources.from_log(report.speculation, start, end, k)


def _from_chunks(measured: tuple[Request, ...], k: int) -> Acceptance | None:
    """The client's view; None unless every completed request has counted its tokens chunk by chunk, one step a chunk.

    No step puts out more than k + 1 tokens: where a chunk has more, the server sends several steps at once (a busy API server,
    vLLM's --stream-interval), and chunks do not tell steps."""
    done = [request for request in measured if request.completed]
    if not done or any(request.chunks is None or request.completion_tokens is None for request in done):
        return None
    if max(request.largest_chunk or 0 for request in done) > k + 1:
        return None
    tokens = sum(request.completion_tokens for request in done)
    return sources.from_chunks(tokens, sum(request.chunks for request in done), len(done))


def _effective(measured: tuple[Request, ...], best: Acceptance, skips: bool) -> Effective:
    """Tokens per decoding step of a method that skips drafts. A request's first token comes from its prefill,
    which is no decoding step."""
    if not skips:
        return Effective(None, None, "this method drafts at every step: see acceptance_length")
    if any(not request.completed for request in measured):
        return Effective(None, None, "some requests failed: their accepted tokens cannot be told apart")
    if any(request.completion_tokens is None for request in measured):
        return Effective(None, None, "the server sent no token usage")
    decoded = sum(max(request.completion_tokens - 1, 0) for request in measured)
    return sources.effective_tokens(decoded, best.accepted, best.drafts)


def _count(value: float | None) -> int | None:
    return None if value is None else round(value)
