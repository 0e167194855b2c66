"""The first completions of a started server, against the fake server and against answers that are none."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scripts.lib import gate, probe
from scripts.lib.first_answers import FirstAnswers, answer
from tests.fake_server.running import serving

LIMIT_S = 20.0


def asked(server, gated=True, timeout_s=LIMIT_S):
    first = FirstAnswers(f"http://127.0.0.1:{server.port}/v1", timeout_s, None, gated)
    until = time.monotonic() + LIMIT_S
    while first.pending and time.monotonic() < until:
        time.sleep(0.01)
    assert not first.pending
    return first


def fault(kind, **parameters):
    return {"ttft_s": 0.01, "step_s": 0.001, "faults": [{"kind": kind, **parameters}]}


def test_three_answers_one_after_another(tmp_path):
    with serving(tmp_path, {"ttft_s": 0.01, "step_s": 0.001}, "toy") as server:
        first = asked(server)
        assert server.log().count("POST /v1/chat/completions") == 3
    assert first.error is None
    assert (first.model, first.tokens) == ("toy", gate.MAX_TOKENS)
    assert len(first.answers) == 3
    assert gate.verdict(first.answers) is None


def test_without_the_gate_one_answer_is_enough(tmp_path):
    with serving(tmp_path, {"ttft_s": 0.01, "step_s": 0.001}, "toy") as server:
        first = asked(server, gated=False)
    assert len(first.answers) == 1
    assert first.answered_s is not None


def test_a_server_that_fails_at_the_first_request(tmp_path):
    with serving(tmp_path, fault("http_500"), "toy") as server:
        first = asked(server)
    assert isinstance(first.error, probe.Refused)
    assert (first.tokens, first.answered_s, first.answers) == (None, None, [])


def test_a_server_that_fails_at_a_later_request_was_ready(tmp_path):
    with serving(tmp_path, fault("http_500", from_request=2), "toy") as server:
        first = asked(server)
    assert first.tokens == gate.MAX_TOKENS
    assert first.answered_s is not None
    assert len(first.answers) == 1
    assert isinstance(first.error, probe.Refused)


@contextmanager
def answering(body: object):
    """A server whose completions are `body`, whatever is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send({"data": [{"id": "toy"}]})

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self._send(body)

        def _send(self, data):
            text = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def completion(message, tokens=12):
    return {"choices": [{"message": message}], "usage": {"completion_tokens": tokens}}


@pytest.mark.parametrize(
    "body",
    [{}, {"choices": []}, {"choices": [{"message": None}]}, {"choices": [{}], "usage": {}}, [], None],
    ids=repr,
)
def test_what_is_no_completion_is_an_error_not_a_crash(body):
    with answering(body) as server:
        first = asked(server)
    assert isinstance(first.error, ValueError)
    assert first.answers == []


def test_a_completion_without_a_token_is_an_error():
    with answering(completion({"content": ""}, tokens=0)) as server:
        first = asked(server)
    assert "without a token" in str(first.error)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "A bridge."}, "A bridge."),
        ({"content": None, "reasoning": "Let me think."}, "Let me think."),
        ({"content": "A bridge.", "reasoning_content": "Think."}, "Think. A bridge."),
        ({"content": "", "reasoning": "Think.", "reasoning_content": "Think."}, "Think."),
        ({"content": None}, ""),
    ],
)
def test_reasoning_counts_as_what_was_said(message, text):
    with answering(completion(message)) as server:
        said = answer(f"http://127.0.0.1:{server.port}/v1", "toy", "Why?", LIMIT_S, None)
    assert said == (text, 12)
