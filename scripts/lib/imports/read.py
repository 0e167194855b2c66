"""Files of other tools to records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.lib.cell import BASELINE, Cell, Server
from scripts.lib.imports import guidellm, vllm_bench
from scripts.lib.imports.result import Result, UnreadableResult
from scripts.lib.logs.acceptance import effective_tokens
from scripts.lib.logs.periodic import VARIABLE_K_METHODS
from scripts.lib.record import (
    COUNTS,
    MEASURED,
    Record,
    absent_words,
    blank_record,
    failed_record,
    nothing_completed,
)

_TOOLS = {"vllm bench": vllm_bench, "GuideLLM": guidellm}
_NOT_TOLD = "the imported file does not tell"


def imported_records(path: Path, axes: Mapping[str, object]) -> list[Record]:
    """Every run in the file `path` as a record of an external cell.

    `axes`: hardware, engine, model, max_model_len and scenario, and method and k where the file does not have them.
    Raises UnreadableResult, with the file's name and what to do.
    """
    try:
        tool, results = _results(json.loads(path.read_text(encoding="utf-8")))
        return [_record(path, tool, result, _cell(result, axes)) for result in results]
    except OSError as error:
        raise UnreadableResult(f"{path}: cannot be read ({error.strerror})") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableResult(f"{path}: has not the form of its tool ({error!r})") from None
    except ValueError as error:  # UnreadableResult, text that is no UTF-8, no JSON
        raise UnreadableResult(f"{path}: {error}") from None


def _results(data: object) -> tuple[str, Sequence[Result]]:
    for tool, module in _TOOLS.items():
        if module.recognises(data):
            return tool, module.read(data)
    raise UnreadableResult(
        f"is no result of {' or '.join(_TOOLS)}: give JSON of `vllm bench serve --save-result`, of "
        "`vllm bench sweep serve` or of GuideLLM"
    )


def _cell(result: Result, axes: Mapping[str, object]) -> Cell:
    method, k = result.method or axes.get("method"), result.k if result.method else axes.get("k")
    if method is None:
        raise UnreadableResult(
            "does not say which speculative method the server ran: give `method` (and `k`) beside `files`"
        )
    if (method == BASELINE) != (not k):
        raise UnreadableResult(f"method {method} with k {k}: `none` has no k, every other method needs one")
    server = Server.from_axes({**axes, "method": method, "k": k or 0})
    return Cell(server, str(axes["scenario"]), result.concurrency, int(axes.get("repeat") or result.repeat))


def _record(path: Path, tool: str, result: Result, cell: Cell) -> Record:
    counts = {name: result.values[name] for name in COUNTS}
    if not counts["completed"]:
        record = failed_record(cell, nothing_completed(counts["requests"]), counts)
    else:
        record = blank_record(cell, MEASURED, _incomplete(counts), "") | dict(result.values)
        if cell.server.method in VARIABLE_K_METHODS and counts["completed"] == counts["requests"]:
            record |= _with_all_steps(record)
        record["absent"] = absent_words(record, result.reasons, _NOT_TOLD)
        record["notes"] = [f"measured by {tool}, not by this workflow: {path.name}", *result.notes]
    if record["acceptance_length"] is not None:
        record["acceptance_source"] = tool
    return record | {"evidence": str(path), "started_at": result.started_at}


def _with_all_steps(record: Record) -> Record:
    """What a method that skips drafts put out per step, lucky drafts and all others (F25)."""
    tokens, drafts = record["completion_tokens"], record["drafts"]
    if tokens is None or drafts is None:
        return {}
    # A request's first token comes from its prefill.
    steps = effective_tokens(tokens - record["completed"], record["accepted_tokens"], drafts)
    return {"tokens_per_step": steps.tokens_per_step, "draft_coverage": steps.coverage}


def _incomplete(counts: Mapping[str, object]) -> list[str]:
    if counts["completed"] == counts["requests"]:
        return []
    return [f"{counts['completed']} of {counts['requests']} requests completed"]
