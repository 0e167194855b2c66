"""From the evidence of one cell to its record: a flat, JSON-able mapping, a pure function of the evidence.

A record has the nine axes, `status`, `reasons` (why the status is not a plain "measured"), what failed, every
metric of the registry (None where absent, then with its reason in `absent`), `notes` for the reader and where
it all came from.

    measured     at least one request completed; `reasons` tells of those that did not
    failed       no figures: the server did not start, died, or completed nothing
    damaged      the evidence is truncated, altered or of an unknown format
    infeasible   refused before start; there is no evidence
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from scripts.lib.cell import CELL_PATTERN, Cell
from scripts.lib.evidence import DamagedEvidence, Evidence, Request, read_evidence
from scripts.lib.logs import find_failure
from scripts.lib.metrics import METRICS, of_subject
from scripts.lib.request_metrics import request_metrics
from scripts.lib.server_metrics import server_metrics

MEASURED, FAILED, DAMAGED, INFEASIBLE = "measured", "failed", "damaged", "infeasible"

FAILURE_FIELDS = (
    "failure_class",
    "failure_cause",
    "failure_root_line",
    "failure_fix",
    "failure_phase",
    "failure_process",
    "first_error",
)
PROVENANCE_FIELDS = (
    "acceptance_source",
    "engine_version",
    "image_digest",
    "command",
    "host",
    "device",
    "boot",
    "workflow_commit",
    "started_at",
    "finished_at",
    "key",
    "evidence",
    "log",
)
_COUNTS = ("requests", "completed", "failed")
_COMPARED = frozenset(of_subject("comparison"))

Record = dict[str, object]


def record_from_pointer(pointer: Path) -> Record:
    """The record of the cell whose evidence the pointer file names. Never raises for what the file holds.

    The cell is known by the pointer's own path (.../{cell path}/evidence.json), so even an unreadable pointer
    has a row."""
    depth = CELL_PATTERN.count("/") + 1
    cell = Cell.from_path("/".join(pointer.parent.parts[-depth:]))
    try:
        folder = Path(json.loads(pointer.read_text(encoding="utf-8"))["folder"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return _damaged(cell, None, f"{pointer} names no evidence ({error!r}): delete it and run again")
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


def infeasible_record(axes: Mapping[str, object], reasons: Sequence[str]) -> Record:
    """The record of a cell that was refused before start, with the rules that refused it."""
    return _blank(Cell.from_axes(axes), INFEASIBLE, reasons, f"not measured ({INFEASIBLE})")


def _blank(cell: Cell, status: str, reasons: Sequence[str], absent: str) -> Record:
    return {
        **cell.axes,
        "status": status,
        "reasons": list(reasons),
        **dict.fromkeys(FAILURE_FIELDS),
        **dict.fromkeys(METRICS),
        "absent": [f"all metrics: {absent}"],
        "notes": [],
        **dict.fromkeys(PROVENANCE_FIELDS),
    }


def _damaged(cell: Cell, folder: Path | None, why: str) -> Record:
    record = _blank(cell, DAMAGED, [why], "the evidence is damaged")
    return record | {"evidence": str(folder) if folder else None}


def _record(evidence: Evidence, cell: Cell) -> Record:
    manifest = evidence.manifest
    failure = manifest["failure"] if manifest["status"] == FAILED else None
    counted, reasons = request_metrics(evidence.measured, manifest["requests"])
    first_error = next(filter(None, (request.complaint for request in evidence.measured)), None)
    if failure is None and not counted["completed"]:
        failure = _nothing_completed(counted["requests"], first_error)
    if failure is not None:
        failure = _explained(failure, evidence)
        record = _blank(cell, FAILED, [_failed_words(failure)], "the cell failed")
        record |= {name: counted[name] for name in _COUNTS} | _failure_fields(failure)
    else:
        served = server_metrics(evidence, cell)
        record = _blank(cell, MEASURED, _incomplete(counted, evidence.measured), "")
        record |= counted | served.values
        record["absent"] = _absent(record, reasons | served.reasons)
        record["notes"] = [*_warmup_note(evidence), *served.notes]
    return record | {"first_error": first_error} | _provenance(evidence)


def _nothing_completed(asked: int, first_error: str | None) -> Mapping[str, object]:
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


def _absent(record: Mapping[str, object], reasons: Mapping[str, str]) -> list[str]:
    """`metric, metric: reason` for all that is lacking but comparisons: the table knows their baseline."""
    by_reason: dict[str, list[str]] = {}
    for name in METRICS:
        if record[name] is None and name not in _COMPARED:
            by_reason.setdefault(reasons.get(name) or "not found", []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]


def _warmup_note(evidence: Evidence) -> list[str]:
    failed = sum(not request.completed for request in evidence.warmup)
    return (
        [f"{failed} of {len(evidence.warmup)} warm-up requests failed: the server may have been cold"]
        if failed
        else []
    )


def _provenance(evidence: Evidence) -> Record:
    manifest, server = evidence.manifest, evidence.manifest["server"]
    return {
        "image_digest": server.get("image_digest"),
        "command": shlex.join(server["argv"]) if server.get("argv") else None,
        "host": manifest["host"],
        "device": _device(manifest["device"]),
        "boot": manifest["boot"]["id"],
        "workflow_commit": manifest["workflow_commit"],
        "started_at": _utc(manifest["started_at"]),
        "finished_at": _utc(manifest["finished_at"]),
        "key": manifest["key"],
        "evidence": str(evidence.folder),
        "log": str(evidence.log) if evidence.log else None,
    }


def _device(device: Mapping[str, object]) -> str | None:
    """What the server ran on, in words: the GPUs where there are some, else the CPU."""
    gpus = [str(gpu.get("name")) for gpu in device.get("gpus") or ()]
    return ", ".join(gpus) or device.get("cpu")


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
