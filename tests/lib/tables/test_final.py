"""All final tables of one run, and what it prints at its end."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from scripts.lib.tables import markdown
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.final import FINALS, summary_lines, write_final
from scripts.lib.tables.names import FINAL_TABLES
from tests.evidence_factory import cell
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, infeasible, measured, points_of


def summary_of(records: list[dict], *folder: str) -> list[str]:
    return summary_lines(cells_table(records), points_of(records), *folder)


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_every_file_is_written_whatever_happened(records: list[dict], tmp_path: Path) -> None:
    write_final(cells_table(records), points_of(records), tmp_path)
    expected = {f"{name}.{form}" for name in FINALS for form in ("csv", "md", "parquet")} | {
        f"failures.{form}" for form in ("csv", "md", "parquet")
    }
    assert {path.name for path in tmp_path.iterdir()} == expected
    for path in tmp_path.glob("*.md"):
        assert path.read_text().startswith("# ")
    for path in tmp_path.glob("*.csv"):
        assert pl.read_csv(path).width > 5


def test_the_summary_ends_with_where_to_read_on() -> None:
    records = [
        measured(cell(), 10.0),
        measured(cell("mtp", 1), 15.0),
        failed(cell("mtp", 3)),
        infeasible(cell("mtp", 4)),
    ]
    lines = summary_of(records, "out/tables")
    assert "| mtp    | 1 |           15.0 (1.50x) |" in lines
    assert lines[-2:] == [
        "2 of 4 cells have no usable result: 1 failed, 1 infeasible. Read out/tables/failures.md",
        "All tables: out/tables. On one page, with plots: snakemake --cores 1 report",
    ]
    assert max(map(len, lines)) <= markdown.WIDTH


def test_doubtful_cells_are_counted_by_verdict() -> None:
    records = [measured(cell(concurrency=c), 10.0, max_num_seqs=8) for c in (1, 2, 3)]
    records += [
        measured(cell("mtp", 1, 1), 15.0, max_num_seqs=4),
        measured(cell("mtp", 1, 2), 15.0, wall_s=0.1),
    ]
    doubts = "1 of 5 measured cells is INVALID (short_window), 1 UNFAIR (unfair_settings)."
    assert f"{doubts} Read results/tables/validity.md" in summary_of(records)
    assert not any("validity.md" in line for line in summary_of(records[:3]))


def test_the_snakefile_knows_the_same_tables() -> None:
    assert tuple(FINALS) == FINAL_TABLES


def test_a_clean_run_mentions_no_failures() -> None:
    assert "failures.md" not in " ".join(summary_of([measured(cell(), 10.0)]))


def test_lost_requests_are_mentioned() -> None:
    lines = summary_of([measured(cell(), 10.0, completed=7, failed=1)])
    assert "1 of 1 cells lost some of their requests. Read results/tables/failures.md" in lines


def test_a_huge_sweep_does_not_flood_the_console() -> None:
    records = [measured(cell(max_model_len=n), 10.0) for n in range(1, 200)]
    lines = summary_of(records)
    assert len(lines) < 70
    assert any("more lines in results/tables/throughput.md" in line for line in lines)
