"""How the measured window went: facts that decide whether a cell's figures may be believed.

Nothing is judged here. validity.py does that, against limits of the config, so that another limit costs no reading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from scripts.lib import degenerate
from scripts.lib.asked import Asked
from scripts.lib.evidence import Evidence, Request
from scripts.lib.logs import LogReport
from scripts.lib.logs.checks import scheduler_limit
from scripts.lib.logs.prometheus import MetricsDelta
from scripts.lib.logs.root_cause import errors_between
from scripts.lib.logs.series import Interval
from scripts.lib.standstill import standstills

CONDUCT_FIELDS: dict[str, type] = {
    "forced_length": bool,
    "unique_prompts": bool,
    "random_prompts": bool,
    "temperature": float,
    "running_asked": int,
    "busy_lines": int,
    "kv_usage_max": float,
    "scheduler_words": str,
    "acceptance_alarm": str,
    "engine_error": str,
    "compiled_in_window": int,
    "degenerate_words": str,
    "foreign_words": str,
    "foreign_requests": int,
    "stalled_s": float,
    "longest_stall_s": float,
}
"""Columns by name: int, float, bool or str. `running_asked`: requests in flight that one engine should have had;
`busy_lines`: periodic log lines with running requests;
`kv_usage_max`: percent; `scheduler_words`: which requests waited; `engine_error`: the first error of the engine in the
window, `compiled_in_window`: kernels that it compiled there; `foreign_requests`: those that the server ended in the window
beyond the client's own; `stalled_s`: how long the engine stood still (standstill.py), `longest_stall_s` at a time; None where
neither log nor requests tell or nothing was found."""

METRICS_HERE = (
    "truncated_share",
    "degenerate_share",
    "running_max",
    "waiting_share",
    "preemptions",
    "prefix_hit_share",
)
_SYNTHETIC = re.compile(r"rejection_sample_method['\"]?\s*[=:]\s*['\"]?synthetic")
_ANSWERS_LOOKED_AT = 16
_MOST_NAMED = 3
_NO_LOG = "there is no server log of the window"
_NO_LINES = "the server log has no periodic line with running requests in the window"
_NO_OUTPUT = "the evidence keeps no answers"

Values = dict[str, object]
Reasons = dict[str, str]


def synthetic(asked: Asked, report: LogReport | None) -> bool:
    """Whether acceptance was made up by the engine, by what was asked or by what its log repeats."""
    said = [*report.config.values(), *report.args.values()] if report else []
    return asked.synthetic or any(map(_SYNTHETIC.search, said))


def conduct(
    evidence: Evidence, report: LogReport | None, counters: MetricsDelta | None, concurrency: int
) -> tuple[Values, Reasons]:
    """Values of CONDUCT_FIELDS and METRICS_HERE; reasons for the metrics among them that are None."""
    values: Values = dict.fromkeys((*CONDUCT_FIELDS, *METRICS_HERE))
    reasons: Reasons = {}
    values |= _scenario(evidence.manifest) | {"foreign_words": _others(evidence.manifest)}
    _answers(evidence.measured, bool(values["forced_length"]), values, reasons)
    _counted(counters, values, reasons)
    values["foreign_requests"] = _foreign_requests(evidence.measured, counters)
    stalls = standstills(evidence.measured)
    if stalls is not None:
        values |= {"stalled_s": sum(stalls), "longest_stall_s": max(stalls, default=0.0)}
    window = evidence.manifest["window"]
    start, end = window.get("log_start"), window.get("log_end")
    if report is None or start is None or end is None:
        reasons |= dict.fromkeys(("running_max", "waiting_share"), _NO_LOG)
    else:
        _logged(report, (start, end), concurrency, values, reasons)
    return values, reasons


def _scenario(manifest: Mapping[str, object]) -> Values:
    """What the scenario asked for; manifests of earlier versions do not tell."""
    traits = manifest.get("scenario") or {}
    return {
        "forced_length": traits.get("forced_length"),
        "unique_prompts": traits.get("nonce"),
        "random_prompts": traits.get("random"),
        "temperature": traits.get("temperature"),
    }


def _others(manifest: Mapping[str, object]) -> str | None:
    """The largest of other people's processes, with what they used of the processors."""
    others = (manifest.get("host_state") or {}).get("foreign_processes") or ()
    return ", ".join(f"{one['name']} {one['cpu_s']:.1f} s" for one in others[:_MOST_NAMED]) or None


