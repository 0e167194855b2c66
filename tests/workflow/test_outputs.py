"""Answers with and without speculation, over a real run against a server that can be told to answer otherwise."""

import polars as pl


def outputs(project):
    return pl.read_parquet(project.folder / "results/tables/outputs.parquet").sort("method", "concurrency")


def test_a_method_that_answers_otherwise_is_found_and_the_others_are_not(project):
    project.truth |= {"differ": {"mtp": 3}}
    project.save(
        repeats=2,
        concurrency=[1],
        method=[{"name": "none"}, {"name": "mtp", "k": [3]}, {"name": "ngram", "k": [3]}],
        measurement=project.matrix["measurement"] | {"min_requests": 4},
    )
    console = project.run()
    mtp, ngram, none = outputs(project).iter_rows(named=True)
    assert (none["compared"], none["identical"], none["noise_from"]) == (4, 4, "repeats")
    assert (ngram["compared"], ngram["identical"], ngram["verdict"]) == (8, 8, "identical")
    assert (mtp["compared"], mtp["identical"], mtp["unit"]) == (8, 0, "tokens")
    assert mtp["first_differences"] == [3] * 8
    assert mtp["verdict"] == "UNUSUAL"
    text = (project.folder / "results/tables/outputs.md").read_text()
    assert "WARNING: toy mtp k3, short at concurrency 1" in text
    assert "warning: toy mtp k3" in console
    assert "1 of 3 points answer otherwise than `none` does" in console
    assert none["sample"] != mtp["sample"]
    assert none["sample"].split()[0] in text


def test_sampled_answers_are_shown_but_not_compared(project):
    scenario = {
        "description": "sampled",
        "prompts": {"a": "Write an LRU cache in Python."},
        "warmup_prompts": {"w": "Say something kind."},
        "output": {"max_tokens": 12, "ignore_eos": True},
        "sampling": {"temperature": 0.8},
    }
    project.write("config/scenarios/short.yaml", scenario)
    console = project.run("--config", "concurrency=[1]")
    rows = outputs(project)
    assert rows["verdict"].to_list() == ["not compared"] * 2
    assert all("sampled at temperature 0.8" in reason for reason in rows["reason"])
    assert rows["sample"].null_count() == 0
    assert "warning: toy" not in console
    assert "answer otherwise" not in console
