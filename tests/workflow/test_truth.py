"""A server that runs something else than asked: measured, mislabelled, and out of every comparison."""

import json
import subprocess
import sys

from tests.workflow.project import ROOT

WRONG_K = {"kind": "wrong_k", "method": "mtp", "k_reported": 1}


def read(project, name):
    return (project.folder / "results/tables" / name).read_text(encoding="utf-8")


def forget(project, *cells):
    pointers = [str(project.folder / f"results/cells/sim/fake/toy/{cell}/evidence.json") for cell in cells]
    subprocess.run(
        [sys.executable, "-m", "scripts.forget", *pointers],
        cwd=project.folder,
        env=project.environment | {"PYTHONPATH": str(ROOT)},
        check=True,
    )


def test_a_server_with_another_k_is_mislabelled_from_end_to_end(project):
    project.faults(WRONG_K)
    output = project.run(status=1)
    assert len(project.measured) == 4
    assert "2 of 4 cells are mislabelled: read results/tables/failures.md" in output
    assert "2 of 4 cells have no usable result: 2 mislabelled." in output

    row = project.cell("mtp", 1)
    assert (row["status"], row["k"], row["resolved_k"]) == ("mislabelled", 3, 1)
    assert row["reasons"][0].startswith("k: asked 3, the server resolved 1 (server log line ")
    assert "num_spec_tokens=1" in row["reasons"][0]
    assert row["per_request_tps"] > 0
    assert row["speedup"] is None
    assert project.cell("none", 1)["speedup"] == 1

    for table in ("throughput.md", "acceptance.md", "kv_cache.md", "startup.md"):
        assert "mislabelled" in read(project, table), table
    failures = read(project, "failures.md")
    assert "mislabelled (2 cells measured, but not what the row says)" in failures
    assert row["reasons"][0] in failures

    again = project.run(status=1)
    assert project.starts == [], "the same command would be resolved the same way again"
    assert "2 of 4 cells are mislabelled" in again
    project.save(allow_failures=True)
    project.run(status=0)


def test_a_mislabelled_baseline_is_none_and_can_be_measured_again(project):
    said = "WARNING spec.py:1 draft model's max_model_len (512) is smaller than target's, reducing max_model_len to 512"
    project.truth |= {"startup_log": {"none": [said], "default": []}}
    project.save()
    project.run(status=1)
    row = project.cell("none", 4)
    assert row["status"] == "mislabelled"
    assert row["reasons"][0].startswith(
        "max_model_len: asked 1024, the server resolved 512 (limited by the drafter)"
    )
    mtp = project.cell("mtp", 4)
    assert (mtp["status"], mtp["speedup"]) == ("measured", None)
    assert "speedup: the `none` cell has no usable throughput (status mislabelled)" in mtp["absent"]

    project.truth |= {"startup_log": []}
    project.save()
    forget(project, *(f"none/k0/len1024/short/c{concurrency}/r1" for concurrency in (1, 4)))
    project.run()
    assert project.measured == ["none len1024 c1", "none len1024 c4"]
    assert project.cell("mtp", 4)["speedup"] > 0


def test_a_packaged_speculator_that_is_served_plainly_is_mislabelled(project):
    """F18: the checkpoint carries a speculator, the server says it runs none."""
    folder = project.folder / "packed"
    folder.mkdir()
    config = {"speculators_config": {"proposal_methods": [{"speculative_tokens": 3}]}}
    (folder / "config.json").write_text(json.dumps(config))
    project.write("config/models/packed.yaml", {"description": "packed", "target": "packed"})
    project.save(model=["packed"], method=[{"name": "none"}], concurrency=[1])
    project.run(status=1)
    row = project.cell("none", 1)
    assert row["status"] == "mislabelled"
    assert "speculator present, not active" in row["reasons"][0]


def test_a_method_by_a_name_of_its_own_is_labelled_well(project):
    method = [{"name": "none"}, {"name": "heads", "method": "mtp", "k": [3]}]
    project.save(method=method, concurrency=[1])
    project.run()
    row = project.cell("heads", 1)
    assert (row["status"], row["resolved_method"], row["resolved_k"]) == ("measured", "mtp", 3)
    assert row["notes"] == []
