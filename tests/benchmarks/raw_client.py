"""The cheapest client there is: blocking sockets and epoll. Its figures show how exact the fake server itself is."""

from __future__ import annotations

import json
import select
import socket
import time
from dataclasses import dataclass, field

_END = b"0\r\n\r\n"
_EVENT = b"data:"


@dataclass
class RawRequest:
    """Times of one request on time.perf_counter's clock, in seconds."""

    start_s: float
    first_token_s: float | None = None
    end_s: float = 0.0


@dataclass
class _Worker:
    connection: socket.socket
    left: list[bytes]
    done: list[RawRequest] = field(default_factory=list)

    def send(self) -> None:
        message = self.left.pop()
        self.done.append(RawRequest(time.perf_counter()))
        self.connection.sendall(message)

    def take(self) -> bool:
        """Read what is there; whether the last request has come to its end."""
        data = self.connection.recv(65536)
        now_s = time.perf_counter()
        request = self.done[-1]
        if request.first_token_s is None and _EVENT in data:
            request.first_token_s = now_s
        # An answer's last bytes come in one piece from the fake server.
        if not data.endswith(_END):
            return not data
        request.end_s = now_s
        if self.left:
            self.send()
            return False
        return True


def run(port: int, bodies: list[dict], concurrency: int) -> list[RawRequest]:
    """Send streamed chats to the fake server on `port` in a closed loop; what became of each."""
    messages = [_message(body) for body in bodies]
    poll = select.epoll()
    workers: dict[int, _Worker] = {}
    for number in range(concurrency):
        connection = socket.create_connection(("127.0.0.1", port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        workers[connection.fileno()] = _Worker(connection, messages[number::concurrency])
        poll.register(connection.fileno(), select.EPOLLIN)
    for worker in workers.values():
        worker.send()
    running = set(workers)
    while running:
        for number, _ in poll.poll():
            if workers[number].take():
                poll.unregister(number)
                running.discard(number)
    poll.close()
    for worker in workers.values():
        worker.connection.close()
    return [request for worker in workers.values() for request in worker.done]


def _message(body: dict) -> bytes:
    data = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data
