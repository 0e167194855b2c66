import os
import sys
import time

import pytest

from scripts.lib import diagnosis
from scripts.lib.launch import Launch
from scripts.lib.server_process import LogWatch, ServerProcess, last_words


def test_the_log_has_stdout_and_stderr_in_order_and_no_stdin(tmp_path):
    code = "import sys\nfor i in range(6): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)\n"
    code += "print(repr(sys.stdin.read()))"
    launch = Launch("vllm", "process", (sys.executable, "-c", code, "{port}"))
    server = ServerProcess.start(launch, tmp_path / "server.log", tmp_path, tmp_path)
    while server.exit_status is None:
        time.sleep(0.02)
    server.stop(1)
    assert (tmp_path / "server.log").read_text().split() == ["0", "1", "2", "3", "4", "5", "''"]
    assert server.exit_status == 0


def test_an_engine_that_is_not_installed(tmp_path):
    server = ServerProcess.start(
        Launch("vllm", "process", ("no-such-engine",)), tmp_path / "l", tmp_path, tmp_path
    )
    while server.exit_status is None:
        time.sleep(0.02)
    assert server.exit_status == 127
    assert "cannot start no-such-engine" in (tmp_path / "l").read_text()
    failure = diagnosis.died(tmp_path / "l", 127, "startup")
    assert failure.failure_class == "access"
    assert "cannot be started on this machine" in failure.cause
    server.stop(1)


def test_stop_twice(tmp_path):
    server = ServerProcess.start(
        Launch("vllm", "process", ("sleep", "60")), tmp_path / "l", tmp_path, tmp_path
    )
    server.stop(1)
    server.stop(1)
    assert server.exit_status == 128 + 15


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("scripts.lib.server_process.time.monotonic", clock)
    return clock


def test_only_news_is_movement(tmp_path, clock):
    log = tmp_path / "log"
    watch = LogWatch(log)
    clock.now = 5
    assert watch.still_for() == 5, "no log yet"
    log.write_text("INFO 11-29 18:22:15 [a.py:1] loading\n")
    assert watch.still_for() == 0
    clock.now = 9
    with log.open("a") as file:
        file.write("INFO 11-29 18:22:19 [a.py:1] loading\n")
        file.write('(APIServer pid=1) INFO:     127.0.0.1:40440 - "GET /health HTTP/1.1" 503\n')
    assert watch.still_for() == 0, "the first health check is news"
    clock.now = 12
    with log.open("a") as file:
        file.write('(APIServer pid=1) INFO:     127.0.0.1:51234 - "GET /health HTTP/1.1" 503\n')
        file.write("INFO 11-29 18:22:22 [a.py:1] loading\n")
    assert watch.still_for() == 3, "the same lines again are not"
    with log.open("a") as file:
        file.write("shards:  25% | 2/8\rshards:  50% | 4/8")
    assert watch.still_for() == 0, "a progress bar that moves is"


def test_last_words(tmp_path):
    log = tmp_path / "log"
    assert last_words(log) == ""
    log.write_bytes(
        b"INFO 11-29 18:22:15 [a.py:1] one\n" + b"x" * 5000 + b"\nINFO 11-29 18:22:15 [a.py:1] two\r\n\n"
    )
    assert last_words(log) == "two"
    assert len(last_words(log, 2)) <= 2
    os.truncate(log, 0)
    assert last_words(log) == ""
