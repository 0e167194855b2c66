"""A report as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.lib.logs.acceptance import from_log
from scripts.lib.logs.model import Fact, LogReport
from scripts.lib.logs.render import state

_MAX_RAW = 400


def json_parts(name: str, report: LogReport) -> Iterator[str]:
    """The report as JSON text in pieces, series sample by sample, so that a huge log stays within memory."""
    head = {
        "name": name,
        "engine": report.engine,
        "version": report.version,
        "generation": report.generation,
        "state": state(report),
        "phase": report.phase,
        "ready": report.ready,
        "boots": report.boots,
        "lines": report.lines,
        "size_bytes": report.size_bytes,
        "ready_offset": report.ready_offset,
        "shutdown_offset": report.shutdown_offset,
        "note": report.note,
        "facts": {key: _fact_json(fact) for key, fact in report.facts.items()},
        "missing": report.missing,
        "failure": None if report.failure is None else _plain(report.failure),
        "acceptance": _plain(from_log(report.speculation, k=report.get("num_speculative_tokens") or None)),
        "warnings": [_plain(notice) for notice in report.warnings],
        "memory_steps": [_plain(step) for step in report.memory_steps],
    }
    text = json.dumps(head, ensure_ascii=False, allow_nan=False, indent=1)
    yield text.removesuffix("\n}")
    for key, series in (("intervals", report.intervals), ("speculation", report.speculation)):
        yield f',\n "{key}": ['
        for index in range(len(series)):
            yield (",\n  " if index else "\n  ") + json.dumps(
                _plain(series[index]), ensure_ascii=False, allow_nan=False
            )
        yield "\n ]" if len(series) else "]"
    yield "\n}"


def _fact_json(fact: Fact) -> dict[str, Any]:
    return {
        "value": _plain(fact.value),
        "unit": fact.unit,
        "line": fact.line,
        "process": fact.process,
        "dialect": fact.dialect,
        "note": fact.note,
        "raw": fact.raw[:_MAX_RAW],
        "observed": [[item.value, item.line, item.process] for item in fact.observations]
        if fact.observations
        else [],
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