def _answers(measured: Sequence[Request], forced: bool, values: Values, reasons: Reasons) -> None:
    done = [request for request in measured if request.completed]
    if not done:
        return
    values["truncated_share"] = sum(request.finish_reason == "length" for request in done) / len(done)
    outputs = [request.output for request in done if request.output is not None]
    if not outputs:
        reasons["degenerate_share"] = _NO_OUTPUT
        return
    # Evenly spread: prompts come in rotation, so the first few would all be of the first prompts.
    looked_at = outputs[:: math.ceil(len(outputs) / _ANSWERS_LOOKED_AT)]
    bad = degenerate.by_kind(looked_at, forced)
    values["degenerate_share"] = sum(map(len, bad.values())) / len(looked_at)
    words = [degenerate.in_words(kind, texts, len(looked_at)) for kind, texts in sorted(bad.items())]
    values["degenerate_words"] = "; ".join(words) or None


def _counted(counters: MetricsDelta | None, values: Values, reasons: Reasons) -> None:
    if counters is None:
        reasons |= dict.fromkeys(
            ("preemptions", "prefix_hit_share"), "there is no /metrics before and after the window"
        )
        return
    preemptions, hits = counters["preemptions"], counters.prefix_hit_percent
    values["preemptions"] = None if preemptions is None else round(preemptions)
    values["prefix_hit_share"] = None if hits is None else hits / 100
    if preemptions is None:
        reasons["preemptions"] = counters.reasons.get("preemptions", "not counted")
    if hits is None:
        missing = counters.reasons.get("prefix_hits") or counters.reasons.get("prefix_queries")
        reasons["prefix_hit_share"] = missing or "nothing was looked up in the prefix cache"


def _foreign_requests(measured: Sequence[Request], counters: MetricsDelta | None) -> int | None:
    """None also where a request failed: then the workflow itself asks the server whether it lives."""
    ended = None if counters is None else counters["requests"]
    if ended is None or not all(request.completed for request in measured):
        return None
    return max(0, round(ended) - len(measured))


def _logged(
    report: LogReport, window: tuple[int, int], concurrency: int, values: Values, reasons: Reasons
) -> None:
    samples = list(report.intervals.between(*window))
    busy = [sample for sample in samples if sample.running]
    if busy:
        engines = len({sample.engine for sample in busy}) or 1
        usage = [sample.kv_usage_percent for sample in busy if sample.kv_usage_percent is not None]
        values |= {
            "running_max": max(sample.running for sample in busy),
            "running_asked": math.ceil(concurrency / engines),
            "busy_lines": len(busy),
            "waiting_share": sum(bool(sample.waiting) for sample in busy) / len(busy),
            "kv_usage_max": max(usage, default=None),
        }
        if values["running_max"] < values["running_asked"]:
            values["scheduler_words"] = _held_back(values, report, window)
    else:
        reasons |= dict.fromkeys(("running_max", "waiting_share"), _NO_LINES)
    _fill_from_lines(samples, values, reasons)
    values["engine_error"] = next(iter(errors_between(report, *window)), None)
    compiled = report.notices("jit_during_inference")
    values["compiled_in_window"] = sum(window[0] <= notice.offset < window[1] for notice in compiled)


def _fill_from_lines(samples: Sequence[Interval], values: Values, reasons: Reasons) -> None:
    """Prefix hits and preemptions from periodic lines, where there are no counters."""
    hits = [sample.prefix_hit_percent for sample in samples if sample.prefix_hit_percent is not None]
    if values["prefix_hit_share"] is None and hits:
        values["prefix_hit_share"] = max(hits) / 100
        reasons.pop("prefix_hit_share", None)
    preempted = [sample.preemptions for sample in samples if sample.preemptions is not None]
    if values["preemptions"] is None and preempted:
        values["preemptions"] = sum(preempted)
        reasons.pop("preemptions", None)


def _held_back(values: Values, report: LogReport, window: tuple[int, int]) -> str:
    """Who kept requests waiting, in words."""
    limit = scheduler_limit(report, values["running_asked"], *window)
    if limit is not None:
        return limit.text
    usage = values["kv_usage_max"]
    full = "" if usage is None else f", the KV cache {usage:.0f} % full"
    return f"{values['running_max']} of {values['running_asked']} run at most{full}"
