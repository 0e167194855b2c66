"""The second server of a pair as the measuring job sees it."""

from __future__ import annotations

import pytest
import yaml

from scripts.lib.company import CannotKeepBusy, Company, cannot, failure_of, in_window
from scripts.lib.endpoint import READY, Endpoint
from scripts.lib.measuring_spec import MeasureSpec
from tests.fake_server.running import serving
from tests.processes import wait_for

SCENARIO = {
    "description": "x",
    "prompts": {"a": "Say something."},
    "warmup_prompts": {"w": "Say something else."},
    "output": {"max_tokens": 21, "ignore_eos": True},
}


def answer(start_s, end_s, tokens=None, error=None):
    return {"start_s": start_s, "end_s": end_s, "tokens": tokens, "error": error}


def test_an_answer_counts_with_its_share_in_the_window():
    answers = [answer(0, 10, 100), answer(10, 20, 100), answer(18, 28, 100), answer(40, 50, 100)]
    told = in_window(answers, 5, 20)
    assert told["answers"] == 3
    assert told["tps"] == pytest.approx((50 + 100 + 20) / 15)
    assert told["failed"] == 0


def test_answers_that_failed_are_told():
    told = in_window([answer(0, 1, 5), answer(1, 2, error="boom")], 0, 2)
    assert (told["failed"], told["first_error"]) == (1, "boom")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (None, None),
        ({"concurrency": 0, "answers": None}, None),
        ({"concurrency": 2, "answers": 5, "failed": 0, "first_error": None}, None),
        (
            {"concurrency": 2, "answers": 5, "failed": 1, "first_error": "boom"},
            "1 of 5 answers failed; the first error: boom",
        ),
        (
            {"concurrency": 2, "answers": 0, "failed": 0, "first_error": None},
            "it answered nothing in the window",
        ),
    ],
)
def test_a_neighbour_that_was_not_busy_fails_the_cell(told, words):
    failure = failure_of(told)
    assert (failure is None) is (words is None)
    if failure:
        assert words in failure.cause
        assert failure.retry


def spec(tmp_path, concurrency):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SCENARIO))
    beside = {
        "label": "other", "method": "none", "scenario_file": str(tmp_path / "s.yaml"), "concurrency": concurrency,
    }  # fmt: skip
    return MeasureSpec(
        cell={}, key="", identity={}, store="", scenario_file="", scenario_sha256="", requests=1, warmup_requests=1,
        request_timeout_s=5, stall_timeout_s=5, token_ids=True, salt="", beside=beside,
    )  # fmt: skip


def company(tmp_path, concurrency, base_url="http://127.0.0.1:9/v1"):
    endpoint = Endpoint(READY, "b", beside={"base_url": base_url, "model": "m"})
    return Company(spec(tmp_path, concurrency), endpoint, "salt", tmp_path / "fits.json")


def test_a_server_is_kept_busy_until_the_exit(tmp_path):
    with serving(tmp_path, {"ttft_s": 0.01, "step_s": 0.01}) as server:
        busy = company(tmp_path, 3, f"http://127.0.0.1:{server.port}/v1")
        with busy:
            wait_for(lambda: server.metrics()["vllm:num_requests_running"] == 3, 20)
            wait_for(lambda: server.metrics()["vllm:generation_tokens_total"] > 5 * 21, 20)
        wait_for(lambda: server.metrics()["vllm:num_requests_running"] == 0, 20)
    told = busy.told({"start_s": 0.0, "wall_s": 4e9})
    assert told["answers"] >= 3
    assert told["failed"] == 0
    assert told["label"] == "other"


def test_an_idle_neighbour_is_asked_nothing(tmp_path):
    idle = company(tmp_path, 0)
    with idle:
        pass
    assert idle.told({"start_s": 0.0, "wall_s": 1.0})["tps"] is None


def test_a_load_that_cannot_begin_is_a_failure_with_a_remedy(tmp_path):
    broken = company(tmp_path, 1)
    (tmp_path / "s.yaml").unlink()
    with pytest.raises(CannotKeepBusy, match="ended with status 1 before it began") as caught, broken:
        pass
    assert "cell's own log" in cannot(caught.value).fix
