"""The thin scripts from evidence to tables, each run as Snakemake runs it: with a stand-in `snakemake`
object."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from scripts.lib.cell import Cell
from scripts.lib.validity import default_limits
from tests.evidence_factory import STARTUP_FAILURE, Truth, cell, write_evidence

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that fails leaves its log in the working directory."""
    monkeypatch.chdir(tmp_path)


def run_script(name: str, **snakemake: object) -> None:
    """Run it and expect exit status 0."""
    stand_in = SimpleNamespace(log=["unexpected.log"], **snakemake)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPTS / f"{name}.py"), {"snakemake": stand_in}, run_name="__main__")
    assert ended.value.code == 0


def both(stem: Path) -> SimpleNamespace:
    """The outputs of a table that is written twice."""
    return SimpleNamespace(parquet=f"{stem}.parquet", csv=f"{stem}.csv")


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, str]:
    """Evidence folders by the paths of their cells."""
    truths: dict[Cell, Truth] = {
        cell("none"): Truth(),
        cell("mtp", 1): Truth(requests=8, tokens=65, positions=(0.6,), drafts=320),
        cell("mtp", 3): Truth(failure=STARTUP_FAILURE),
    }
    return {at.path: str(write_evidence(tmp_path / "store", at, truth)) for at, truth in truths.items()}


def test_find_evidence_and_parse_cell_write_one_record(tmp_path: Path, folders: dict[str, str]) -> None:
    path = cell("mtp", 1).path
    pointer, record = tmp_path / path / "evidence.json", tmp_path / "record.json"
    run_script(
        "find_evidence",
        params=SimpleNamespace(cell=path, key="0" * 64, folder=folders[path]),
        output=SimpleNamespace(pointer=str(pointer)),
    )
    run_script(
        "parse_cell",
        input=SimpleNamespace(pointer=str(pointer)),
        output=SimpleNamespace(record=str(record)),
    )
    found = json.loads(record.read_text())
    assert (found["method"], found["status"], found["acceptance_length"]) == (
        "mtp",
        "measured",
        pytest.approx(1.6),
    )


def test_collect_and_build_leave_all_tables(tmp_path: Path, folders: dict[str, str]) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    run_script(
        "collect_cells",
        input=SimpleNamespace(imports=[], others=[]),
        params=SimpleNamespace(
            folders=folders,
            store=str(tmp_path / "store"),
            infeasible=[{"cell": cell("mtp", 4).axes, "reasons": ["no"]}],
            import_axes=[],
        ),
        output=SimpleNamespace(records=str(tables / "records.parquet")),
        threads=1,
    )
    run_script(
        "judge_cells",
        input=SimpleNamespace(records=str(tables / "records.parquet")),
        params=SimpleNamespace(limits=default_limits()),
        output=both(tables / "cells"),
    )
    run_script(
        "compare_cells",
        input=SimpleNamespace(cells=str(tables / "cells.parquet")),
        output=both(tables / "points"),
    )
    assert pl.read_parquet(tables / "points.parquet")["verdict"].to_list()[0] == "baseline"
    outputs = both(tables / "outputs")
    outputs.text = str(tables / "outputs.md")
    run_script("compare_outputs", input=SimpleNamespace(cells=str(tables / "cells.parquet")), output=outputs)
    assert pl.read_parquet(outputs.parquet)["verdict"].to_list()[1] == "identical"
    assert "One answer of each method" in (tables / "outputs.md").read_text()
    statuses = dict(pl.read_parquet(tables / "cells.parquet")["status"].value_counts().rows())
    assert statuses == {"measured": 2, "failed": 1, "infeasible": 1}
    run_script(
        "build_tables",
        input=SimpleNamespace(cells=str(tables / "cells.parquet"), points=str(tables / "points.parquet")),
        output=SimpleNamespace(failures=str(tables / "failures.md")),
    )
    assert (
        "2 of 4 cells have no usable result: 1 failed, 1 infeasible." in (tables / "failures.md").read_text()
    )
    assert "| mtp    | 1 |" in (tables / "throughput.md").read_text()
