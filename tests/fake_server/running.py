"""Start the fake server in a test, talk to it, and be sure that it is gone afterwards."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import sglang_startup, vllm_startup
from .cli import SGLANG

COMMAND = [sys.executable, str(Path(__file__).resolve().parent)]


@dataclass
class Stream:
    """What one event stream delivered: its events, and when each came, in seconds since the request left."""

    status: int
    chunks: list[dict] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    done: bool = False
    broken: bool = False
    error: dict | None = None

    def add(self, event: bytes, arrival: float) -> None:
        if event == b"[DONE]":
            self.done = True
            return
        chunk = json.loads(event)
        if "error" in chunk:
            self.error = chunk
        else:
            self.chunks.append(chunk)
            self.times.append(arrival)

    @property
    def usage(self) -> dict | None:
        return self.chunks[-1].get("usage") if self.chunks else None

    @property
    def deltas(self) -> list[str]:
        """Text of each chunk that carries tokens."""
        return [_text(chunk) for chunk in self.token_chunks]

    @property
    def token_chunks(self) -> list[dict]:
        return [c for c in self.chunks if c["choices"] and "role" not in c["choices"][0].get("delta", {})]

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    @property
    def finish_reason(self) -> str | None:
        return next((c["choices"][0]["finish_reason"] for c in reversed(self.token_chunks)), None)

    @property
    def ttft_s(self) -> float:
        first = self.token_chunks[0]
        return self.times[self.chunks.index(first)]


def _text(chunk: dict) -> str:
    choice = chunk["choices"][0]
    return choice["delta"].get("content", "") if "delta" in choice else choice["text"]


@dataclass
class Server:
    """A running fake server."""

    process: subprocess.Popen
    log_path: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        found = re.search(r"(?:Starting vLLM server|Uvicorn running) on http://\S+?:(\d+)[ \n]", self.log())
        assert found, f"not started:\n{self.log()}"
        return int(found[1])

    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, timeout_s: float = 10) -> None:
        """Wait until the log holds `text`; fails when the server ends without having said it."""
        limit = time.monotonic() + timeout_s
        while text not in self.log():
            ended = self.process.poll() is not None
            assert text in self.log() or not ended, f"ended before {text!r}:\n{self.log()}"
            assert time.monotonic() < limit, f"no {text!r} within {timeout_s} s:\n{self.log()}"
            time.sleep(0.01)

    def get(self, path: str, port: int | None = None) -> tuple[int, str]:
        with self._connection(port) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def post(self, path: str, body: dict) -> tuple[int, dict]:
        with self._connection() as connection:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    def stream(self, path: str, body: dict, timeout_s: float = 30) -> Stream:
        """Send a streaming request and read it to whatever end it has."""
        with self._connection(timeout_s=timeout_s) as connection:
            connection.connect()
            started = time.perf_counter()
            text = json.dumps(body | {"stream": True})
            connection.request("POST", path, text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            stream = Stream(response.status)
            if response.status != 200:
                stream.error = json.loads(response.read())
                return stream
            try:
                self._read(response, stream, started)
            except (http.client.HTTPException, OSError):
                stream.broken = True
            return stream

    def chat(self, content: str, **fields: object) -> Stream:
        """A streamed chat at temperature 0 with usage."""
        body = {"messages": [{"role": "user", "content": content}], "temperature": 0}
        return self.stream(
            "/v1/chat/completions", body | {"stream_options": {"include_usage": True}} | fields
        )

    def metrics(self) -> dict[str, float]:
        """Samples of /metrics by name and labels, model_name and engine left out."""
        samples = {}
        for line in self.get("/metrics")[1].splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = re.sub(r'engine="0"|model_name="[^"]*"', "", name)
                samples[re.sub(r",+", ",", name).replace("{,", "{").replace(",}", "}").replace("{}", "")] = (
                    float(value)
                )
        return samples

    def stop(self, timeout_s: float = 10) -> int:
        """SIGTERM, and the exit code."""
        self.process.terminate()
        return self.process.wait(timeout_s)

    def _read(self, response: http.client.HTTPResponse, stream: Stream, started: float) -> None:
        # Not readline(), which takes a connection cut within the body for its end.
        buffer = b""
        while data := response.read1(65536):
            arrival = time.perf_counter() - started
            *events, buffer = (buffer + data).split(b"\n\n")
            for event in events:
                stream.add(event.removeprefix(b"data: "), arrival)

    def _connection(self, port: int | None = None, timeout_s: float = 30) -> contextlib.closing:
        return contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=timeout_s)
        )


@contextlib.contextmanager
def serving(
    folder: Path, behaviour: dict | None = None, *argv: str, ready: bool = True, **environ: str
) -> Iterator[Server]:
    """A fake server on a free port with its log in `folder`; everything of it is killed at the end.

    With `ready` it is waited for. Further arguments go on its command line, keywords into its environment.
    """
    log_path = folder / f"server-{time.monotonic_ns()}.log"
    sglang = argv[:1] == (SGLANG,)
    model = [SGLANG, "--model-path", "m"] if sglang else ["--model", "m"]
    command = [*COMMAND, *model, *([] if "--port" in argv else ["--port", "0"]), *argv[sglang:]]
    environment = {**os.environ, "FAKE_SERVER": json.dumps(behaviour or {}), **environ}
    with open(log_path, "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    server = Server(process, log_path)
    try:
        if ready:
            server.wait_for(sglang_startup.SERVING if sglang else vllm_startup.SERVING)
        yield server
    finally:
        process.kill()
        process.wait()
        _kill_children(process.pid)


def _kill_children(pid: int) -> None:
    limit = time.monotonic() + 5
    while children := children_of(pid):
        assert time.monotonic() < limit, f"engine processes {children} do not die"
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


def children_of(pid: int) -> list[int]:
    """Engine processes that fake server `pid` started and that still live, whoever their parent is now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if f"parent={pid}".encode() in words and any(w.startswith(b"VLLM::") for w in words):
                    found.append(int(entry.name))
    return found
