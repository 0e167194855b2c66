"""The sweep as its users see it: what is measured, when, and what the tables say against known truth."""

import json
import shutil

import polars as pl
import pytest

from tests.workflow.project import CELLS_ALONE

CELL = "results/cells/sim/fake/toy/mtp/k3/len1024/short/c4/r1/record.json"


def test_a_sweep_measures_everything_once_and_then_nothing(project):
    output = project.run()
    assert project.measured == [
        "none len1024 c1",
        "none len1024 c4",
        "mtp k3 len1024 c1",
        "mtp k3 len1024 c4",
    ]
    assert len(project.starts) == 2
    assert "cell 4/4" in output
    assert "boot 2/2" in output
    assert "All tables: results/tables" in output

    table = project.cells()
    assert table["status"].to_list() == ["measured"] * 4
    baseline, mtp = project.cell("none", 1), project.cell("mtp", 1)
    # 33 tokens: the first after ttft_s, then one step each of step_s.
    assert baseline["tokens_per_request"] == mtp["tokens_per_request"] == 33
    # No request can be faster than that, however busy the machine; how close it gets is a benchmark's business.
    assert baseline["ttft_median_s"] >= 0.0199
    assert 0 < baseline["per_request_tps"] <= 33 / (0.02 + 32 * 0.004)
    assert baseline["kv_cache_tokens"] == mtp["kv_cache_tokens"] == 90112
    assert baseline["acceptance_length"] is None
    assert mtp["acceptance_length"] == pytest.approx(2.55, abs=0.15)
    assert mtp["acceptance_per_position"] == pytest.approx([0.8, 0.5, 0.25], abs=0.06)
    assert mtp["speedup"] == pytest.approx(mtp["per_request_tps"] / baseline["per_request_tps"])
    for name in ("throughput", "kv_cache", "acceptance", "startup"):
        for form in ("md", "csv"):
            assert (project.folder / f"results/tables/{name}.{form}").stat().st_size > 50

    again = project.run()
    assert project.measured == []
    assert project.starts == []
    assert "Nothing to be done" in again


def test_more_is_measured_alone_and_the_rest_comes_from_the_store(project):
    project.target = CELLS_ALONE
    project.run()
    project.save(concurrency=[1, 2, 4])
    project.run()
    assert project.measured == ["none len1024 c2", "mtp k3 len1024 c2"]
    assert len(project.cells()) == 6

    output = project.run("--forceall")
    assert project.measured == project.starts == []
    assert "Error" not in output

    shutil.rmtree(project.folder / "results")
    project.run()
    assert project.measured == project.starts == []
    assert project.cells()["status"].to_list() == ["measured"] * 6

    project.save(concurrency=[4])
    project.run()
    assert project.starts == []
    assert len(project.cells()) == 2


def test_a_deleted_store_is_measured_again_although_results_are_there(project):
    project.target = CELLS_ALONE
    project.save(method=[{"name": "none"}])
    project.run()
    shutil.rmtree(project.folder / "store")
    project.run()
    assert project.measured == ["none len1024 c1", "none len1024 c4"]


def test_what_is_asked_is_what_is_made_although_snakemake_forgot_everything(project):
    """Without .snakemake, which nobody copies to another machine, only the files of tries and the store remember earlier flags."""
    project.save(method=[{"name": "none"}, {"name": "mtp", "k": [3]}], concurrency=[1])
    project.run()
    shutil.rmtree(project.folder / ".snakemake")
    project.save(method=[{"name": "none"}])
    project.run()
    assert project.measured == []
    assert project.cells()["method"].to_list() == ["none"]
    assert "mtp" not in (project.folder / "results/summary.txt").read_text()

    shutil.rmtree(project.folder / ".snakemake")
    project.save(overrides=[{"when": {"method": "none"}, "flags": {"max-num-seqs": 7}}])
    project.run()
    assert project.measured == ["none len1024 c1"]
    assert "--max-num-seqs 7" in project.cell("none", 1)["command"]


def test_one_file_that_is_there_is_made_anew_although_snakemake_forgot_everything(project):
    targets = [CELL, "results/tables/records.parquet"]
    project.save(method=[{"name": "mtp", "k": [3]}], concurrency=[4])
    project.run(*targets)
    for slots, target in enumerate(targets, 7):
        shutil.rmtree(project.folder / ".snakemake")
        project.save(overrides=[{"when": {"method": "mtp"}, "flags": {"max-num-seqs": slots}}])
        project.run(target)
        assert project.measured == ["mtp k3 len1024 c4"]
        project.run(target)
        assert "Nothing to be done" in project.console


def test_a_finished_cell_says_where_its_evidence_lies_without_a_server(project):
    pointer = CELL.replace("record", "evidence")
    # Whoever runs the workflow in a folder of their own may have such a package there.
    (project.folder / "scripts").mkdir()
    (project.folder / "scripts/__init__.py").write_text(
        "raise ImportError('not the scripts of this workflow')"
    )
    project.run(CELL)
    folder = project.evidence("mtp", 3, 4)
    shutil.rmtree(project.folder / "results")
    project.run(pointer, CELL)
    assert project.starts == []
    assert project.evidence("mtp", 3, 4) == folder
    assert json.loads((project.folder / CELL).read_text())["status"] == "measured"


