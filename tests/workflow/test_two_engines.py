"""vLLM and SGLang in one sweep: one command each, one table."""

import json
import sys

import polars as pl
import pytest

from tests.workflow.project import FAKE_SERVER

SGLANG = {
    "description": "fake SGLang",
    "kind": "sglang",
    "launcher": "process",
    "version": "0.5.15",
    "command": [
        sys.executable,
        "-S",
        "-E",
        str(FAKE_SERVER),
        "sglang.launch_server",
        "--model-path",
        "{model}",
    ],
    "flags": {"enable-metrics": True, "decode-log-interval": 5, "max-running-requests": 16},
    "environment_names": ["FAKE_SERVER_FILE"],
    "log_interval_s": 0.1,
}


@pytest.fixture
def both(project):
    project.write("config/engines/fake-sglang.yaml", SGLANG)
    project.save(
        engine=["fake", "fake-sglang"],
        method=[{"name": "none"}, {"name": "ngram", "k": [3]}],
        concurrency=[1, 4],
        overrides=[{"when": {"engine_kind": "vllm"}, "flags": {"max-num-seqs": 16}}],
    )
    return project


def test_one_table_for_both(both):
    both.run()
    table = both.cells().sort("engine", "method", "concurrency")
    assert table["status"].to_list() == ["measured"] * 8
    for name in (
        "max_num_seqs",
        "resolved_max_model_len",
        "resolved_k",
        "resolved_method",
        "kv_cache_tokens",
    ):
        per_engine = table.group_by("method").agg(pl.col(name).n_unique())
        assert per_engine[name].to_list() == [1, 1], f"{name} differs between the engines"
    drafted = table.filter(pl.col("method") == "ngram")
    assert drafted["acceptance_source"].to_list() == ["metrics"] * 4
    assert all(abs(length - 2.55) < 0.35 for length in drafted["acceptance_length"])
    assert drafted["speedup"].null_count() == 0
    # Compared by memory, since the engines size their pools differently.
    assert table["kv_bytes_per_token"].null_count() == 0
    lines = (both.folder / "results/tables/hardware.md").read_text().splitlines()
    assert any("sim fake |" in line and "sim fake-sglang |" in line for line in lines), lines
    assert not any("Not alike" in line for line in lines), "context and slots are equal"
    sglang = json.loads(
        (
            both.folder / "results/cells/sim/fake-sglang/toy/ngram/k3/len1024/short/c1/r1/evidence.json"
        ).read_text()
    )
    argv = json.loads((both.folder / sglang["folder"] / "manifest.json").read_text())["server"]["argv"]
    assert argv[argv.index("--speculative-num-draft-tokens") + 1] == "4"
    assert sglang["cell"]["k"] == 3


def test_a_scheduler_that_dies_is_named_by_its_own_error(both):
    both.faults({"kind": "die_at_start", "method": "ngram"})
    both.save(concurrency=[1])
    both.run(status=1)
    rows = both.cells().filter(pl.col("engine") == "fake-sglang", pl.col("method") == "ngram")
    assert rows["status"].to_list() == ["failed"]
    assert "cutlass" in rows["failure_root_line"][0]
    healthy = both.cells().filter(pl.col("method") == "none")
    assert healthy["status"].to_list() == ["measured"] * 2
