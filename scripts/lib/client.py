"""The load generator: a closed loop of workers that drain a list of streamed chat completions.

Every request is built by openai's client before the timed window and held at the door of the network until a worker is free.
Inside the window the bytes that arrive are only stamped and stored; parsing them comes after the last request. So the client's own
work stays out of the latencies it reports (docs/client.md). Times are seconds of one monotonic clock that starts with the phase.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx2
import openai

from scripts.lib.client_answers import Arrivals, RequestRecord, record_of, short
from scripts.lib.client_load import ClientLoad, LoadMeter, no_collection
from scripts.lib.scenario import Request

_CONNECT_S = 10.0
_TURNS_TO_SEND = 4
"""Of the event loop, from a request's departure until its last byte is with the kernel."""


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


@dataclass(eq=False)
class _Held:
    """A request on its way through openai's client, and what has arrived of its answer."""

    request: Request
    arrival: Arrivals = field(default_factory=Arrivals)
    built: asyncio.Event = field(default_factory=asyncio.Event)
    free: asyncio.Event = field(default_factory=asyncio.Event)
    limit: asyncio.Timeout | None = None
    """Of the whole request; it runs from its departure."""


_HELD: ContextVar[_Held | None] = ContextVar("_HELD", default=None)
"""The request that the running task sends."""


class ClosedLoop:
    """One phase of a cell: `requests` sent by `concurrency` workers. What was sent stays readable when it is cancelled."""

    def __init__(self, target: Target, name: str, requests: Sequence[Request], concurrency: int):
        self._target, self._name = target, name
        self._requests, self._concurrency = requests, min(concurrency, len(requests))
        self._held: list[_Held] = []
        self._next: deque[_Held] = deque()
        self._meter = LoadMeter()
        self.load: ClientLoad | None = None
        """The client's own part; None until the phase has run to its end."""

    @property
    def answered(self) -> int:
        """How many requests have come to an end so far."""
        return sum(held.arrival.end_s is not None for held in self._held)

    async def run(self) -> None:
        """Send everything. Failed requests are records with an error, never exceptions."""
        async with self._client() as client, asyncio.TaskGroup() as group:
            await _connect(client, 1)  # loads what openai loads at its first use
            self._held = [_Held(request) for request in self._requests]
            self._next = deque(self._held)
            tasks = [group.create_task(self._send(client, held)) for held in self._held]
            for held in self._held:
                await held.built.wait()
            await _connect(client, self._concurrency)
            with no_collection(), self._meter:
                for worker in range(self._concurrency):
                    self._depart(worker)
                    # Requests that leave in one turn of the loop would wait for each other, the clocks of all running.
                    for _ in range(_TURNS_TO_SEND):
                        await asyncio.sleep(0)
                if tasks:
                    await asyncio.wait(tasks)
        self.load = self._meter.load

    def _client(self) -> openai.AsyncOpenAI:
        timeout = openai.Timeout(
            self._target.request_s, connect=_CONNECT_S, read=self._target.stall_s, pool=None
        )
        room = max(1, self._concurrency)
        # A C parser takes a chunk in a third of the time that httpx's own transport needs (docs/decisions).
        http_client = openai.DefaultAioHttpClient(
            # Servers are on loopback or named by the user: a proxy of the environment must not come between.
            trust_env=False,
            limits=httpx2.Limits(max_connections=room, max_keepalive_connections=room),
            event_hooks={"request": [self._hold]},
        )
        return openai.AsyncOpenAI(
            base_url=self._target.base_url,
            api_key=self._target.api_key,
            max_retries=0,
            timeout=timeout,
            # What a proxy compresses it holds back, and chunks come late and together.
            default_headers={"Accept-Encoding": "identity"},
            http_client=http_client,
        )

    def _depart(self, worker: int) -> None:
        """This worker is free: let it have the next request."""
        if self._next:
            held = self._next.popleft()
            held.arrival.worker = worker
            held.free.set()

    async def _turn(self, held: _Held) -> None:
        held.built.set()
        await held.free.wait()
        held.arrival.start_s = self._clock()

    async def _hold(self, _: httpx2.Request) -> None:
        """Called with a finished request just before it is sent."""
        held = _HELD.get()
        if held is not None and not held.built.is_set():
            await self._turn(held)
            held.limit.reschedule(asyncio.get_running_loop().time() + self._target.request_s)

    def _clock(self) -> float:
        return time.perf_counter() - self._meter.began_s

    async def _send(self, client: openai.AsyncOpenAI, held: _Held) -> None:
        _HELD.set(held)
        arrival = held.arrival
        try:
            async with asyncio.timeout(None) as held.limit:
                await self._stream(client, held)
        except openai.APIStatusError as error:
            arrival.error = {"type": "http", "message": short(error.message), "status": error.status_code}
        except Exception as error:  # noqa: BLE001 - the transport raises its own kinds; each is a failed request
            arrival.error = self._failure(arrival, error)
        if not held.built.is_set():  # it could not even be built: it fails when its turn comes
            await self._turn(held)
        if arrival.end_s is None:
            arrival.end_s = self._clock()
        self._depart(arrival.worker)

    async def _stream(self, client: openai.AsyncOpenAI, held: _Held) -> None:
        body = held.request.body
        extra = body.get("extra_body", {}) | ({"return_token_ids": True} if self._target.token_ids else {})
        arguments = body | {"extra_body": extra}
        arrival = held.arrival
        async with client.chat.completions.with_streaming_response.create(
            model=self._target.model, stream=True, stream_options={"include_usage": True}, **arguments
        ) as response:
            async for block in response.iter_bytes():
                arrival.blocks.append((self._clock(), block))
            arrival.end_s = self._clock()

    def _failure(self, arrival: Arrivals, error: Exception) -> dict[str, object]:
        chain = list(_causes(error))
        late = any(isinstance(link, TimeoutError) for link in chain)
        message = self._timeout_words(arrival) if late else f"{type(chain[-1]).__name__}: {chain[-1]}"
        return {"type": "timeout" if late else "connection", "message": short(message), "status": None}

    def _timeout_words(self, arrival: Arrivals) -> str:
        last = arrival.blocks[-1][0] if arrival.blocks else None
        seen = (
            "no answer" if last is None else f"silent since {last - arrival.start_s:.1f} s after the request"
        )
        return f"gave up after {self._target.stall_s:g} s without a byte or {self._target.request_s:g} s in all ({seen})"

    def records(self) -> list[RequestRecord]:
        """What became of every request that was sent, by index; one still on its way has failed."""
        return [
            record_of(self._name, held.request, held.arrival, self._clock())
            for held in self._held
            if held.arrival.start_s is not None
        ]


async def run_phase(
    target: Target, name: str, requests: Sequence[Request], concurrency: int
) -> tuple[list[RequestRecord], ClientLoad]:
    """Run a phase to its end: its records by index, and what the client itself took in the window from the first request to
    the last answer."""
    loop = ClosedLoop(target, name, requests, concurrency)
    await loop.run()
    return loop.records(), loop.load


async def _connect(client: openai.AsyncOpenAI, connections: int) -> None:
    """Open so many connections; what becomes of the answers does not matter."""
    await asyncio.gather(*(client.models.list() for _ in range(connections)), return_exceptions=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, down to the first."""
    while error is not None:
        yield error
        error = error.__cause__
