"""Reading the evidence of one cell: what the measuring job left in one folder of the cell store.

    manifest.json         cell, key, status (measured | failed), failure, window, server, boot, host, times
    requests.jsonl        one request per line, warm-up and measured phase
    device.jsonl          the server's GPUs, twice a second around the window (absent where nothing could be read)
    metrics_before.prom   /metrics around the window (absent where the server has none)
    metrics_after.prom
    server.log.gz         from boot start to after the window (absent for a server whose log is elsewhere)
    SHA256SUMS            over all of them

Nothing here interprets: record.py turns evidence into a record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic_core import from_json

from scripts.lib.store import damage, read_manifest

FORMAT = 1
REQUESTS = "requests.jsonl"
DEVICE = "device.jsonl"
METRICS_BEFORE = "metrics_before.prom"
METRICS_AFTER = "metrics_after.prom"
LOG = "server.log.gz"
WARMUP, MEASURE = "warmup", "measure"
_KEYS = {"cell", "key", "status", "failure", "window", "requests", "server", "boot", "host", "device"}
_KEYS |= {"workflow_commit", "started_at", "finished_at"}


class DamagedEvidence(ValueError):
    """The folder cannot be trusted; the message names the file and what is wrong with it."""


@dataclass(frozen=True)
class Request:
    """One request as the client saw it. Times in seconds on one clock that starts at zero with the phase.

    Token counts are the server's usage, None where it sent none; `chunks` is how many chunks carried tokens,
    None where the server does not tell token ids, and `largest_chunk` the most tokens in one of them; `chunk_s` is when
    each chunk with text or tokens came, in order, empty where the evidence does not say. `error` is None for a request that
    went well. `output` is the text of the answer, reasoning included, None where the evidence does not keep it, and
    `token_ids` its tokens where the server tells them; requests with one `request_sha256` asked for the same."""

    index: int
    start_s: float
    first_token_s: float | None
    end_s: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    chunks: int | None
    finish_reason: str | None
    error: Mapping[str, object] | None
    output: str | None = None
    prompt_id: str = ""
    request_sha256: str | None = None
    token_ids: tuple[int, ...] | None = None
    largest_chunk: int | None = None
    chunk_s: tuple[float, ...] = ()

    @property
    def completed(self) -> bool:
        """A stream that ended without a finish reason was cut short, whatever else it says."""
        return self.error is None and self.finish_reason is not None and self.end_s is not None

    @property
    def elapsed_s(self) -> float | None:
        return None if self.end_s is None else self.end_s - self.start_s

    @property
    def ttft_s(self) -> float | None:
        return None if self.first_token_s is None else self.first_token_s - self.start_s

    @property
    def complaint(self) -> str | None:
        """What went wrong in one line; None for a completed request."""
        if self.completed:
            return None
        if self.error is None:
            return "the stream ended without a finish reason"
        status = self.error.get("status")
        kind = str(self.error.get("type") or "error") + (f" (HTTP {status})" if status else "")
        message = " ".join(str(self.error.get("message") or "").split())
        return f"{kind}: {message}" if message else kind


@dataclass(frozen=True)
class Evidence:
    """One verified folder. Files that the server could not give are None."""

    folder: Path
    manifest: Mapping[str, object]
    warmup: tuple[Request, ...]
    measured: tuple[Request, ...]
    metrics_before: str | None
    metrics_after: str | None
    log: Path | None
    device_samples: tuple[Mapping[str, object], ...] = ()


def read_evidence(folder: Path) -> Evidence:
    """Verify and read one evidence folder.

    Raises DamagedEvidence for a missing, truncated or altered file and for a format this version does not
    know."""
    wrong = damage(folder)
    if wrong is not None:
        raise DamagedEvidence(wrong)
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        raise DamagedEvidence(f"manifest.json is no JSON ({error})") from error
    if manifest.get("format") != FORMAT:
        raise DamagedEvidence(
            f"manifest.json has format {manifest.get('format')!r}; this version reads {FORMAT}"
        )
    if missing := sorted(_KEYS - manifest.keys()):
        raise DamagedEvidence(f"manifest.json lacks {', '.join(missing)}")
    by_phase = _read_requests(folder / REQUESTS)
    log = folder / LOG
    return Evidence(
        folder=folder,
        manifest=manifest,
        warmup=tuple(by_phase[WARMUP]),
        measured=tuple(by_phase[MEASURE]),
        metrics_before=_text(folder / METRICS_BEFORE),
        metrics_after=_text(folder / METRICS_AFTER),
        log=log if log.exists() else None,
        device_samples=tuple(_lines(folder / DEVICE)),
    )


def read_answers(folder: Path, most: int) -> list[Request]:
    """The first `most` requests of the measured phase. Checksums are not looked at again: collecting did.

    Raises DamagedEvidence as read_evidence."""
    try:
        with (folder / REQUESTS).open("rb") as file:
            measured = (data for data in map(json.loads, file) if data["phase"] == MEASURE)
            return [_request(data) for data in islice(measured, most)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedEvidence(f"{REQUESTS} cannot be read ({error!r})") from error


def _lines(path: Path) -> list[Mapping[str, object]]:
    """The objects of a file of JSON lines; none for a missing file."""
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_bytes().splitlines()]
    except ValueError as error:
        raise DamagedEvidence(f"{path.name} has a line that is no JSON ({error})") from error


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None


def _read_requests(path: Path) -> dict[str, list[Request]]:
    """Requests by phase; a failed start leaves no such file, which is no damage."""
    by_phase: dict[str, list[Request]] = {WARMUP: [], MEASURE: []}
    if not path.exists():
        return by_phase
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            data = from_json(
                line
            )  # seven times as fast as json.loads, and most of the work of reading a cell
            by_phase[data["phase"]].append(_request(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedEvidence(f"{path.name} line {number} is no request record ({error!r})") from error
    return by_phase


def _request(data: Mapping[str, object]) -> Request:
    return Request(
        index=int(data["index"]),
        start_s=float(data["start_s"]),
        first_token_s=_optional(data["first_token_s"], float),
        end_s=_optional(data["end_s"], float),
        prompt_tokens=_optional(data["prompt_tokens"], int),
        completion_tokens=_optional(data["completion_tokens"], int),
        chunks=_optional(data["chunk_tokens"], len),
        finish_reason=data["finish_reason"],
        error=data["error"],
        prompt_id=data["prompt_id"],
        request_sha256=data.get("request_sha256"),
        output=data.get("output"),
        token_ids=_optional(data.get("token_ids"), tuple),
        largest_chunk=max(data["chunk_tokens"] or (), default=None),
        chunk_s=tuple(data.get("chunk_s") or ()),
    )


def _optional(value: object, kind: Callable[[object], float | int]) -> float | int | None:
    return None if value is None else kind(value)
