"""The fake server's SGLang dialect is what the product's parser knows from real logs and counters."""

from __future__ import annotations

import json

import pytest

from scripts.lib.logs import find_failure, parse_path
from scripts.lib.logs.acceptance import from_log, from_metrics
from scripts.lib.logs.prometheus import difference, parse_metrics
from tests.fake_server.acceptance import expected_accepted
from tests.fake_server.cli import SGLANG, UsageError, parse_launch
from tests.fake_server.running import serving

NGRAM = ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4", "--enable-metrics")
FAST = {"ttft_s": 0.005, "step_s": 0.001, "acceptance": {"none": 0, "default": [0.8, 0.5, 0.25]}}
BODY = {"max_tokens": 201, "ignore_eos": True}


@pytest.mark.parametrize(
    ("words", "method", "k"),
    [
        ("", "none", 0),
        ("--speculative-algorithm NGRAM --speculative-num-draft-tokens 4", "ngram", 3),
        ("--speculative-algorithm DSPARK --speculative-dspark-block-size 3", "dspark", 3),
        ("--speculative-algorithm DFLASH --speculative-dflash-block-size 4", "dflash", 3),
        (
            "--speculative-algorithm EAGLE --speculative-draft-model-path m --speculative-num-draft-tokens 6",
            "mtp",
            5,
        ),
        (
            "--speculative-algorithm EAGLE --speculative-draft-model-path d --speculative-num-draft-tokens 6",
            "eagle",
            5,
        ),
    ],
)
def test_the_command_line(words, method, k):
    launch = parse_launch([SGLANG, "--model-path", "m", "--context-length", "512", *words.split()])
    assert (launch.engine, launch.model, launch.max_model_len) == ("sglang", "m", 512)
    assert (launch.method, launch.k) == (method, k)


def test_unknown_algorithms_and_a_missing_model_are_refused():
    with pytest.raises(UsageError, match="invalid choice: 'SUFFIX'"):
        parse_launch([SGLANG, "--model-path", "m", "--speculative-algorithm", "SUFFIX"])
    with pytest.raises(UsageError, match="--model-path"):
        parse_launch([SGLANG])


@pytest.fixture(scope="module")
def ngram(tmp_path_factory):
    flags = (
        *NGRAM,
        "--context-length",
        "4096",
        "--max-running-requests",
        "16",
        "--decode-log-interval",
        "10",
    )
    with serving(tmp_path_factory.mktemp("sglang"), FAST, SGLANG, *flags) as server:
        yield server


def test_pages_of_its_own(ngram):
    assert ngram.get("/health_generate")[0] == ngram.get("/health")[0] == 200
    assert ngram.get("/version")[0] == 404
    info = json.loads(ngram.get("/server_info")[1])
    assert (info["version"], info["speculative_algorithm"]) == ("0.5.15", "NGRAM")
    assert json.loads(ngram.get("/v1/models")[1])["data"][0]["owned_by"] == "sglang"


def test_counters_and_log_tell_the_acceptance_of_a_window(ngram):
    ngram.chat("warm up", **BODY)
    before, start = ngram.get("/metrics")[1], ngram.log_path.stat().st_size
    drafted = int(sum(parse_metrics(before).series("sglang:spec_verify_calls").values()))
    for number in range(4):
        ngram.chat(f"question {number}", **BODY)
    delta = difference(before, ngram.get("/metrics")[1])
    accepted = sum(expected_accepted([0.8, 0.5, 0.25], 3, drafted + int(delta["drafts"])))
    accepted -= sum(expected_accepted([0.8, 0.5, 0.25], 3, drafted))
    counted = from_metrics(delta, 3)
    # Stop tokens inside a draft make it a lower bound: at most 3 of each answer's last draft are not delivered.
    assert 0 <= 1 + accepted / delta["drafts"] - counted.length <= 4 * 3 / delta["drafts"]
    lines = from_log(parse_path(ngram.log_path).speculation, start, ngram.log_path.stat().st_size, 3)
    assert lines.samples > 10
    assert lines.length == pytest.approx(2.55, 0.1)


def test_the_start_is_read_like_a_real_one(ngram):
    report = parse_path(ngram.log_path)
    facts = ("kv_cache_tokens", "kv_available_gib", "weights_gib", "max_model_len", "max_num_seqs")
    assert [report.get(name) for name in facts] == [90112, 51.3, 15.0, 4096, 16]
    assert report.engine == "sglang"
    assert report.ready
    assert (report.get("speculative_method"), report.get("num_speculative_tokens")) == ("ngram", 3)
    assert find_failure(ngram.log_path) is None


def test_a_healthy_end_is_no_failure(tmp_path):
    with serving(tmp_path, FAST, SGLANG) as server:
        assert server.stop() == 0
        assert find_failure(server.log_path, exit_status=0, ended="exited") is None


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ({"kind": "die_at_start"}, "No module named 'cutlass'"),
        ({"kind": "die_at_request", "from_request": 1}, "illegal memory access"),
        ({"kind": "oom_at_concurrency", "concurrency": 1}, "CUDA out of memory"),
    ],
)
def test_deaths_name_their_cause(tmp_path, fault, cause):
    with serving(tmp_path, FAST | {"faults": [fault]}, SGLANG, ready=False) as server:
        if fault["kind"] != "die_at_start":
            server.wait_for("ready to roll")
            server.chat("Hello")
        server.process.wait(10)
        assert cause in find_failure(server.log_path, exit_status=1, ended="exited").root_line
