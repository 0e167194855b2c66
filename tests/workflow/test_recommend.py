"""From a sweep against a server of known truth to the answer, the files to deploy, and a schedule that is measured."""

import json

import polars as pl
import pytest
import yaml

ANYTHING_IS_VALID = {
    "min_window_s": 0,
    "min_requests_per_worker": 0,
    "max_client_lag_ms": 1000,
    "max_client_lag_share": 100,
    "max_stalled_share": 1,
    "max_foreign_cpu_share": 100,
    "speed_tolerance": 1,
}
METHODS = [{"name": "none"}, {"name": "mtp", "k": [1, 3]}]


@pytest.fixture
def sweep(project):
    """k 3 is best for one request, none for four: a step with drafts gets slower with every request beside it."""
    project.truth |= {"slope": {"none": 0, "default": 1.5}}
    project.save(method=METHODS, validity=ANYTHING_IS_VALID)
    return project


def test_a_sweep_ends_in_a_recommendation_files_to_deploy_and_a_schedule_that_is_verified(sweep):
    assert "mtp k3 at concurrency 1" in sweep.run("all"), "the answer is printed"
    results = sweep.folder / "results"
    found = json.loads((results / "recommendation.json").read_text())
    assert [(row["concurrency"], row["method"], row["k"]) for row in found["points"]] == [
        (1, "mtp", 3),
        (4, "none", 0),
    ]
    assert {row["verdict"] for row in found["points"]} == {"single run"}
    analysis = pl.read_parquet(results / "tables/analysis.parquet").filter(pl.col("method") != "none")
    product = analysis["tokens_per_step"] / analysis["step_cost"] * analysis["rest"]
    assert product.to_list() == pytest.approx(analysis["speedup"].to_list())
    (plan,) = found["plans"]
    assert plan["servers"][0]["method"] == "mtp"

    table = pl.read_parquet(results / "tables/recommendation.parquet")
    assert table["method"].to_list() == ["mtp", "none"]
    assert "single run" in (results / "tables/recommendation.md").read_text()

    deploy = results / "deploy"
    assert yaml.safe_load((deploy / "compose.yaml").read_text()) == {"services": {}}, (
        "measured without a container"
    )
    assert "recommend.image" in (deploy / "README.md").read_text()
    (schedule,) = json.loads((deploy / "schedule.json").read_text())["schedules"]
    assert schedule["ranges"] == [[1, 2, 3], [3, 256, 0]]

    sweep.save(recommend={"image": "vllm/vllm-openai:v0.27.1", "limits": {"tpot_s": 1}})
    sweep.run("all")
    (service,) = yaml.safe_load((deploy / "compose.yaml").read_text())["services"].values()
    assert service["image"] == "vllm/vllm-openai:v0.27.1"
    assert sweep.starts == []

    output = sweep.run("verify_schedule")
    assert sweep.measured == ["mtp-schedule k3 len1024 c1", "mtp-schedule k3 len1024 c4"]
    assert len(sweep.starts) == 1
    table = pl.read_parquet(results / "tables/schedule.parquet")
    assert table["promised_k"].to_list() == [3, 0]
    assert table["verdict"].to_list() == ["single run", "single run"]
    # With four requests it stops drafting, and k 3 would be about half as fast there.
    assert all(0.6 < ratio < 1.7 for ratio in table["promised_ratio"])
    assert table["fixed_k"].to_list() == [3, 3]
    assert table["fixed_ratio"][1] > 1.3
    assert "whether it keeps its promise is open at 2 of 2" in output

    again = sweep.run("verify_schedule")
    assert sweep.starts == []
    assert "Nothing to be done" in again

    beside = sweep.run("compare_published")
    assert sweep.starts == []
    assert "## Study A" in beside
    assert "hardware sim, not dgx-spark" in beside
