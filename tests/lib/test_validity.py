"""Every check fires on what it is for, and is silent on what looks like it."""

from __future__ import annotations

import pytest

from scripts.lib.config import REPOSITORY
from scripts.lib.validity import default_limits, judge, judge_all
from scripts.lib.validity_case import INVALID, UNFAIR
from scripts.lib.validity_checks import CHECKS
from tests.evidence_factory import cell
from tests.record_factory import damaged, failed, infeasible, measured, mislabelled


def reasons(row: dict, baseline: dict | None = None, **limits: object) -> list[str]:
    _, found = judge(row, baseline, baseline, default_limits() | limits)
    return found


def names(row: dict, baseline: dict | None = None, **limits: object) -> list[str]:
    return [reason.partition(":")[0] for reason in reasons(row, baseline, **limits)]


def mtp(k: int = 3, concurrency: int = 1, tps: float = 20.0, **values: object) -> dict:
    return measured(cell("mtp", k, concurrency), tps, **values)


def test_nothing_speaks_against_a_plain_cell() -> None:
    assert judge(mtp(), measured(cell(), 12.0), None, default_limits()) == ("VALID", [])


def test_absent_facts_prove_nothing() -> None:
    row = measured(cell("mtp", 3), 20.0)
    absent = [name for name, value in row.items() if value is None]
    assert len(absent) > 50
    assert reasons(row) == []


FREE = {"forced_length": False}
QUEUE = {"running_asked": 64, "busy_lines": 6}
DIFFERENT = {"unique_prompts": True, "requests": 100, "prompt_tokens": 8000}
FIRES_AND_SILENT = [
    ("incomplete", {"completed": 7, "failed": 1}, {"completed": 8}),
    ("no_tokens", {"completion_tokens": 0}, {"completion_tokens": 1}),
    ("no_tokens", {"completion_tokens": None}, {"completion_tokens": 1}),
    ("truncated", FREE | {"truncated_share": 0.6}, FREE | {"truncated_share": 0.4}),
    ("truncated", FREE | {"truncated_share": 1.0}, {"forced_length": True, "truncated_share": 1.0}),
    ("short_window", {"wall_s": 0.24}, {"wall_s": 1.5}),
    ("few_requests", {"requests": 4, "completed": 4}, {"requests": 5, "completed": 5}),
    ("queueing", QUEUE | {"running_max": 10, "waiting_share": 1.0}, QUEUE | {"running_max": 64, "waiting_share": 1.0}),
    ("queueing", QUEUE | {"running_max": 62, "waiting_share": 0.9}, QUEUE | {"running_max": 62, "waiting_share": 0.3}),
    ("queueing", QUEUE | {"running_max": 20, "waiting_share": 0.0}, QUEUE | {"running_max": 40, "waiting_share": 0.0}),
    (
        "queueing",
        QUEUE | {"running_max": 20, "waiting_share": 0.0},
        QUEUE | {"running_max": 20, "waiting_share": 0.0, "busy_lines": 2},
    ),
    ("preemptions", {"preemptions": 1}, {"preemptions": 0}),
    ("prefix_hits", DIFFERENT | {"prefix_hit_share": 0.989}, DIFFERENT | {"prefix_hit_share": 0.004}),
    ("prefix_hits", DIFFERENT | {"prefix_hit_share": 0.989}, DIFFERENT | {"prefix_hit_share": 0.989, "unique_prompts": False}),
    ("acceptance_disagrees", {"acceptance_alarm": "acceptance disagrees: log 2.0, metrics 3.0"}, {"acceptance_alarm": None}),
    ("degenerate", {"degenerate_share": 0.5, "degenerate_words": "4 of 8 are empty"}, {"degenerate_share": 0.1}),
    ("partial_load", {"full_load_share": 0.4}, {"full_load_share": 0.9}),
    ("stalled", {"stalled_s": 6.1, "longest_stall_s": 6.1}, {"stalled_s": 5.9, "longest_stall_s": 5.9}),
    ("foreign_load", {"foreign_cpu_share": 0.14}, {"foreign_cpu_share": 0.03, "steal_share": 0.05}),
    ("foreign_load", {"foreign_cpu_share": 0.06, "steal_share": 0.05}, {"foreign_cpu_share": 0.06}),
    ("foreign_load", {"foreign_gpu_utilization": 30}, {"foreign_gpu_utilization": 0, "foreign_gpu_memory_gib": 9.0}),
    ("foreign_load", {"foreign_requests": 1, "requests": 8}, {"foreign_requests": 1, "requests": 80, "completed": 80}),
    ("engine_error", {"engine_error": "RuntimeError: x"}, {"engine_error": None}),
    ("compiled_in_window", {"compiled_in_window": 2}, {"compiled_in_window": 0}),
    ("client_lag", {"client_lag_p99_s": 0.011}, {"client_lag_p99_s": 0.0099}),
    ("client_lag", {"client_lag_share": 0.021}, {"client_lag_share": 0.019}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "bad", "good"), FIRES_AND_SILENT, ids=[f"{n}-{c[0]}" for n, c in enumerate(FIRES_AND_SILENT)]
)
def test_a_check_fires_and_keeps_silent(name: str, bad: dict, good: dict) -> None:
    assert names(mtp(**bad)) == [name]
    assert names(mtp(**good)) == []


