"""Reading an evidence folder: whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.lib.evidence import DamagedEvidence, read_answers, read_evidence
from tests.evidence_factory import STARTUP_FAILURE, Truth, cell, seal, write_evidence


def test_reads_both_phases_apart(tmp_path: Path) -> None:
    evidence = read_evidence(write_evidence(tmp_path, cell(), Truth(requests=5, tokens=33)))
    assert len(evidence.measured) == 5
    assert len(evidence.warmup) == 2
    assert [request.completion_tokens for request in evidence.measured] == [33] * 5
    assert evidence.measured[1].ttft_s == pytest.approx(0.1)
    assert evidence.measured[1].chunk_s[0] == pytest.approx(evidence.measured[1].first_token_s)
    assert None not in (evidence.metrics_before, evidence.metrics_after, evidence.log)


def test_optional_files_may_be_absent(tmp_path: Path) -> None:
    evidence = read_evidence(write_evidence(tmp_path, cell(), Truth(log=False, metrics=False)))
    assert (evidence.log, evidence.metrics_before, evidence.metrics_after) == (None, None, None)


def test_a_start_that_failed_leaves_no_requests(tmp_path: Path) -> None:
    evidence = read_evidence(write_evidence(tmp_path, cell(), Truth(failure=STARTUP_FAILURE)))
    assert evidence.measured == evidence.warmup == ()


def _truncate(folder: Path) -> None:
    path = folder / "requests.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def _zero(folder: Path) -> None:
    path = folder / "manifest.json"
    path.write_bytes(b"\0" * path.stat().st_size)


def _drop_sums(folder: Path) -> None:
    (folder / "SHA256SUMS").unlink()


def _drop_requests(folder: Path) -> None:
    (folder / "requests.jsonl").unlink()


def _zero_requests(folder: Path) -> None:
    path = folder / "requests.jsonl"
    path.write_bytes(b"\0" * path.stat().st_size)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_truncate, "requests.jsonl"),
        (_zero, "manifest.json"),
        (_drop_sums, "SHA256SUMS"),
        (_drop_requests, "requests.jsonl"),
    ],
)
def test_damage_is_an_error_that_names_the_file(tmp_path: Path, spoil: Callable, named: str) -> None:
    folder = write_evidence(tmp_path, cell(), spoil=spoil)
    with pytest.raises(DamagedEvidence, match=named):
        read_evidence(folder)


def test_a_missing_folder_is_damage(tmp_path: Path) -> None:
    with pytest.raises(DamagedEvidence):
        read_evidence(tmp_path / "gone")


@pytest.mark.parametrize(
    "line", ["not json", "[]", '{"phase": "measure"}', '{"phase": "other", "index": 0}', "\0\0\0"], ids=repr
)
def test_a_sealed_line_that_is_no_request_is_damage(tmp_path: Path, line: str) -> None:
    def spoil(folder: Path) -> None:
        (folder / "requests.jsonl").write_text(line + "\n")
        seal(folder)

    folder = write_evidence(tmp_path, cell(), spoil=spoil)
    with pytest.raises(DamagedEvidence, match=r"requests\.jsonl line 1"):
        read_evidence(folder)


def test_another_format_is_refused_by_number(tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))
        seal(folder)

    folder = write_evidence(tmp_path, cell(), spoil=spoil)
    with pytest.raises(DamagedEvidence, match="format 99"):
        read_evidence(folder)


def test_a_stream_without_finish_reason_did_not_complete(tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        path = folder / "requests.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[-1]["finish_reason"] = None
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        seal(folder)

    last = read_evidence(write_evidence(tmp_path, cell(), spoil=spoil)).measured[-1]
    assert not last.completed
    assert "finish reason" in last.complaint


def test_complaint_shows_kind_status_and_message(tmp_path: Path) -> None:
    evidence = read_evidence(write_evidence(tmp_path, cell(), Truth(failed=1)))
    assert evidence.measured[-1].complaint == "InternalServerError (HTTP 500): EngineDeadError"
    assert evidence.measured[0].complaint is None


def test_answers_are_read_alone_and_only_so_many(tmp_path: Path) -> None:
    folder = write_evidence(tmp_path, cell(), Truth(requests=8))
    answers = read_answers(folder, 3)
    assert [answer.index for answer in answers] == [0, 1, 2]
    assert answers == list(read_evidence(folder).measured[:3])
    assert len(answers[0].token_ids) == answers[0].completion_tokens


@pytest.mark.parametrize("spoil", [_truncate, _drop_requests, _zero_requests])
def test_answers_of_damaged_evidence_are_an_error(tmp_path: Path, spoil: Callable) -> None:
    folder = write_evidence(tmp_path, cell(), spoil=spoil)
    with pytest.raises(DamagedEvidence, match=r"requests\.jsonl"):
        read_answers(folder, 100)
