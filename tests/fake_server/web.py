"""HTTP/1.1 by hand: keep-alive, bodies with a length, JSON answers and chunked event streams."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from .precise import PreciseLoop

_MAX_HEAD_BYTES = 65536
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@dataclass(frozen=True)
class Request:
    """One HTTP request. `arrival` is the loop's time at its last byte."""

    method: str
    path: str
    body: bytes
    arrival: float

    def json(self) -> dict:
        """The body as a JSON object. Raises ValueError."""
        data = json.loads(self.body)
        if not isinstance(data, dict):
            raise ValueError("not an object")
        return data


class Connection(asyncio.Protocol):
    """One client connection; requests on it are served one after another."""

    def __init__(
        self,
        loop: PreciseLoop,
        handle: Callable[[Request, Connection], None],
        log_access: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._handle, self._log_access = handle, log_access
        self._buffer = b""
        self._request: Request | None = None
        self._keep_alive = True
        self._continued = False
        self.on_lost: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._write = self._transport.write
        # asyncio only does this for sockets whose protocol number is given, which an accepted one's is not.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = "{}:{}".format(*transport.get_extra_info("peername")[:2])

    def connection_lost(self, exc: Exception | None) -> None:
        if self.on_lost:
            self.on_lost()
            self.on_lost = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._request is None:
            self._next_request()

    def _next_request(self) -> None:
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            if len(self._buffer) > _MAX_HEAD_BYTES:
                self._transport.abort()
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        try:
            method, target, version = lines[0].split(" ")
            length = int(headers.get("content-length", "0"))
        except ValueError:
            self._transport.abort()
            return
        if len(rest) < length:
            if headers.get("expect", "").lower() == "100-continue" and not self._continued:
                self._continued = True
                self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        self._buffer, self._continued = rest[length:], False
        self._keep_alive = headers.get("connection", "").lower() != "close" and version == "HTTP/1.1"
        arrival = self._loop.woke
        self._request = Request(method, target.partition("?")[0], rest[:length], arrival)
        if "chunked" in headers.get("transfer-encoding", ""):
            self.respond(411, {"detail": "Length Required"})
        else:
            self._handle(self._request, self)

    def respond(self, status: int, body: dict | str | None = None) -> None:
        """A complete answer: a JSON object, plain text (for /metrics), or nothing."""
        data = (
            b""
            if body is None
            else (body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))).encode()
        )
        kind = "text/plain; version=0.0.4; charset=utf-8" if isinstance(body, str) else "application/json"
        typed = f"content-type: {kind}\r\n" if body is not None else ""
        phrase = HTTPStatus(status).phrase
        head = f"HTTP/1.1 {status} {phrase}\r\nserver: uvicorn\r\n{typed}content-length: {len(data)}\r\n\r\n"
        self._access(status)
        self._write(head.encode() + data)
        self._finish()

    def start_stream(self) -> None:
        """Head of an event stream; `events` follows any number of times, then `end_stream` or `drop`."""
        self._access(200)
        self._write(_STREAM_HEAD)

    def events(self, data: bytes) -> None:
        self._write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self, close: bool = False) -> None:
        self._keep_alive = self._keep_alive and not close
        self._write(b"0\r\n\r\n")
        self._finish()

    def drop(self) -> None:
        """Close the connection in the middle of whatever it was doing."""
        self.on_lost = None
        self._transport.close()

    def _access(self, status: int) -> None:
        request = self._request
        self._log_access(
            f'{self._peer} - "{request.method} {request.path} HTTP/1.1" {status} {HTTPStatus(status).phrase}'
        )

    def _finish(self) -> None:
        self._request = None
        self.on_lost = None
        if not self._keep_alive:
            self._transport.close()
        elif self._buffer:
            self._next_request()