def test_many_cells_of_one_boot_do_not_wait_for_those_that_cannot_start_yet(project):
    """Snakemake's pool is one worker short for a large group: the last cells start when others end."""
    project.target = CELLS_ALONE
    project.save(method=[{"name": "none"}], concurrency=[1, 2, 3, 4, 5, 6, 7, 8])
    output = project.run()
    assert len(project.measured) == 8
    ready, first = (
        next(line for line in output.splitlines() if words in line) for words in (": ready", ": warming")
    )
    seconds = [int(line[3:5]) * 60 + int(line[6:8]) for line in (ready, first)]
    assert (seconds[1] - seconds[0]) % 3600 < 20


def test_one_cell_is_measured_alone_with_one_boot(project):
    project.run(CELL)
    assert project.measured == ["mtp k3 len1024 c4"]
    assert len(project.starts) == 1
    record = json.loads((project.folder / CELL).read_text())
    assert record["status"] == "measured"
    assert record["concurrency"] == 4
    project.run()
    assert project.measured == ["none len1024 c1", "none len1024 c4", "mtp k3 len1024 c1"]


def test_a_cell_outside_the_matrix_can_be_asked_for(project):
    project.run(CELL.replace("/c4/", "/c3/"))
    assert project.measured == ["mtp k3 len1024 c3"]


@pytest.mark.parametrize(
    ("path", "words"),
    [("/mtp/k3/", "/mpt/k3/"), ("/mtp/k3/", "/none/k3/"), ("/short/", "/shrot/"), ("/fake/", "/fakee/")],
)
def test_a_cell_that_cannot_be_is_refused_before_anything_starts(project, path, words):
    output = project.run(CELL.replace(path, words), status=1)
    assert project.starts == []
    assert "mtp" in output or "none" in output or "short" in output or "fake" in output
    assert "Traceback" not in output


def test_what_decides_the_outcome_is_measured_anew_and_nothing_else(project):
    project.target = CELLS_ALONE
    project.run("--config", "concurrency=[1]")
    project.save(concurrency=[1])

    config = project.folder / "config/config.yaml"
    config.write_text("# a comment\n" + config.read_text())
    project.run()
    assert project.starts == []

    project.save(overrides=[{"when": {"method": "mtp"}, "flags": {"max-num-seqs": 7}}])
    why = project.run("why")
    assert "with --max-num-seqs 7" in why
    assert "none/k0" not in why
    project.run()
    assert project.measured == ["mtp k3 len1024 c1"]

    project.save(overrides=[])
    project.run()
    assert project.starts == [], "the older measurement is still in the store"

    project.save(epoch="second")
    project.run()
    assert project.measured == ["none len1024 c1", "mtp k3 len1024 c1"]


def test_plan_shows_states_and_commands_and_starts_nothing(project):
    project.save(exclude=[{"method": "none", "concurrency": 4}])
    output = project.run("plan")
    assert output.count("pending") >= 3
    assert '--speculative-config \'{"method":"mtp","num_speculative_tokens":3}\'' in output
    assert not (project.folder / "results/servers").exists()
    assert not (project.folder / "store").exists()


def test_infeasible_cells_are_rows_with_their_reason_and_no_failure(project):
    project.save(max_model_len=[1024, 16384])
    output = project.run()
    table = project.cells()
    refused = table.filter(pl.col("status") == "infeasible")
    assert refused["max_model_len"].to_list() == [16384] * 4
    assert all("8192" in reasons[0] for reasons in refused["reasons"])
    assert len(project.measured) == 4
    assert "infeasible" in output


def test_repeats_are_boots_with_the_order_reversed(project):
    project.target = CELLS_ALONE
    project.save(repeats=2, method=[{"name": "none"}])
    project.run()
    assert len(project.starts) == 2
    assert project.measured == ["none len1024 c1", "none len1024 c4", "none len1024 c4", "none len1024 c1"]


def test_forget_measures_one_cell_again_and_keeps_the_old_evidence(project):
    project.target = CELLS_ALONE
    import subprocess
    import sys

    from tests.workflow.project import ROOT

    project.run()
    pointer = project.folder / CELL.replace("record", "evidence")
    folder = project.evidence("mtp", 3, 4)
    command = [sys.executable, "-m", "scripts.forget", str(pointer)]
    elsewhere = project.folder.parent
    environment = project.environment | {"PYTHONPATH": str(ROOT)}
    assert subprocess.run(command, cwd=elsewhere, env=environment).returncode == 0
    project.run()
    assert project.measured == ["mtp k3 len1024 c4"]
    assert folder.with_name(folder.name + ".attempt-1").is_dir()
