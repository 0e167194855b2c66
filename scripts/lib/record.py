"""From the evidence of one cell to its record: a flat, JSON-able mapping, a pure function of the evidence.

A record has the nine axes, `synthetic` (the engine made its acceptance up), `status`, `reasons` (why the status is not
a plain "measured"), what failed, every metric of the registry and how the server really ran (None where absent, then
with its reason in `absent`), how the window went (conduct.py), `notes` for the reader and where it all came from.

    measured     at least one request completed; `reasons` tells of those that did not
    mislabelled  measured, but the server ran something else than the row says: its figures are of another row
    failed       no figures: the server did not start, died, or completed nothing
    damaged      the evidence is truncated, altered or of an unknown format
    infeasible   refused before start; there is no evidence
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.lib.asked import Asked, asked_of
from scripts.lib.cell import CELL_PATTERN, Cell
from scripts.lib.client_metrics import client_metrics
from scripts.lib.conduct import CONDUCT_FIELDS, conduct, synthetic
from scripts.lib.evidence import DamagedEvidence, Evidence, Request, read_evidence
from scripts.lib.host_metrics import host_metrics
from scripts.lib.logs import LogReport, find_failure, parse_path
from scripts.lib.logs.prometheus import MetricsDelta, difference
from scripts.lib.metrics import METRICS, of_subject
from scripts.lib.neighbour import NEIGHBOUR_FIELDS, neighbour
from scripts.lib.origin import PROVENANCE_FIELDS, origin
from scripts.lib.pointer import Pointer
from scripts.lib.power_metrics import power_metrics, power_notes
from scripts.lib.request_metrics import request_metrics
from scripts.lib.server_config import CONFIG_FIELDS, server_config
from scripts.lib.server_metrics import server_metrics
from scripts.lib.server_notes import server_notes
from scripts.lib.truth import Mismatch, compare, unconfirmed

MEASURED, MISLABELLED, FAILED, DAMAGED, INFEASIBLE = (
    "measured",
    "mislabelled",
    "failed",
    "damaged",
    "infeasible",
)

FAILURE_FIELDS = (
    "failure_class",
    "failure_cause",
    "failure_root_line",
    "failure_fix",
    "failure_phase",
    "failure_process",
    "first_error",
)
COUNTS = ("requests", "completed", "failed")
_COMPARED = frozenset(of_subject("comparison"))
_RELABEL = (
    "make the config ask for what the server ran, or correct the server, forget the cells "
    "(python -m scripts.forget) and run again"
)

_RANDOM = "prompts are random words, on which drafters guess badly: acceptance and speed say nothing about real prompts"

Record = dict[str, object]


def record_from_pointer(pointer: Path) -> Record:
    """The record of the cell whose evidence the pointer file names. Never raises for what the file holds.

    The cell is known by the pointer's own path (.../{cell path}/evidence.json), so even an unreadable pointer
    has a row."""
    depth = CELL_PATTERN.count("/") + 1
    cell = Cell.from_path("/".join(pointer.parent.parts[-depth:]))
    try:
        folder = Path(Pointer.read(pointer).folder)
    except ValueError as error:
        return _damaged(cell, None, f"{error}: delete it and run again")
    return record_from_evidence(folder, cell)


def record_from_evidence(folder: Path, cell: Cell) -> Record:
    """The record of `cell` from its evidence folder. Damage of any kind becomes status `damaged`, never an
    exception."""
    try:
        evidence = read_evidence(folder)
        if evidence.manifest["cell"] != cell.axes:
            raise DamagedEvidence("manifest.json is of another cell")
        return _record(evidence, cell)
    except DamagedEvidence as error:
        return _damaged(cell, folder, f"{error}. Run again: damaged evidence is measured anew")


def infeasible_record(axes: Mapping[str, object], reasons: Sequence[str], made_up: bool = False) -> Record:
    """The record of a cell that was refused before start, with the rules that refused it; `made_up`: it asks for
    synthetic acceptance."""
    record = blank_record(Cell.from_axes(axes), INFEASIBLE, reasons, f"not measured ({INFEASIBLE})")
    return record | {"synthetic": made_up}


def blank_record(cell: Cell, status: str, reasons: Sequence[str], absent: str) -> Record:
    """A record of `cell` without any figure; `absent`: why."""
    return {
        **cell.axes,
        "synthetic": False,
        "status": status,
        "reasons": list(reasons),
        **dict.fromkeys(FAILURE_FIELDS),
        **dict.fromkeys(METRICS),
        **dict.fromkeys(CONFIG_FIELDS),
        **dict.fromkeys(CONDUCT_FIELDS),
        **dict.fromkeys(NEIGHBOUR_FIELDS),
        "absent": [f"all metrics: {absent}"],
        "notes": [],
        **dict.fromkeys(PROVENANCE_FIELDS),
    }


def failed_record(cell: Cell, failure: Mapping[str, object], counted: Mapping[str, object]) -> Record:
    """A record without figures but the counts of requests; `failure` as a manifest has it."""
    record = blank_record(cell, FAILED, [_failed_words(failure)], "the cell failed")
    return record | {name: counted[name] for name in COUNTS} | _failure_fields(failure)


def _damaged(cell: Cell, folder: Path | None, why: str) -> Record:
    record = blank_record(cell, DAMAGED, [why], "the evidence is damaged")
    return record | {"evidence": str(folder) if folder else None}


def _record(evidence: Evidence, cell: Cell) -> Record:
    manifest = evidence.manifest
    failure = manifest["failure"] if manifest["status"] == FAILED else None
    counted, reasons = request_metrics(evidence.measured, manifest["requests"], cell.concurrency)
    first_error = next(filter(None, (request.complaint for request in evidence.measured)), None)
    if failure is None and not counted["completed"]:
        failure = nothing_completed(counted["requests"], first_error)
    if failure is not None:
        record = failed_record(cell, _explained(failure, evidence), counted)
    else:
        around, unknown = _surroundings(evidence, counted["completion_tokens"])
        record = blank_record(cell, MEASURED, _incomplete(counted, evidence.measured), "") | counted | around
        _add_server(record, reasons | unknown, evidence, cell)
    record["synthetic"] = record["synthetic"] or asked_of(cell, manifest).synthetic
    return record | {"first_error": first_error} | neighbour(manifest) | origin(evidence)


def _surroundings(evidence: Evidence, tokens: int | None) -> tuple[Record, dict[str, str]]:
    """The metrics of the client, the machine and its GPUs, and why some are None."""
    manifest = evidence.manifest
    own, unknown = client_metrics(manifest, evidence.measured)
    host, unseen = host_metrics(manifest)
    power, untold = power_metrics(
        manifest.get("device_watch"), evidence.device_samples, manifest["window"], tokens
    )
    return own | host | power, unknown | unseen | untold


def _add_server(record: Record, reasons: Mapping[str, str], evidence: Evidence, cell: Cell) -> None:
    """Fill in what only the server knows, and hold the row against it. `reasons`: of absent request metrics."""
    asked = asked_of(cell, evidence.manifest)
    report = parse_path(evidence.log) if evidence.log else None
    counters = _counters(evidence)
    served = server_metrics(evidence, report, counters, asked)
    settings, unknown = server_config(report)
    went, unseen = conduct(evidence, report, counters, cell.concurrency)
    record |= {"synthetic": synthetic(asked, report)} | settings | went | served.values
    record["absent"] = absent_words(record, reasons | served.reasons | unknown | unseen)
    record["notes"] = [
        *power_notes(evidence.device_samples, evidence.manifest["window"]),
        *_warmup_note(evidence),
        *([_RANDOM] if asked.k and went["random_prompts"] else []),
        *served.notes,
        *_log_notes(asked, report, evidence),
    ]
    record["notes"] += _unconfirmed_note(asked, report, counters)
    mismatches = compare(asked, report, counters)
    if mismatches:
        record |= _mislabelled(mismatches)
        record["reasons"] = [*(mismatch.text for mismatch in mismatches), *record["reasons"]]


def _counters(evidence: Evidence) -> MetricsDelta | None:
    if evidence.metrics_before is None or evidence.metrics_after is None:
        return None
    return difference(evidence.metrics_before, evidence.metrics_after)


def _log_notes(asked: Asked, report: LogReport | None, evidence: Evidence) -> list[str]:
    if report is None:
        return []
    window = evidence.manifest["window"]
    return server_notes(asked, report, window.get("log_start"), window.get("log_end"))


def _unconfirmed_note(asked: Asked, report: LogReport | None, counters: MetricsDelta | None) -> list[str]:
    names = ", ".join(unconfirmed(asked, report, counters))
    if not names:
        return []
    source = "there is no server log to confirm" if report is None else "the server log does not confirm"
    return [f"{source} what was asked: {names}"]


def _mislabelled(mismatches: Sequence[Mismatch]) -> Record:
    first = mismatches[0]
    return {
        "status": MISLABELLED,
        "failure_class": MISLABELLED,
        "failure_cause": "; ".join(mismatch.words for mismatch in mismatches),
        "failure_root_line": first.line,
        "failure_fix": _RELABEL,
    }


def nothing_completed(asked: int, first_error: str | None = None) -> Mapping[str, object]:
    """The failure of a cell none of whose requests came to an end."""
    cause = f"0 of {asked} requests completed" + (f"; the first error: {first_error}" if first_error else "")
    return {"class": "request", "cause": cause, "root_line": first_error, "phase": "measure"}


def _explained(failure: Mapping[str, object], evidence: Evidence) -> Mapping[str, object]:
    """A failure nobody could name when it happened, as today's catalogue names it."""
    if failure.get("class") not in (None, "unknown") or evidence.log is None:
        return failure
    found = find_failure(evidence.log, exit_status=failure.get("exit_status"))
    if found is None:
        return failure
    return {
        **failure,
        "class": found.failure_class,
        "cause": found.cause,
        "root_line": found.root_line,
        "fix": found.fix,
        "process": found.process,
    }


