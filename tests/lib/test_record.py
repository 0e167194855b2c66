"""From evidence to a record: every value has a source or a reason, and nothing about the evidence raises."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.lib.metrics import METRICS, of_subject
from scripts.lib.record import infeasible_record, record_from_evidence, record_from_pointer
from scripts.lib.server_config import CONFIG_FIELDS
from scripts.lib.tables.cells import RECORDS_SCHEMA
from tests.evidence_factory import STARTUP_FAILURE, Truth, cell, seal, write_evidence, write_pointer

# Ten requests of one prefill token and 23 decoded ones: 230 tokens = 100 drafts + 130 accepted.
SPECULATING = Truth(requests=10, tokens=24, positions=(0.8, 0.5), drafts=100, warmup_drafts=50)


def record_of(tmp_path: Path, truth: Truth, method: str = "none", k: int = 0, concurrency: int = 1) -> dict:
    subject = cell(method, k, concurrency)
    return record_from_evidence(write_evidence(tmp_path, subject, truth), subject)


def absent(record: dict) -> dict[str, str]:
    pairs = (text.split(": ", 1) for text in record["absent"])
    return {name: reason for names, reason in pairs for name in names.split(", ")}


def test_a_complete_measurement(tmp_path: Path) -> None:
    # 8 requests of 0.1 + 64 * 0.05 = 3.3 s, 65 tokens each, two at a time: 13.2 s in all.
    record = record_of(tmp_path, Truth(), concurrency=2)
    assert (record["status"], record["reasons"], record["notes"]) == ("measured", [], [])
    assert (record["requests"], record["completed"], record["failed"]) == (8, 8, 0)
    assert record["wall_s"] == pytest.approx(13.2)
    assert record["completion_tokens"] == 520
    assert record["aggregate_tps"] == pytest.approx(520 / 13.2)
    assert record["per_request_tps"] == pytest.approx(65 / 3.3)
    assert record["ttft_median_s"] == pytest.approx(0.1)
    assert record["tpot_median_s"] == pytest.approx(0.05)


def test_every_metric_has_a_value_or_a_reason(tmp_path: Path) -> None:
    compared = set(of_subject("comparison"))
    truths = (Truth(), SPECULATING, Truth(log=False, metrics=False), Truth(usage=False), Truth(failed=3))
    for number, truth in enumerate(truths):
        record = record_of(tmp_path / str(number), truth, "mtp", 2)
        missing = {name for name in (*METRICS, *CONFIG_FIELDS) if record[name] is None} - compared
        assert missing == set(absent(record))
        assert "not found" not in absent(record).values()


def test_a_record_has_exactly_the_columns_of_the_table_and_is_plain_json(tmp_path: Path) -> None:
    records = [
        record_of(tmp_path / "a", SPECULATING, "mtp", 2),
        record_of(tmp_path / "b", Truth(failure=STARTUP_FAILURE)),
        infeasible_record(cell().axes, ["no"]),
    ]
    for record in records:
        assert set(record) == set(RECORDS_SCHEMA)
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_failed_requests_are_counted_and_the_first_error_shown(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth(failed=3))
    assert record["status"] == "measured"
    assert (record["requests"], record["completed"], record["failed"]) == (8, 5, 3)
    assert record["reasons"] == [
        "5 of 8 requests completed",
        "the first of 3 errors: InternalServerError (HTTP 500): EngineDeadError",
    ]
    assert record["completion_tokens"] == 5 * 65
    assert record["first_error"] == "InternalServerError (HTTP 500): EngineDeadError"


def test_nothing_completed_is_failed_with_all_metrics_null(tmp_path: Path) -> None:
    # F11, although the measuring job said "measured".
    record = record_of(tmp_path, Truth(requests=200, failed=200))
    assert record["status"] == "failed"
    assert (record["requests"], record["completed"], record["failed"]) == (200, 0, 200)
    assert {
        name: record[name] for name in METRICS if name not in ("requests", "completed", "failed")
    } == dict.fromkeys(name for name in METRICS if name not in ("requests", "completed", "failed"))
    assert record["failure_class"] == "request"
    assert "0 of 200 requests completed; the first error" in record["failure_cause"]


def test_a_failed_start_carries_class_cause_and_phase(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth(failure=STARTUP_FAILURE))
    assert record["status"] == "failed"
    for name in ("class", "cause", "root_line", "fix", "phase", "process"):
        assert record[f"failure_{name}"] == STARTUP_FAILURE[name]
    assert record["reasons"] == [
        "resource_startup (startup): one request of max_model_len does not fit into the KV cache"
    ]
    assert record["kv_cache_tokens"] is None
    assert record["log"].endswith("server.log.gz")


def test_a_failure_of_unknown_class_is_read_again_from_the_log(tmp_path: Path) -> None:
    failure = STARTUP_FAILURE | {"class": "unknown", "cause": "exit status 1", "root_line": None, "fix": None}
    crash = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`."
    lines = ["Traceback (most recent call last):", '  File "core.py", line 5, in __init__', crash]
    log = "".join(f"(EngineCore pid=22) ERROR 11-29 19:36:40 [core.py:1] {line}\n" for line in lines)
    record = record_of(tmp_path, Truth(failure=failure, earlier_log=log))
    assert record["failure_class"] != "unknown"
    assert "No available memory for the cache blocks" in record["failure_root_line"]


def test_warm_up_failures_are_noted(tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        path = folder / "requests.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines[0] |= {"error": {"type": "timeout", "message": "", "status": None}}
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        seal(folder)

    record = record_from_evidence(write_evidence(tmp_path, cell(), spoil=spoil), cell())
    assert record["notes"] == ["1 of 2 warm-up requests failed: the server may have been cold"]


def _truncate(folder: Path) -> None:
    path = folder / "requests.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def _zero(folder: Path) -> None:
    path = folder / "server.log.gz"
    path.write_bytes(b"\0" * path.stat().st_size)


def _bare(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": 1}')
    seal(folder)


@pytest.mark.parametrize("spoil", [_truncate, _zero, _bare])
def test_damaged_evidence_is_a_row_never_data(tmp_path: Path, spoil: Callable) -> None:
    record = record_from_evidence(write_evidence(tmp_path, cell(), spoil=spoil), cell())
    assert record["status"] == "damaged"
    assert {record[name] for name in METRICS if name != "acceptance_per_position"} == {None}
    assert "Run again" in record["reasons"][0]


def test_evidence_of_another_cell_is_damage(tmp_path: Path) -> None:
    record = record_from_evidence(write_evidence(tmp_path, cell()), cell("mtp", 1))
    assert (record["status"], record["method"]) == ("damaged", "mtp")


def test_pointer_leads_to_the_evidence(tmp_path: Path) -> None:
    folder = write_evidence(tmp_path / "store", cell("mtp", 2), SPECULATING)
    record = record_from_pointer(write_pointer(tmp_path / "results", cell("mtp", 2), folder))
    assert (record["status"], record["method"], record["k"]) == ("measured", "mtp", 2)
    assert record["evidence"] == str(folder)


@pytest.mark.parametrize(
    "text", ["", "\0\0\0", "[]", "{}", '{"folder": 3}', '{"folder": "/nowhere"}'], ids=repr
)
def test_a_pointer_of_any_content_gives_a_row(tmp_path: Path, text: str) -> None:
    pointer = write_pointer(tmp_path, cell(), tmp_path)
    pointer.write_text(text)
    record = record_from_pointer(pointer)
    assert (record["status"], record["max_model_len"], record["scenario"]) == ("damaged", 1024, "code")


def test_infeasible_cells_have_their_reasons() -> None:
    record = infeasible_record(cell("mtp", 3).axes, ["k 3 is no multiple of 2"])
    assert (record["status"], record["reasons"]) == ("infeasible", ["k 3 is no multiple of 2"])
    assert record["aggregate_tps"] is None


def test_a_server_that_ran_another_k_makes_the_cell_mislabelled(tmp_path: Path) -> None:
    record = record_of(tmp_path, replace(SPECULATING, resolved={"k": 1}), "mtp", 2)
    assert (record["status"], record["failure_class"]) == ("mislabelled", "mislabelled")
    assert record["failure_cause"] == "k: asked 2, the server resolved 1"
    assert len(record["reasons"]) == 1
    assert record["reasons"][0].startswith(
        "k: asked 2, the server resolved 1 (server log line 3: speculative_config="
    )
    assert "num_spec_tokens=1" in record["failure_root_line"]
    assert "scripts.forget" in record["failure_fix"]
    # Kept for whoever wants to know what was measured; no table ranks it.
    assert record["completed"] == 10
    assert record["aggregate_tps"] > 0
    assert (record["resolved_method"], record["resolved_k"]) == ("mtp", 1)


@pytest.mark.parametrize(
    ("resolved", "method", "k", "what"),
    [
        ({"method": "none", "k": 0}, "mtp", 2, "speculation"),
        ({"method": "mtp", "k": 2}, "none", 0, "speculation"),
        ({"method": "eagle"}, "mtp", 2, "method"),
        ({"max_model_len": 512}, "mtp", 2, "max_model_len"),
    ],
)
def test_every_kind_of_mislabelling_is_seen(
    tmp_path: Path, resolved: dict, method: str, k: int, what: str
) -> None:
    truth = replace(SPECULATING if k else Truth(), resolved=resolved)
    record = record_of(tmp_path, truth, method, k)
    assert record["status"] == "mislabelled"
    assert record["failure_cause"].startswith(f"{what}: asked ")


def test_a_method_by_another_name_is_no_mislabelling(tmp_path: Path) -> None:
    subject, config = cell("mtp-tuned", 2), '{"method":"mtp","num_speculative_tokens":2}'
    argv = ["vllm", "serve", "models/smollm2", "--speculative-config", config]
    truth = replace(SPECULATING, resolved={"method": "mtp"}, extra={"identity": {"argv": argv}})
    record = record_from_evidence(write_evidence(tmp_path, subject, truth), subject)
    assert (record["status"], record["notes"]) == ("measured", [])


def test_lost_requests_are_told_after_the_mislabelling(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth(failed=3, resolved={"max_model_len": 512}))
    assert record["status"] == "mislabelled"
    assert [reason.split()[0] for reason in record["reasons"]] == ["max_model_len:", "5", "the"]


def test_a_failed_cell_is_failed_whatever_its_server_resolved(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth(failure=STARTUP_FAILURE, resolved={"max_model_len": 512}))
    assert record["status"] == "failed"


def test_what_nothing_confirms_is_noted(tmp_path: Path) -> None:
    record = record_of(tmp_path / "a", replace(SPECULATING, log=False), "mtp", 2)
    assert record["status"] == "measured"
    # The counters have two positions, which confirms k.
    assert record["notes"] == [
        "there is no server log to confirm what was asked: method, max_model_len, model"
    ]
    config = ["--max-num-seqs", "8"]
    truth = Truth(extra={"identity": {"argv": ["vllm", "serve", "models/smollm2", *config]}})
    record = record_of(tmp_path / "b", truth)
    assert record["notes"] == ["the server log does not confirm what was asked: max-num-seqs"]


def test_how_the_server_ran_is_in_the_record(tmp_path: Path) -> None:
    record = record_of(tmp_path, Truth())
    assert (record["enforce_eager"], record["kv_cache_dtype"]) == (True, "auto")
    assert record["async_scheduling"] is None
    assert absent(record)["async_scheduling"] == "no line of this kind in the log"


def test_requests_held_back_by_the_scheduler_are_told(tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        path = folder / "server.log.gz"
        log = gzip.decompress(path.read_bytes()).decode()
        log = log.replace("Running: 8 reqs, Waiting: 0 reqs", "Running: 2 reqs, Waiting: 6 reqs")
        path.write_bytes(gzip.compress(log.encode()))
        seal(folder)

    subject = cell(concurrency=8)
    record = record_from_evidence(write_evidence(tmp_path, subject, spoil=spoil), subject)
    assert record["scheduler_words"] == "scheduler-limited: 2 of 8 run, KV only 0.1 %"
    assert (record["running_max"], record["running_asked"], record["waiting_share"]) == (2, 8, 1.0)
