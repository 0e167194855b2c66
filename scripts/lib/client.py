"""The load generator: a closed loop of workers that drain a list of streamed chat completions.

Inside the timed window it only stamps and stores the bytes that arrive; parsing them comes after the last request, so that
the client's own work stays out of the latencies it reports. Times are seconds of one monotonic clock that starts with the phase.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import openai

from scripts.lib.client_load import ClientLoad, LoadMeter, no_collection
from scripts.lib.scenario import Request

_CONNECT_S = 10.0
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


@dataclass
class _Arrivals:
    """Raw bytes of one answer with their arrival times; `end_s` is None while it is on its way."""

    worker: int
    start_s: float
    end_s: float | None = None
    blocks: list[tuple[float, bytes]] = field(default_factory=list)
    error: dict[str, object] | None = None


class ClosedLoop:
    """One phase of a cell: `requests` sent by `concurrency` workers. What was sent stays readable when it is cancelled."""

    def __init__(self, target: Target, name: str, requests: Sequence[Request], concurrency: int):
        self._target, self._name = target, name
        self._requests, self._concurrency = requests, min(concurrency, len(requests))
        self._arrivals: dict[int, _Arrivals] = {}
        self._meter = LoadMeter()
        self.load: ClientLoad | None = None
        """The client's own part; None until the phase has run to its end."""

    @property
    def answered(self) -> int:
        """How many requests have come to an end so far."""
        return sum(arrival.end_s is not None for arrival in self._arrivals.values())

    async def run(self) -> None:
        """Send everything. Failed requests are records with an error, never exceptions."""
        async with openai.AsyncOpenAI(
            base_url=self._target.base_url,
            api_key=self._target.api_key,
            max_retries=0,
            timeout=openai.Timeout(
                self._target.request_s, connect=_CONNECT_S, read=self._target.stall_s, pool=None
            ),
            # Servers are on loopback or named by the user: a proxy of the environment must not come between.
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
        ) as client:
            # Opens the connections and loads what openai loads at its first use, before the window.
            await asyncio.gather(
                *(client.models.list() for _ in range(self._concurrency)), return_exceptions=True
            )
            queue = iter(self._requests)
            with no_collection(), self._meter:
                async with asyncio.TaskGroup() as group:
                    for worker in range(self._concurrency):
                        group.create_task(self._work(client, worker, queue))
        self.load = self._meter.load

    async def _work(self, client: openai.AsyncOpenAI, worker: int, queue: Iterator[Request]) -> None:
        for request in queue:
            arrival = self._arrivals[request.index] = _Arrivals(worker, self._clock())
            await self._send(client, request, arrival)
            arrival.end_s = self._clock()

    def _clock(self) -> float:
        return time.perf_counter() - self._meter.began_s

    async def _send(self, client: openai.AsyncOpenAI, request: Request, arrival: _Arrivals) -> None:
        extra = request.body.get("extra_body", {}) | (
            {"return_token_ids": True} if self._target.token_ids else {}
        )
        arguments = request.body | {"extra_body": extra}
        try:
            async with (
                asyncio.timeout(self._target.request_s),
                client.chat.completions.with_streaming_response.create(
                    model=self._target.model, stream=True, stream_options={"include_usage": True}, **arguments
                ) as response,
            ):
                async for block in response.iter_bytes():
                    arrival.blocks.append((self._clock(), block))
        except openai.APIStatusError as error:
            arrival.error = {"type": "http", "message": _short(error.message), "status": error.status_code}
        except Exception as error:  # noqa: BLE001 - the transport raises its own kinds; each is a failed request
            late = isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower()
            message = self._timeout_words(arrival) if late else _short(f"{type(error).__name__}: {error}")
            arrival.error = {"type": "timeout" if late else "connection", "message": message, "status": None}

    def _timeout_words(self, arrival: _Arrivals) -> str:
        last = arrival.blocks[-1][0] if arrival.blocks else None
        seen = (
            "no answer" if last is None else f"silent since {last - arrival.start_s:.1f} s after the request"
        )
        return f"gave up after {self._target.stall_s:g} s without a byte or {self._target.request_s:g} s in all ({seen})"

    def records(self) -> list[RequestRecord]:
        """What became of every request that was sent, by index; one still on its way has failed."""
        return [
            _record(self._name, request, self._arrivals[request.index], self._clock())
            for request in self._requests
            if request.index in self._arrivals
        ]


async def run_phase(
    target: Target, name: str, requests: Sequence[Request], concurrency: int
) -> tuple[list[RequestRecord], ClientLoad]:
    """Run a phase to its end: its records by index, and what the client itself took in the window from the first request to
    the last answer."""
    loop = ClosedLoop(target, name, requests, concurrency)
    await loop.run()
    return loop.records(), loop.load


def _digest(body: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:_DIGITS]


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


def _record(phase: str, request: Request, arrival: _Arrivals, now_s: float) -> RequestRecord:
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
        self.token_ids += token_ids or ()
        self.counted = self.counted or token_ids is not None
        self.text.append(text)

    def incomplete(self) -> dict[str, object] | None:
        """The error of a stream that ended without its end; None for a complete one."""
        if self.done and self.finish_reason:
            return None
        seen = f"{len(self.chunk_s)} chunks" if self.chunk_s else "no text"
        return {"type": "stream", "message": f"the stream was closed early, after {seen}", "status": None}
