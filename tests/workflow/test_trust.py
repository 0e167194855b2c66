"""Repeats, verdicts and validity as users get them, against a server of known truth."""

import polars as pl

FEW_ARE_ENOUGH = {
    "min_window_s": 0,
    "min_requests_per_worker": 1,
    "max_foreign_cpu_share": 10,
    "max_client_lag_ms": 1000,
    "max_client_lag_share": 100,
    "max_stalled_share": 1,
}


def points(project):
    return pl.read_parquet(project.folder / "results/tables/points.parquet")


def read(project, name):
    return (project.folder / "results/tables" / name).read_text(encoding="utf-8")


def test_methods_take_turns_in_every_round_and_limits_measure_nothing(project):
    # mtp drafts 2.55 tokens a step on average: far beyond any noise of this machine.
    project.save(repeats=2, validity=FEW_ARE_ENOUGH)
    project.run()
    rising = [f"{method} len1024 c{c}" for method in ("none", "mtp k3") for c in (1, 4)]
    falling = [f"{method} len1024 c{c}" for method in ("none", "mtp k3") for c in (4, 1)]
    assert project.measured == [*rising, *falling]
    assert len(project.starts) == 4

    table = points(project)
    assert table["repeats"].to_list() == [[1, 2]] * 4
    assert table["validity"].to_list() == ["VALID"] * 4
    assert set(table.filter(pl.col("method") == "none")["verdict"]) == {"baseline"}
    mtp = table.filter(pl.col("method") == "mtp")
    assert mtp["speedup_low"].is_not_null().all()
    assert (mtp["speedup"] > 1).all()
    assert "±" in read(project, "throughput.md")

    project.save(validity=FEW_ARE_ENOUGH | {"min_requests_per_worker": 1000})
    output = project.run()
    assert project.starts == project.measured == []
    assert points(project)["validity"].to_list() == ["INVALID"] * 4
    assert set(points(project)["verdict"]) == {"no verdict"}
    assert "8 of 8 measured cells are INVALID (few_requests" in output
    assert "few_requests" in read(project, "validity.md")


def test_a_server_with_other_slots_than_the_baseline_is_unfair(project):
    slots = [
        {"when": {"method": method}, "flags": {"max-num-seqs": n}} for method, n in (("none", 16), ("mtp", 8))
    ]
    project.save(overrides=slots, concurrency=[1], validity=FEW_ARE_ENOUGH)
    output = project.run()
    row = project.cell("mtp", 1)
    assert (row["validity"], row["validity_reasons"]) == (
        "UNFAIR",
        ["unfair_settings: max_num_seqs 8 (none: 16)"],
    )
    assert project.cell("none", 1)["validity"] == "VALID"
    assert "1 of 2 measured cells is UNFAIR (unfair_settings)" in output


def test_synthetic_acceptance_is_kept_apart_from_end_to_end(project):
    project.write("config/hardware/sim.yaml", {"description": "simulated", "accelerator": "gpu"})
    made_up = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.5}
    methods = [
        {"name": "none"},
        {"name": "mtp", "k": [3]},
        {"name": "what-if", "method": "mtp", "k": [3], "speculative_config": made_up},
    ]
    project.save(method=methods, concurrency=[1], validity=FEW_ARE_ENOUGH)
    project.run()
    assert dict(project.cells().select("method", "synthetic").rows()) == {
        "none": False,
        "mtp": False,
        "what-if": True,
    }
    text = read(project, "throughput.md")
    real, synthetic = text.split("## ")[1:]
    assert "what-if" not in real
    assert "synthetic acceptance" in synthetic
    assert "| mtp" not in synthetic
