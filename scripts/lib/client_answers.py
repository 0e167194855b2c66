"""What became of each request: its record from the raw bytes of its answer. Pure; it runs after the timed window."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scripts.lib.scenario import Request

_DIGITS = 16


@dataclass(frozen=True)
class RequestRecord:
    """One request as it went. Token counts are the server's usage; None where it sent none.

    `chunk_s` are arrival times of chunks with text, `chunk_tokens` their token counts where the server tells token ids.
    Under speculation a chunk carries several tokens: gaps between chunks are no inter-token latencies. `token_ids` are those
    of the answer, None where the server tells none; `request_sha256` is alike for requests with the same body.
    """

    phase: str
    index: int
    prompt_id: str
    request_sha256: str
    worker: int
    start_s: float
    first_token_s: float | None
    last_token_s: float | None
    end_s: float
    prompt_tokens: int | None
    completion_tokens: int | None
    chunk_s: list[float]
    chunk_tokens: list[int] | None
    finish_reason: str | None
    error: dict[str, object] | None
    output: str
    token_ids: list[int] | None


@dataclass
class Arrivals:
    """Raw bytes of one answer with their arrival times. `worker` and `start_s` are None before the request was sent, `end_s`
    before the answer has ended."""

    worker: int | None = None
    start_s: float | None = None
    end_s: float | None = None
    blocks: list[tuple[float, bytes]] = field(default_factory=list)
    error: dict[str, object] | None = None


def _digest(body: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def short(text: object, width: int = 500) -> str:
    return str(text)[:width]


def events(blocks: Sequence[tuple[float, bytes]]) -> list[tuple[float, str]]:
    """Server-sent events: (arrival of the event's last byte, data) for every `data:` line, however the bytes were cut."""
    found: list[tuple[float, str]] = []
    rest = b""
    for arrived_s, block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                found.append((arrived_s, line[5:].strip().decode("utf-8", errors="replace")))
    return found


def record_of(phase: str, request: Request, arrival: Arrivals, now_s: float) -> RequestRecord:
    """The record of a request that was sent; `now_s` ends one that is still on its way."""
    answer = _Answer()
    for arrived_s, data in events(arrival.blocks):
        answer.take(arrived_s, data)
    error = arrival.error or answer.error or answer.incomplete()
    if arrival.error and arrival.error["type"] == "connection" and answer.chunk_s:
        # Broken off in the middle of an answer; a complete one counts, whatever the connection did afterwards.
        early = answer.incomplete()
        error = answer.error or (early and early | {"cause": arrival.error["message"]})
    return RequestRecord(
        phase=phase,
        index=request.index,
        prompt_id=request.prompt_id,
        request_sha256=_digest(request.body),
        worker=arrival.worker,
        start_s=round(arrival.start_s, 6),
        first_token_s=answer.chunk_s[0] if answer.chunk_s else None,
        last_token_s=answer.chunk_s[-1] if answer.chunk_s else None,
        end_s=round(now_s if arrival.end_s is None else arrival.end_s, 6),
        prompt_tokens=answer.usage.get("prompt_tokens"),
        completion_tokens=answer.usage.get("completion_tokens"),
        chunk_s=answer.chunk_s,
        chunk_tokens=answer.chunk_tokens if answer.counted else None,
        finish_reason=answer.finish_reason,
        error=error,
        output="".join(answer.text),
        token_ids=answer.token_ids if answer.counted else None,
    )


class _Answer:
    """What the events of one streamed answer say."""

    def __init__(self) -> None:
        self.chunk_s: list[float] = []
        self.chunk_tokens: list[int] = []
        self.token_ids: list[int] = []
        self.counted = False
        self.text: list[str] = []
        self.usage: dict[str, int] = {}
        self.finish_reason: str | None = None
        self.error: dict[str, object] | None = None
        self.done = False

    def take(self, arrived_s: float, data: str) -> None:
        if data == "[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
        except ValueError:
            self.error = {"type": "stream", "message": f"not JSON: {short(data, 100)}", "status": None}
            return
        if event.get("error"):
            inner = event["error"]
            message = inner.get("message", inner) if isinstance(inner, dict) else inner
            status = inner.get("code") if isinstance(inner, dict) else None
            self.error = {"type": "stream", "message": short(message), "status": status}
        if event.get("usage"):
            self.usage = event["usage"]
        for choice in event.get("choices") or ():
            self._take_choice(arrived_s, choice)

    def _take_choice(self, arrived_s: float, choice: dict) -> None:
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        delta = choice.get("delta") or {}
        text = delta.get("content") or delta.get("reasoning") or delta.get("reasoning_content") or ""
        token_ids = choice.get("token_ids")
        if not text and not token_ids:
            return
        self.chunk_s.append(round(arrived_s, 6))
        self.chunk_tokens.append(len(token_ids or ()))
        self.token_ids += token_ids or ()
        self.counted = self.counted or token_ids is not None
        self.text.append(text)

    def incomplete(self) -> dict[str, object] | None:
        """The error of a stream that ended without its end; None for a complete one."""
        if self.done and self.finish_reason:
            return None
        seen = f"{len(self.chunk_s)} chunks" if self.chunk_s else "no text"
        return {"type": "stream", "message": f"the stream was closed early, after {seen}", "status": None}
