"""From a started server to one that may be measured, against the fake server."""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager

import pytest

from scripts.lib import readiness
from scripts.lib.endpoint import Failure
from scripts.lib.launch import Launch
from scripts.lib.readiness import Ready, Started
from scripts.lib.server_process import ServerProcess
from tests.fake_server.running import COMMAND

SANE = {"ttft_s": 0.001, "step_s": 0.001, "answers": {"bridge": "A bridge is for people to cross a river."}}


@contextmanager
def started(tmp_path, behaviour, *words, say=print, **changes):
    """A fake server on its way; `say` takes the lines for the console."""
    argv = (*COMMAND, *words, "--port", "{port}")
    limits = {"startup_limit_s": 20.0, "startup_stall_s": 5.0, "gate": False} | changes
    launch = Launch("vllm", "process", argv, {"FAKE_SERVER": json.dumps(behaviour)}, **limits)
    process = ServerProcess.start(launch, tmp_path / "server.log", tmp_path, tmp_path)
    try:
        yield Started(launch, process.base_url, process.log, process, None, say)
    finally:
        process.stop(2)


def test_a_server_that_serves(tmp_path):
    with started(tmp_path, SANE, "--model", "m") as server:
        ready = server.await_ready()
        assert isinstance(ready, Ready)
        assert ready.model == "m"
        assert ready.facts["version"] == "0.27.1"
        assert ready.facts["startup"]["ready_s"] == pytest.approx(ready.ready_s, abs=0.01)
        assert ready.facts["gate"] is None
        assert server.death("measure") is None


def test_sglang_s_slow_health_is_waited_for(tmp_path):
    with started(tmp_path, SANE, "sglang.launch_server", "--model-path", "m") as server:
        ready = server.await_ready()
        assert isinstance(ready, Ready), ready
        assert ready.facts["version"] == "0.5.15"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"kind": "die_at_start"}, "moe_backend='marlin' is not supported"),
        ({"kind": "http_500"}, "the first completion failed: HTTP 500"),
    ],
)
def test_a_server_that_does_not_serve(tmp_path, fault, words):
    with started(tmp_path, SANE | {"faults": [fault]}, "--model", "m") as server:
        failure = server.await_ready()
        assert isinstance(failure, Failure)
        assert words in f"{failure.cause} {failure.root_line}"
        assert failure.phase == "startup"


def test_a_start_that_takes_too_long_while_the_log_is_silent(tmp_path):
    stuck = SANE | {"faults": [{"kind": "never_ready", "log": False}]}
    limits = {"startup_limit_s": 0.5, "startup_stall_s": 0.3}
    with started(tmp_path, stuck, "--model", "m", **limits) as server:
        failure = server.await_ready()
        assert "/health did not answer" in failure.cause
        assert failure.retry


def test_what_the_console_is_told_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "_TELL_EVERY_S", 0.0)
    said = []
    slow = SANE | {"faults": [{"kind": "never_ready", "log": True}]}
    limits = {"startup_limit_s": 1.5, "startup_stall_s": 0.1}
    with started(tmp_path, slow, "--model", "m", say=said.append, **limits) as server:
        server.await_ready()
    assert said[0] == "starting, 0 s", "the log is empty"
    assert re.fullmatch(r"starting, [12] s: \S.*", said[-1])


def test_nonsense_is_no_server_to_time(tmp_path):
    babble = SANE | {"faults": [{"kind": "garbage_output", "mode": "repetition"}]}
    with started(tmp_path, babble, "--model", "m", gate=True) as server:
        ready = server.await_ready()
        assert (ready.refused.failure_class, ready.refused.phase) == ("infeasible", "gate")
        assert "nonsense" in ready.refused.cause
        assert len(ready.facts["gate"]) == 3, "what it said is kept"


def test_a_command_that_is_not_there(tmp_path):
    launch = Launch("vllm", "process", ("no-such-engine", sys.executable))
    process = ServerProcess.start(launch, tmp_path / "server.log", tmp_path, tmp_path)
    failure = Started(launch, process.base_url, process.log, process, None, print).await_ready()
    assert failure.exit_status == 127
    process.stop(1)