def test_others_are_named_where_they_were_seen() -> None:
    (reason,) = reasons(mtp(foreign_cpu_share=0.3, foreign_words="rustc 12.0 s"))
    assert reason == "foreign_load: others took 30% of the machine's processor time (rustc 12.0 s)"


@pytest.mark.parametrize(
    ("total_s", "longest_s", "words"),
    [(90.9, 45.45, ", up to 45.5 s at a time"), (20.0, 20.0, "")],
)
def test_a_standstill_is_told_by_its_seconds(total_s: float, longest_s: float, words: str) -> None:
    (reason,) = reasons(mtp(wall_s=95.5, stalled_s=total_s, longest_stall_s=longest_s))
    assert (
        reason
        == f"stalled: no token for {total_s} of 95.5 s while requests were running{words}: the engine stood still"
    )


def test_made_up_acceptance_is_not_held_against_its_answers() -> None:
    assert names(mtp(degenerate_share=1.0, synthetic=True)) == []


def test_prompts_of_which_nothing_is_known_may_share_a_prefix() -> None:
    assert names(mtp(requests=100, prompt_tokens=8000, prefix_hit_share=0.9)) == []


def test_hits_on_the_chat_template_alone_are_no_hits() -> None:
    # 16 of 70 tokens in the cache: one block that every prompt begins with.
    shared = {"unique_prompts": True, "prefix_hit_share": 16 / 70, "requests": 100}
    assert names(mtp(prompt_tokens=7000, **shared)) == []
    assert names(mtp(prompt_tokens=7000, **shared), prefix_head_tokens=8) == ["prefix_hits"]
    assert names(mtp(prompt_tokens=700_000, **shared)) == ["prefix_hits"]


@pytest.mark.parametrize(
    ("k", "tps", "length", "fires"),
    [
        (3, 39.0, None, False),
        (3, 41.0, None, True),  # over k + 1
        (3, 41.0, 3.9, True),
        (3, 16.0, 1.12, True),  # F29's acceptance allows 1.12
        (3, 12.0, 1.12, False),  # within the tolerance
        (3, 26.0, 2.84, False),
        (15, 100.0, 9.5, False),
    ],
)
def test_nothing_is_faster_than_its_tokens_per_step(
    k: int, tps: float, length: float | None, fires: bool
) -> None:
    row = mtp(k, tps=tps, acceptance_length=length)
    assert names(row, measured(cell(), 10.0)) == (["too_fast"] if fires else [])


def test_f25_ngram_is_held_against_its_tokens_per_step_not_its_lucky_drafts() -> None:
    row = measured(cell("ngram", 5), 30.0, acceptance_length=4.6, tokens_per_step=1.72)
    assert names(row, measured(cell(), 10.0)) == ["too_fast"]
    assert names(row, measured(cell(), 18.0)) == []


