"""What only the server knows: memory and start-up from its log, acceptance from its counters or its log."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.lib.metrics import of_subject
from scripts.lib.record import record_from_evidence
from tests.evidence_factory import Truth, cell, seal, write_evidence
from tests.lib.test_record import SPECULATING, absent, record_of


def test_what_the_server_says(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth())
    assert record["kv_cache_tokens"] == 90112
    assert record["kv_available_gib"] == 2.0
    assert record["max_concurrency"] == 88.0
    assert record["max_concurrency_length_tokens"] == 1024
    assert record["weights_load_s"] == 0.26
    assert record["init_s"] == 2.02
    assert (record["startup_health_s"], record["startup_ready_s"]) == (33.5, 34.75)
    assert record["engine_version"] == "0.27.1"


def test_acceptance_is_of_the_window_not_of_the_warm_up(tmp_path: Path) -> None:
    # 80 + 50 of 200 drafted tokens over 100 drafts; the warm-up's 50 drafts accepted nothing (F24).
    record = record_of(tmp_path, SPECULATING, "mtp", 2)
    assert record["acceptance_length"] == pytest.approx(2.3)
    assert record["acceptance_rate"] == pytest.approx(0.65)
    assert record["acceptance_per_position"] == pytest.approx([0.8, 0.5])
    assert (record["drafts"], record["drafted_tokens"], record["accepted_tokens"]) == (100, 200, 130)
    assert record["acceptance_source"] == "metrics"
    assert (record["tokens_per_step"], record["draft_coverage"]) == (None, None)
    assert record["notes"] == []


def test_steps_without_a_draft_show_in_tokens_per_step(tmp_path: Path) -> None:
    # F25: 200 drafts in 1000 steps, 720 of 1000 drafted tokens kept, 1720 tokens decoded.
    truth = Truth(requests=10, tokens=173, positions=(0.72,) * 5, drafts=200)
    record = record_of(tmp_path, truth, "ngram", 5)
    assert record["acceptance_length"] == pytest.approx(4.6)
    assert record["tokens_per_step"] == pytest.approx(1.72)
    assert record["draft_coverage"] == pytest.approx(0.2)
    assert record["notes"] == []


def test_sources_of_acceptance_that_disagree_raise_an_alarm(tmp_path: Path) -> None:
    # The counters say 100 drafts and 130 accepted, the chunks one token each.
    record = record_of(tmp_path, replace(SPECULATING, tokens=200), "mtp", 2)
    assert record["acceptance_alarm"].startswith("acceptance disagrees: metrics 2.30, chunks")
    assert record["notes"] == []


def test_a_lookup_that_found_nothing_to_draft_is_zero_drafts_and_one_token_a_step(tmp_path: Path) -> None:
    truth = Truth(requests=10, tokens=24, positions=(0.0,) * 3, drafts=0)
    record = record_of(tmp_path, truth, "ngram", 3)
    assert (record["drafts"], record["drafted_tokens"], record["accepted_tokens"]) == (0, 0, 0)
    assert (record["tokens_per_step"], record["draft_coverage"]) == (1.0, 0.0)
    assert (record["acceptance_length"], record["acceptance_rate"]) == (None, None)
    assert "no draft between the snapshots" in absent(record)["acceptance_length"]


@pytest.mark.parametrize(("steps_a_chunk", "alarm"), [(1, False), (4, False), (None, True)])
def test_a_server_that_sends_several_steps_in_one_chunk_is_no_contradiction(
    steps_a_chunk: int | None, alarm: bool, tmp_path: Path
) -> None:
    def rewrite(folder: Path) -> None:
        path = folder / "requests.jsonl"
        requests = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for request in requests:
            first, *steps = request["chunk_tokens"]
            if steps_a_chunk is None:  # every step as large as can be, and as many tokens as counted
                steps = [3] * (sum(steps) // 3)
            else:
                starts = range(0, len(steps), steps_a_chunk)
                steps = [sum(steps[at : at + steps_a_chunk]) for at in starts]
            request["chunk_tokens"] = [first, *steps]
        path.write_text("".join(json.dumps(request) + "\n" for request in requests), encoding="utf-8")
        seal(folder)

    subject = cell("mtp", 2)
    record = record_from_evidence(write_evidence(tmp_path, subject, SPECULATING, rewrite), subject)
    assert record["acceptance_length"] == pytest.approx(2.3)
    assert (record["acceptance_alarm"] is not None) is alarm


def test_a_restart_inside_the_window_is_no_acceptance(tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        (folder / "metrics_after.prom").replace(folder / "x")
        (folder / "metrics_before.prom").replace(folder / "metrics_after.prom")
        (folder / "x").replace(folder / "metrics_before.prom")
        seal(folder)

    subject = cell("mtp", 2)
    folder = write_evidence(tmp_path, subject, replace(SPECULATING, log=False), spoil)
    record = record_from_evidence(folder, subject)
    assert record["acceptance_length"] is None
    assert "restarted" in absent(record)["acceptance_length"]


def test_acceptance_from_the_log_where_there_are_no_counters(tmp_path: Path) -> None:
    record = record_of(tmp_path, replace(SPECULATING, metrics=False), "mtp", 2)
    assert record["acceptance_length"] == pytest.approx(2.3, abs=0.01)
    assert record["acceptance_rate"] == pytest.approx(0.65, abs=0.001)
    assert record["acceptance_source"] == "log"


def test_the_baseline_has_no_acceptance_and_says_why(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth())
    for name in of_subject("acceptance"):
        assert record[name] is None
        assert "speculation" in absent(record)[name]


def test_without_a_log_its_facts_are_absent(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth(log=False, metrics=False))
    assert record["status"] == "measured"
    assert record["kv_cache_tokens"] is None
    assert absent(record)["kv_cache_tokens"] == "there is no server log"
    assert record["log"] is None


def test_the_release_is_the_server_s_own_word_where_the_log_has_none(tmp_path: Path) -> None:
    served = {"server": {"argv": ["python", "-m", "sglang.launch_server"], "version": "0.5.15"}}
    record = record_of(tmp_path, Truth(log=False, extra=served))
    assert record["engine_version"] == "0.5.15"


@pytest.mark.parametrize(
    ("named", "remarked"), [("0.27.1", False), ("0.27", False), ("0.27.10", True), (None, False)]
)
def test_another_release_than_the_engine_file_names_is_remarked(
    tmp_path: Path, named: str | None, remarked: bool
) -> None:
    record = record_of(tmp_path, Truth(extra={"identity": {"engine": {"version": named}}}))
    assert any("the engine file says version" in note for note in record["notes"]) is remarked


@pytest.mark.parametrize(("last_k", "alarm"), [(0, False), (1, True)])
def test_a_schedule_that_stops_drafting_skips_steps(tmp_path: Path, last_k: int, alarm: bool) -> None:
    """200 of 1000 steps drafted, as F25's n-gram. Sound where the schedule has a k of 0; else something is wrong."""
    truth = Truth(requests=10, tokens=173, positions=(0.72,) * 5, drafts=200)
    config = {"method": "mtp", "num_speculative_tokens": 5}
    config["num_speculative_tokens_per_batch_size"] = [[1, 2, 5], [3, 8, last_k]]
    at = cell("mtp-schedule", 5)
    identity = {"argv": ["vllm", "serve", "m", "--speculative-config", json.dumps(config)]}
    folder = write_evidence(tmp_path, at, truth, identity=identity)
    record = record_from_evidence(folder, at)
    assert (record["acceptance_alarm"] is not None) == alarm
    assert record["tokens_per_step"] == (None if alarm else pytest.approx(1.72))
