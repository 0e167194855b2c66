"""The load generator: a closed loop of workers that drain a list of streamed chat completions.

Inside the timed window it only stamps and stores the bytes that arrive; parsing them comes after the last request, so that
the client's own work stays out of the latencies it reports. Times are seconds of one monotonic clock that starts with the phase.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import openai

from scripts.lib.scenario import Request

_CONNECT_S = 10.0


@dataclass(frozen=True)
class RequestRecord:
    """One request as it went. Token counts are the server's usage; None where it sent none.

    `chunk_s` are arrival times of chunks with text, `chunk_tokens` their token counts where the server tells token ids.
    Under speculation a chunk carries several tokens: gaps between chunks are no inter-token latencies.
    """

    phase: str
    index: int
    prompt_id: str
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


@dataclass
class _Arrivals:
    """Raw bytes of one answer with their arrival times."""

    worker: int
    start_s: float
    end_s: float = 0.0
    blocks: list[tuple[float, bytes]] = field(default_factory=list)
    error: dict[str, object] | None = None


@dataclass(frozen=True)
class Target:
    """Where requests go and how long to wait: `stall_s` without a byte or `request_s` in all fails a request."""

    base_url: str
    model: str
    api_key: str
    request_s: float
    stall_s: float
    token_ids: bool
    """Ask for token ids per chunk (vLLM's return_token_ids)."""


async def run_phase(
    target: Target, phase: str, requests: Sequence[Request], concurrency: int
) -> tuple[list[RequestRecord], float]:
    """Send all `requests` with `concurrency` workers; returns their records by index and the wall time in seconds.

    Failed requests are records with an error, never exceptions. Cancelling it cancels the requests in flight.
    """
    client = openai.AsyncOpenAI(
        base_url=target.base_url,
        api_key=target.api_key,
        max_retries=0,
        timeout=openai.Timeout(target.request_s, connect=_CONNECT_S, read=target.stall_s, pool=None),
    )
    queue = iter(requests)
    arrivals: dict[int, _Arrivals] = {}
    zero = time.perf_counter()

    async def work(worker: int) -> None:
        for request in queue:
            arrival = _Arrivals(worker, time.perf_counter() - zero)
            arrivals[request.index] = arrival
            await _send(client, target, request, arrival, zero)
            arrival.end_s = time.perf_counter() - zero

    async with client, asyncio.TaskGroup() as group:
        for worker in range(min(concurrency, len(requests))):
            group.create_task(work(worker))
    wall_s = time.perf_counter() - zero
    return [_record(phase, request, arrivals[request.index]) for request in requests], wall_s


async def _send(
    client: openai.AsyncOpenAI, target: Target, request: Request, arrival: _Arrivals, zero: float
) -> None:
    extra = request.body.get("extra_body", {}) | ({"return_token_ids": True} if target.token_ids else {})
    arguments = request.body | {"extra_body": extra}
    try:
        async with (
            asyncio.timeout(target.request_s),
            client.chat.completions.with_streaming_response.create(
                model=target.model, stream=True, stream_options={"include_usage": True}, **arguments
            ) as response,
        ):
            async for block in response.iter_bytes():
                arrival.blocks.append((time.perf_counter() - zero, block))
    except openai.APIStatusError as error:
        arrival.error = {"type": "http", "message": _short(error.message), "status": error.status_code}
    except (TimeoutError, openai.APITimeoutError):
        arrival.error = {"type": "timeout", "message": _timeout_words(target, arrival), "status": None}
    except Exception as error:  # noqa: BLE001 - the transport raises its own kinds; each of them is a failed request
        kind = "timeout" if "timeout" in type(error).__name__.lower() else "connection"
        message = (
            _timeout_words(target, arrival)
            if kind == "timeout"
            else _short(f"{type(error).__name__}: {error}")
        )
        arrival.error = {"type": kind, "message": message, "status": None}


def _timeout_words(target: Target, arrival: _Arrivals) -> str:
    last = arrival.blocks[-1][0] if arrival.blocks else None
    seen = "no answer" if last is None else f"silent since {last - arrival.start_s:.1f} s after the request"
    return f"gave up after {target.stall_s:g} s without a byte or {target.request_s:g} s in all ({seen})"


def _short(text: object, width: int = 500) -> str:
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


def _record(phase: str, request: Request, arrival: _Arrivals) -> RequestRecord:
    answer = _Answer()
    for arrived_s, data in events(arrival.blocks):
        answer.take(arrived_s, data)
    error = arrival.error or answer.error or answer.incomplete()
    if arrival.error and arrival.error["type"] == "connection" and answer.chunk_s:
        error = answer.incomplete() | {"cause": arrival.error["message"]}
    return RequestRecord(
        phase=phase,
        index=request.index,
        prompt_id=request.prompt_id,
        worker=arrival.worker,
        start_s=round(arrival.start_s, 6),
        first_token_s=answer.chunk_s[0] if answer.chunk_s else None,
        last_token_s=answer.chunk_s[-1] if answer.chunk_s else None,
        end_s=round(arrival.end_s, 6),
        prompt_tokens=answer.usage.get("prompt_tokens"),
        completion_tokens=answer.usage.get("completion_tokens"),
        chunk_s=answer.chunk_s,
        chunk_tokens=answer.chunk_tokens if answer.counted else None,
        finish_reason=answer.finish_reason,
        error=error,
        output="".join(answer.text),
    )


class _Answer:
    """What the events of one streamed answer say."""

    def __init__(self) -> None:
        self.chunk_s: list[float] = []
        self.chunk_tokens: list[int] = []
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
            self.error = {"type": "stream", "message": f"not JSON: {_short(data, 100)}", "status": None}
            return
        if event.get("error"):
            inner = event["error"]
            message = inner.get("message", inner) if isinstance(inner, dict) else inner
            status = inner.get("code") if isinstance(inner, dict) else None
            self.error = {"type": "stream", "message": _short(message), "status": status}
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
        self.counted = self.counted or token_ids is not None
        self.text.append(text)

    def incomplete(self) -> dict[str, object] | None:
        """The error of a stream that ended without its end; None for a complete one."""
        if self.done and self.finish_reason:
            return None
        seen = f"{len(self.chunk_s)} chunks" if self.chunk_s else "no text"
        return {"type": "stream", "message": f"the stream was closed early, after {seen}", "status": None}