def test_a_second_baseline_with_other_flags_may_be_faster() -> None:
    assert names(measured(cell("none-tuned", 0), 11.0), measured(cell(), 10.0)) == []


def test_without_a_baseline_nothing_is_too_fast() -> None:
    assert names(mtp(tps=1e6)) == []
    assert names(mtp(tps=1e6), measured(cell(), 0.0)) == []


@pytest.mark.parametrize(
    ("own", "other", "fires"),
    [
        ({"requests": 20, "key": "a"}, {"requests": 40, "key": "b"}, True),
        ({"requests": 40, "key": "a"}, {"requests": 40, "key": "b"}, False),
        # Other tools may measure by time, and then what is faster answers more.
        ({"requests": 20}, {"requests": 40, "key": "b"}, False),
        ({"requests": 20, "key": "a"}, {"requests": 40}, False),
    ],
)
def test_another_number_of_requests_than_the_baselines(own: dict, other: dict, fires: bool) -> None:
    verdict, found = judge(mtp(**own), measured(cell(), 12.0, **other), None, default_limits())
    words = ["unequal_requests: 20 requests were sent (none: 40)"]
    assert (verdict, found) == (("UNFAIR", words) if fires else ("VALID", []))


@pytest.mark.parametrize(
    ("own", "other", "wanted", "fires"),
    [
        ("cold", "warm", "same", True),
        ("warm", "cold", "same", False),  # `none` runs first and compiles for others too
        ("cold", "cold", "same", False),
        ("cold", "cold", "warm", True),
        ("warm", "cold", "warm", False),
        ("cold", "warm", "any", False),
        (None, "warm", "same", False),
        ("cold", None, "same", False),
    ],
)
def test_a_cold_compile_cache(own: str | None, other: str | None, wanted: str, fires: bool) -> None:
    row, baseline = mtp(compile_cache=own), measured(cell(), 12.0, compile_cache=other)
    assert names(row, baseline, compile_cache=wanted) == (["cold_compile_cache"] if fires else [])


def test_other_scheduler_settings_than_the_baseline_are_unfair() -> None:
    baseline = measured(cell(), 12.0, max_num_seqs=256, max_num_batched_tokens=32768)
    row = mtp(max_num_seqs=128, max_num_batched_tokens=32768)
    verdict, found = judge(row, baseline, baseline, default_limits())
    assert (verdict, found) == ("UNFAIR", ["unfair_settings: max_num_seqs 128 (none: 256)"])
    assert names(row, baseline, fair_settings=["max_num_batched_tokens"]) == []
    assert names(mtp(max_num_seqs=256), baseline) == []


@pytest.mark.parametrize(
    ("version", "fires"), [("0.27.1", True), (None, False)], ids=["with a log", "without a log"]
)
def test_a_limit_that_only_one_of_them_sets(version: str | None, fires: bool) -> None:
    # vLLM prints max_num_seqs only where it is set.
    baseline = measured(cell(), 12.0, max_num_seqs=None, engine_version="0.27.1")
    row = mtp(max_num_seqs=128, engine_version=version)
    expected = ["unfair_settings: max_num_seqs 128 (none: not set)"] if fires else []
    assert reasons(row, baseline) == expected


def test_what_speculation_itself_changes_is_not_unfair() -> None:
    baseline = measured(cell(), 12.0, async_scheduling=True, max_num_scheduled_tokens=8192)
    assert names(mtp(async_scheduling=False, max_num_scheduled_tokens=6144), baseline) == []


def test_the_worst_finding_decides_and_all_are_told() -> None:
    baseline = measured(cell(), 12.0, max_num_seqs=256)
    verdict, found = judge(mtp(max_num_seqs=128, preemptions=3), baseline, baseline, default_limits())
    assert verdict == INVALID
    assert [reason.partition(":")[0] for reason in found] == ["preemptions", "unfair_settings"]


