"""Processes, failures and lies of the fake server: each strikes when it should, and only then."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fake_server.running import children_of, serving

CHAT = "/v1/chat/completions"
MTP3 = ("--speculative-config", '{"method": "mtp", "num_speculative_tokens": 3}')
FAST = {"ttft_s": 0.005, "step_s": 0.001}


# Processes


def test_engine_processes_outlive_all_but_an_orderly_end(tmp_path):
    behaviour = FAST | {"engine_processes": 2}
    with serving(tmp_path, behaviour) as server:
        first, second = children_of(server.pid)
        assert os.getsid(first) != os.getsid(server.pid)
        assert any(f"(EngineCore pid={pid})" in server.log() for pid in (first, second))
        os.kill(first, signal.SIGTERM)
        time.sleep(0.1)
        assert len(children_of(server.pid)) == 2, "SIGTERM is ignored"
        server.process.kill()
        server.process.wait()
        assert len(children_of(server.pid)) == 2, "orphans live on"
    assert children_of(server.pid) == []
    with serving(tmp_path, behaviour) as server:
        server.stop()
        assert children_of(server.pid) == []
    with serving(tmp_path, behaviour | {"faults": [{"kind": "leave_children"}]}) as server:
        server.stop()
        assert len(children_of(server.pid)) == 2


# Faults


def fault(kind, **params):
    return FAST | {"faults": [{"kind": kind, **params}]}


@pytest.mark.parametrize("moving", [True, False])
def test_never_ready(tmp_path, free_port, moving):
    behaviour = fault("never_ready", log=moving)
    with serving(tmp_path, behaviour, "--port", str(free_port), ready=False) as server:
        server.wait_for("init engine")
        time.sleep(0.1)
        before = server.log()
        assert server.get("/health", free_port)[0] == 503
        assert server.get("/v1/models", free_port)[0] == 503
        time.sleep(0.5)
        assert ("No available shared memory broadcast block" in server.log()[len(before) :]) is moving
        assert server.process.poll() is None
        assert server.stop() == 143


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_slow_start(tmp_path, free_port):
    with serving(tmp_path, fault("slow_start", s=0.8), "--port", str(free_port), ready=False) as server:
        server.wait_for("Loading safetensors checkpoint shards:  25%")
        with pytest.raises(ConnectionRefusedError):
            server.get("/health", free_port)
        server.wait_for("HTTP server started")
        assert server.get("/health")[0] == 200


def test_die_at_start_tells_the_cause_early(tmp_path):
    with serving(tmp_path, fault("die_at_start", exit_code=0), ready=False) as server:
        assert server.process.wait(5) == 0
        lines = server.log().splitlines()
    (root,) = [i for i, line in enumerate(lines) if "ValueError: moe_backend='marlin'" in line]
    assert len(lines) - root >= 80
    assert lines[root].startswith("(Worker_TP0 pid=")
    assert "RuntimeError: Engine core initialization failed. See root cause above." in lines[-1]
    told = [line for line in lines if "WorkerProc initialization failed" in line]
    assert [line.split()[0] for line in told] == ["(EngineCore", "(EngineCore"]


def test_die_at_start_in_other_ways(tmp_path):
    story = tmp_path / "story.log"
    story.write_text("no such luck\n")
    with serving(tmp_path, fault("die_at_start", file=str(story), exit_code=3), ready=False) as server:
        assert server.process.wait(5) == 3
        assert server.log().endswith("no such luck\n")
    with serving(tmp_path, fault("die_at_start", cause="KeyError: 'x'", exit_code=-9), ready=False) as server:
        assert server.process.wait(5) == -9
        assert "KeyError: 'x'" in server.log()


def test_a_context_beyond_the_cache_does_not_start(tmp_path):
    with serving(tmp_path, {"kv_cache_tokens": 1000}, "--max-model-len", "2048", ready=False) as server:
        assert server.process.wait(5) == 1
        assert "max seq len (2048)" in server.log()
        assert "the estimated maximum model length is 1000." in server.log()


def test_busy_ports_pretended_and_real(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        real = ("--port", str(taken.getsockname()[1]))
        for behaviour, argv in [(fault("port_busy"), ()), ({}, real)]:
            _assert_port_busy(tmp_path, behaviour, argv)


def _assert_port_busy(tmp_path, behaviour, argv):
    with serving(tmp_path, behaviour, *argv, ready=False) as server:
        assert server.process.wait(5) == 1
        assert server.log().rstrip().endswith("OSError: [Errno 98] Address already in use")


@pytest.mark.parametrize("exit_code", [0, 1])
def test_the_engine_dies_at_a_request(tmp_path, exit_code):
    behaviour = FAST | {"step_s": 0.02, "engine_processes": 1}
    behaviour["faults"] = [{"kind": "die_at_request", "from_request": 3, "exit_code": exit_code}]
    with serving(tmp_path, behaviour) as server, ThreadPoolExecutor(1) as pool:
        assert server.chat("one", max_tokens=2).done
        other = pool.submit(server.chat, "two", max_tokens=500, ignore_eos=True)
        time.sleep(0.2)
        dying = server.chat("three")
        assert (dying.status, dying.error["error"]["type"]) == (500, "InternalServerError")
        assert server.chat("four").status == 500
        assert server.get("/health")[0] == 503
        cut = other.result()
        assert "EngineCore encountered an issue" in cut.error["error"]["message"]
        assert (cut.finish_reason, cut.usage) == (None, None)
        assert server.process.wait(5) == exit_code
        assert children_of(server.pid) == []
        assert "EngineCore encountered a fatal error." in server.log()
        assert "shutdown triggered" not in server.log()


def test_the_server_kills_itself(tmp_path):
    behaviour = fault("die_at_request", how="sigkill", from_request=2)
    with serving(tmp_path, behaviour) as server:
        assert server.chat("one").done
        with pytest.raises((OSError, http.client.HTTPException)):
            server.chat("two")
        assert server.process.wait(5) == -9


def test_out_of_memory_at_a_concurrency(tmp_path):
    behaviour = FAST | {"step_s": 0.05, "faults": [{"kind": "oom_at_concurrency", "concurrency": 3}]}
    with serving(tmp_path, behaviour) as server, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda i: server.chat(f"{i}", max_tokens=5), range(2)))
        assert server.process.poll() is None
        list(pool.map(lambda i: server.chat(f"{i}", max_tokens=50), range(3)))
        assert server.process.wait(5) == 0
        assert re.search(
            r"\(EngineCore pid=\d+\) ERROR .*\] torch.OutOfMemoryError: CUDA out of memory", server.log()
        )


def statuses(server, count):
    return [server.chat(f"{i}", max_tokens=2).status for i in range(count)]


def test_http_500_by_all_conditions(tmp_path):
    with serving(tmp_path, fault("http_500", every=3, from_request=2)) as server:
        assert statuses(server, 6) == [200, 500, 200, 200, 500, 200]
    with serving(tmp_path, fault("healthy_but_first_completion_fails")) as server:
        assert server.get("/health")[0] == 200
        assert statuses(server, 3) == [500, 200, 200]
    with serving(tmp_path, fault("http_500", contains="bad")) as server:
        assert [server.chat(text, max_tokens=2).status for text in ("good", "a bad one")] == [200, 500]
    for concerned in [
        {"method": ["ngram", "mtp"], "k": 3},
        {"max_model_len": 8192},
        {"method": "mtp", "k": [1, 3]},
    ]:
        with serving(tmp_path, fault("http_500", **concerned), *MTP3) as server:
            assert statuses(server, 1) == [500]
    for spared in [{"method": "ngram"}, {"k": 1}, {"max_model_len": [1024, 2048]}, {"concurrency": 2}]:
        with serving(tmp_path, fault("http_500", **spared), *MTP3) as server:
            assert statuses(server, 1) == [200]


def test_once_leaves_the_next_boot_healthy(tmp_path):
    marker = tmp_path / "struck"
    behaviour = fault("http_500", from_request=2, once=str(marker))
    with serving(tmp_path, behaviour) as server:
        assert statuses(server, 1) == [200]
        assert not marker.exists(), "only a fault that struck is over"
        assert statuses(server, 2) == [500, 500]
    with serving(tmp_path, behaviour) as server:
        assert statuses(server, 3) == [200, 200, 200]


def test_a_stream_that_hangs(tmp_path):
    with serving(tmp_path, fault("hang_mid_stream", after_tokens=4)) as server:
        stream = server.stream(
            CHAT, {"messages": [{"role": "user", "content": "x"}], "max_tokens": 20}, timeout_s=0.5
        )
        assert (stream.broken, stream.done, len(stream.text.split())) == (True, False, 4)
        assert server.get("/health")[0] == 200


@pytest.mark.parametrize("clean", [True, False])
def test_a_stream_that_closes_early(tmp_path, clean):
    with serving(tmp_path, fault("close_early", after_tokens=4, clean=clean, times=2)) as server:
        stream = server.chat("x", max_tokens=20)
        assert (stream.broken, stream.done) == (not clean, False)
        assert (stream.finish_reason, stream.usage, len(stream.text.split())) == (None, None, 4)
        short = server.chat("x", max_tokens=2)
        assert (short.done, len(short.text.split())) == (False, 1), (
            "the end is missing even in a short answer"
        )
        assert server.chat("x", max_tokens=20).done
        assert server.metrics()["vllm:num_requests_running"] == 0


def test_no_usage(tmp_path):
    with serving(tmp_path, fault("no_usage")) as server:
        stream = server.chat("x", max_tokens=3)
        assert (stream.done, stream.usage, stream.finish_reason) == (True, None, "length")
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 2})[1]["usage"] is None


@pytest.mark.parametrize(
    ("mode", "text", "tokens"),
    [
        ("empty", "", 1),
        ("one_token", "The", 2),
        ("repetition", " ".join(["the"] * 20), 20),
        ("gibberish", None, None),
    ],
)
def test_garbage_output(tmp_path, mode, text, tokens):
    with serving(tmp_path, fault("garbage_output", mode=mode)) as server:
        stream = server.chat("x", max_tokens=20)
        forced = server.chat("x", max_tokens=20, ignore_eos=True)
    assert forced.usage["completion_tokens"] == 20
    if mode == "gibberish":
        assert not re.search("[a-z]", stream.text)
        assert len(forced.text.split()) == 20
    else:
        assert (stream.text, stream.usage["completion_tokens"]) == (text, tokens)


def test_ignored_and_slow_ends(tmp_path):
    with serving(tmp_path, fault("ignore_sigterm")) as server:
        server.process.terminate()
        time.sleep(0.3)
        assert server.process.poll() is None
        assert server.get("/health")[0] == 200
    with serving(tmp_path, fault("slow_shutdown", s=0.6)) as server:
        started = time.monotonic()
        assert server.stop() == 0
        assert 0.6 <= time.monotonic() - started < 3


def test_false_reports(tmp_path):
    behaviour = FAST | {
        "acceptance": 0.5,
        "faults": [{"kind": "wrong_k", "k_reported": 5}, {"kind": "metrics_skew"}],
    }
    with serving(tmp_path, behaviour, *MTP3, VLLM_LOG_STATS_INTERVAL="0.1") as server:
        server.chat("x", max_tokens=100, ignore_eos=True)
        seen = server.metrics()
        time.sleep(0.3)
        log = server.log()
    assert "num_spec_tokens=5)" in log
    assert "'num_speculative_tokens': 3}" in log
    told = sum(int(n) for n in re.findall(r"Accepted: (\d+) tokens", log))
    assert seen["vllm:spec_decode_num_accepted_tokens_total"] == told / 2 > 0


def test_a_log_that_stalls_and_one_that_says_more(tmp_path):
    more = {"kind": "log_at_request", "times": 1, "lines": ["ERROR core.py:1 odd", "raw words"]}
    behaviour = FAST | {"faults": [{"kind": "stall_log", "from_request": 2}, more]}
    with serving(tmp_path, behaviour) as server:
        port = server.port
        server.chat("one", max_tokens=2)
        assert re.search(r"\(EngineCore pid=\d+\) ERROR .*\[core.py:1\] odd\nraw words\n", server.log())
        server.chat("two", max_tokens=2)
        size = len(server.log())
        assert server.get("/health", port)[0] == 200
        assert len(server.log()) == size


def test_preemptions_are_counted(tmp_path):
    with serving(tmp_path, FAST | {"preempt_every": 2}) as server:
        statuses(server, 5)
        assert server.metrics()["vllm:num_preemptions_total"] == 2
