"""Field reports about measuring, from what the server said to what the tables say: the report's own figures, then others
of the same kind. Those about reading logs alone: logs/test_field_reports.py."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from scripts.lib.record import record_from_evidence
from scripts.lib.server_config import server_config
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.kv_cache import kv_cache_table, kv_cache_text
from scripts.lib.tables.latency import latency_table, latency_text
from scripts.lib.tables.points import points_table
from scripts.lib.validity import default_limits, judge
from tests.evidence_factory import Truth, cell, write_evidence
from tests.lib.logs.helpers import parse, vllm
from tests.lib.tables.reading import body
from tests.lib.test_conduct import periodic, request, went
from tests.lib.test_truth import dump, spec
from tests.record_factory import failed, measured, points_of


def reasons(row: dict, baseline: dict | None = None) -> list[str]:
    return judge(row, baseline, baseline, default_limits())[1]


def names(row: dict, baseline: dict | None = None) -> list[str]:
    return [reason.partition(":")[0] for reason in reasons(row, baseline)]


def seen(window: str, concurrency: int, k: int = 2, **more: object) -> dict:
    """A complete cell whose server said `window` while it was measured."""
    traits = {"nonce": True, "forced_length": True}
    facts = went(window, concurrency, requests=(request(),), **(traits | more))
    return measured(
        cell("mtp", k, concurrency), 400.0, **{name: facts[name] for name in facts if facts[name] is not None}
    )


# -- F02: two capacity numbers of a hybrid model ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "length", "fits", "hybrid"),
    [
        ("96,768", "32,768", "11.40", True),
        ("2,097,152", "131,072", "74.20", True),
        ("163,840", "8,192", "20.00", False),
    ],
)
def test_f02_what_fits_is_told_and_tokens_of_a_hybrid_are_marked(
    tokens: str, length: str, fits: str, hybrid: bool
) -> None:
    log = vllm(f"GPU KV cache size: {tokens} tokens")
    report = parse(log + vllm(f"Maximum concurrency for {length} tokens per request: {fits}x"))
    settings, _ = server_config(report)
    facts = {name: report.get(name) for name in ("kv_cache_tokens", "max_concurrency")}
    lines = kv_cache_text(
        kv_cache_table(cells_table([measured(cell(), 10.0, hybrid=settings["hybrid"], **facts)]))
    )
    text = " ".join(lines)
    assert ("Hybrid models here" in text) is hybrid
    assert body(lines)[0][2:5] == [tokens, "0.0", fits]


# -- F04: a token budget that limits concurrency ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "k", "concurrency", "running", "usage", "words"),
    [
        (32, 2, 64, 10, 4.1, "scheduler-limited: 10 of 64 run, KV only 4"),
        (48, 5, 32, 8, 11.0, "scheduler-limited: 8 of 32 run, KV only 11"),
    ],
)
def test_f04_fewer_run_than_asked(
    budget: int, k: int, concurrency: int, running: int, usage: float, words: str
) -> None:
    startup = vllm(f"Chunked prefill is enabled with max_num_batched_tokens={budget}.") + dump(spec("mtp", k))
    row = seen(periodic(running, concurrency - running, usage), concurrency, k, startup=startup)
    (reason,) = reasons(row)
    assert reason.startswith(f"queueing: {words}")
    assert f"the token budget allows {budget // (k + 1)}" in reason


def test_f04_all_running_is_no_queue() -> None:
    assert names(seen(periodic(64, 0, 30.0), 64)) == []
    assert names(seen(periodic(10, 54) + periodic(64, 0) + periodic(64, 0), 64)) == []


# -- F08: a rerun that measured the prefix cache ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hit", "expected"), [(0.4, []), (98.9, ["prefix_hits"]), (3.0, []), (55.0, ["prefix_hits"])]
)
def test_f08_hits_on_prompts_that_are_all_different(hit: float, expected: list[str]) -> None:
    assert names(seen(periodic(4, 0, hit=hit, prompt=20480.0), 4)) == expected


def test_f08_those_who_study_the_cache_see_no_alarm() -> None:
    assert names(seen(periodic(4, 0, hit=98.9), 4, nonce=False)) == []


# -- F11: nothing completed, exit code 0 --------------------------------------------------------------------------


@pytest.mark.parametrize("requests", [200, 7])
def test_f11_zeros_are_missing_and_win_nothing(requests: int, tmp_path: Path) -> None:
    subject = cell("mtp", 3)
    lost = record_from_evidence(
        write_evidence(tmp_path, subject, Truth(requests=requests, failed=requests)), subject
    )
    assert lost["status"] == "failed"
    assert lost["ttft_mean_s"] is None
    records = [measured(cell(), 10.0, ttft_median_s=0.2), lost]
    points = points_of(records)
    row = points.row(by_predicate=pl.col("method") == "mtp", named=True)
    assert (row["validity"], row["speedup"], row["per_request_tps"]) == ("INVALID", None, None)
    assert f"0 of {requests} requests completed" in row["validity_reasons"][0]
    assert body(latency_text(latency_table(points)))[1][3] == "failed"


# -- F14: out of memory at the higher concurrency alone -----------------------------------------------------------


@pytest.mark.parametrize("limit", [16, 4])
def test_f14_lower_concurrencies_stay_valid(limit: int) -> None:
    levels = [2, 4, 8, 16, 32, 64]
    records = [
        measured(cell(concurrency=c), 10.0)
        if c <= limit
        else failed(cell(concurrency=c), reasons=["resource_runtime (measure): OOM"])
        for c in levels
    ]
    table = points_table(cells_table(records))
    valid = table.filter(pl.col("validity") == "VALID")["concurrency"].to_list()
    assert valid == [c for c in levels if c <= limit]


# -- F19: inter-token latency under speculation -------------------------------------------------------------------


@pytest.mark.parametrize(("base", "spec"), [(0.0201, 0.0119), (0.0305, 0.0152)])
def test_f19_time_per_token_falls_as_throughput_rises(base: float, spec: float) -> None:
    records = [
        measured(cell(), 1 / base, tpot_median_s=base),
        measured(cell("mtp", 3), 1 / spec, tpot_median_s=spec, acceptance_length=4.0),
    ]
    row = points_of(records).row(1, named=True)
    assert row["speedup"] == pytest.approx(base / spec)
    assert row["tpot_median_s"] == spec
    assert row["validity"] == "VALID"


# -- F24: counters that include the warm-up -----------------------------------------------------------------------


@pytest.mark.parametrize("warmup", [120, 5000])
def test_f24_acceptance_is_of_the_window_alone(warmup: int, tmp_path: Path) -> None:
    # 3 x 0.7 of 1000 drafts; whatever the warm-up drafted, nothing of it was accepted.
    truth = Truth(requests=31, tokens=101, positions=(0.7, 0.7, 0.7), drafts=1000, warmup_drafts=warmup)
    subject = cell("mtp", 3)
    record = record_from_evidence(write_evidence(tmp_path, subject, truth), subject)
    assert record["acceptance_length"] == pytest.approx(3.1)
    assert record["acceptance_rate"] == pytest.approx(0.7)


# -- F25: n-gram's lucky drafts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "per_step", "speedup", "expected"),
    [
        (4.6, 1.72, 1.6, []),
        (4.6, 1.72, 2.4, ["too_fast"]),
        (3.2, 1.1, 1.15, []),
        (3.2, 1.1, 1.6, ["too_fast"]),
    ],
)
def test_f25_a_great_length_allows_no_great_speed(
    length: float, per_step: float, speedup: float, expected: list[str]
) -> None:
    row = measured(cell("ngram", 5), 10 * speedup, acceptance_length=length, tokens_per_step=per_step)
    assert names(row, measured(cell(), 10.0)) == expected


# -- F29: random prompts are another experiment -------------------------------------------------------------------


@pytest.mark.parametrize(("random", "chat"), [(1.12, 2.84), (1.05, 3.6)])
def test_f29_two_scenarios_are_never_averaged(random: float, chat: float) -> None:
    records = [
        measured(cell("mtp", 3, scenario="random"), 10.0, acceptance_length=random, random_prompts=True),
        measured(cell("mtp", 3, scenario="chat-sample"), 20.0, acceptance_length=chat),
    ]
    lengths = dict(points_of(records).select("scenario", "acceptance_length").rows())
    assert lengths == {"random": random, "chat-sample": chat}


@pytest.mark.parametrize(("method", "k", "told"), [("mtp", 2, True), ("none", 0, False)])
def test_f29_random_prompts_under_speculation_are_remarked(
    method: str, k: int, told: bool, tmp_path: Path
) -> None:
    subject = cell(method, k)
    traits = {"nonce": True, "forced_length": True, "random": True, "temperature": 0.0}
    truth = Truth(requests=10, tokens=24, positions=(0.8, 0.5) if k else None, extra={"scenario": traits})
    notes = record_from_evidence(write_evidence(tmp_path, subject, truth), subject)["notes"]
    assert any("random words" in note for note in notes) is told