@pytest.mark.parametrize("make", [failed, damaged, infeasible])
def test_a_row_without_a_result_is_invalid_by_its_status(make: object) -> None:
    row = make(cell("mtp", 3))
    verdict, found = judge(row, None, None, default_limits())
    assert verdict == INVALID
    assert found[0].startswith(f"{row['status']}: ")


def test_f11_nothing_completed_is_invalid_and_divides_nothing() -> None:
    row = failed(
        cell(), requests=200, completed=0, reasons=["request (measure): 0 of 200 requests completed"]
    )
    assert reasons(row) == ["failed: request (measure): 0 of 200 requests completed"]


def test_f13_two_hundred_requests_in_a_quarter_of_a_second() -> None:
    row = measured(
        cell(concurrency=8), 50.0, requests=200, completed=0, failed=200, wall_s=0.24, completion_tokens=0
    )
    assert names(row) == ["incomplete", "no_tokens", "short_window", "few_requests"]


def test_mislabelled_cells_are_invalid_whatever_else_they_are() -> None:
    row = mislabelled(cell("mtp", 3), 20.0)
    assert reasons(row) == [f"mislabelled: {row['reasons'][0]}"]


def test_limits_are_limits_of_the_config() -> None:
    row = mtp(concurrency=4, requests=12, completed=11, failed=1)
    assert names(row) == ["incomplete", "few_requests"]
    assert names(row, min_completed_share=0.9, min_requests_per_worker=2) == []


def test_a_table_is_judged_against_the_baseline_of_the_same_repeat() -> None:
    rows = [
        measured(cell(repeat=1), 10.0, max_num_seqs=256),
        measured(cell(repeat=2), 10.0, max_num_seqs=128),
        measured(cell("mtp", 1, repeat=1), 15.0, max_num_seqs=256),
        measured(cell("mtp", 1, repeat=2), 15.0, max_num_seqs=256),
        measured(cell("mtp", 1, repeat=3), 15.0, max_num_seqs=256),
    ]
    assert [verdict for verdict, _ in judge_all(rows, default_limits())] == [*["VALID"] * 3, UNFAIR, "VALID"]


def test_a_disturbed_baseline_accuses_nobody_where_another_repeat_is_sound() -> None:
    # Somebody else's job halved the baseline's speed in repeat 1: mtp k1 seems to be 3 times as fast there.
    rows = [
        measured(cell(repeat=1), 5.0, foreign_cpu_share=0.5),
        measured(cell(repeat=2), 10.0),
        measured(cell("mtp", 1, repeat=1), 15.0, acceptance_length=1.6),
        measured(cell("mtp", 1, repeat=2), 15.0, acceptance_length=1.6),
    ]
    assert [verdict for verdict, _ in judge_all(rows, default_limits())] == [INVALID, *["VALID"] * 3]
    # Where there is no other, one of the two is wrong all the same.
    assert judge_all([rows[0], rows[2]], default_limits())[1][1][0].startswith("too_fast: 3.00 times")


def test_settings_come_from_any_cell_of_the_baselines_boot() -> None:
    # The baseline failed at this concurrency, but its server's settings are known from another cell.
    rows = [measured(cell(concurrency=1), 10.0, max_num_seqs=256), failed(cell(concurrency=4))]
    rows.append(measured(cell("mtp", 1, 4), 15.0, max_num_seqs=8))
    assert judge_all(rows, default_limits())[-1][1] == ["unfair_settings: max_num_seqs 8 (none: 256)"]


def test_a_failed_or_synthetic_baseline_is_compared_with_nothing() -> None:
    other = [failed(cell()), measured(cell(), 1.0, synthetic=True)]
    for baseline in other:
        assert judge_all([baseline, mtp(tps=1000.0)], default_limits())[1] == ("VALID", [])


def test_every_check_is_documented() -> None:
    text = (REPOSITORY / "docs" / "trust.md").read_text(encoding="utf-8")
    for check in CHECKS:
        assert f"| {check.name} |" in text, check.name
    assert len({check.name for check in CHECKS}) == len(CHECKS)