def _failed_words(failure: Mapping[str, object]) -> str:
    name, phase = failure.get("class") or "unknown", failure.get("phase") or "unknown phase"
    return f"{name} ({phase}): {failure.get('cause')}"


def _failure_fields(failure: Mapping[str, object]) -> Record:
    return {
        f"failure_{name}": failure.get(name)
        for name in ("class", "cause", "root_line", "fix", "phase", "process")
    }


def _incomplete(counted: Mapping[str, object], measured: Sequence[Request]) -> list[str]:
    """Why the cell is less than what was asked for; empty when every request completed."""
    asked, completed = counted["requests"], counted["completed"]
    if completed == asked:
        return []
    reasons = [f"{completed} of {asked} requests completed"]
    complaints = [request.complaint for request in measured if not request.completed]
    if complaints:
        reasons.append(f"the first of {len(complaints)} errors: {complaints[0]}")
    if len(measured) != asked:
        reasons.append(f"{len(measured)} of {asked} requests left a record")
    return reasons


def absent_words(
    record: Mapping[str, object], reasons: Mapping[str, str], otherwise: str = "not found"
) -> list[str]:
    """`metric, metric: reason` for all that is lacking but comparisons: the table knows their baseline."""
    by_reason: dict[str, list[str]] = {}
    for name in (*METRICS, *CONFIG_FIELDS):
        if record[name] is None and name not in _COMPARED:
            by_reason.setdefault(reasons.get(name) or otherwise, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _warmup_note(evidence: Evidence) -> list[str]:
    failed = sum(not request.completed for request in evidence.warmup)
    return (
        [f"{failed} of {len(evidence.warmup)} warm-up requests failed: the server may have been cold"]
        if failed
        else []
    )
