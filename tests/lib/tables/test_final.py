"""All final tables of one run, and what it prints at its end."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from scripts.lib.tables import markdown
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.final import FINALS, summary_lines, write_final
from tests.evidence_factory import cell
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, infeasible, measured


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_every_file_is_written_whatever_happened(records: list[dict], tmp_path: Path) -> None:
    write_final(cells_table(records), tmp_path)
    expected = {f"{name}.{form}" for name in FINALS for form in ("csv", "md")} | {"failures.md"}
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
    lines = summary_lines(cells_table(records), "out/tables")
    assert "| mtp    | 1 |           15.0 (1.50x) |" in lines
    assert lines[-2:] == [
        "2 of 4 cells have no usable result: 1 failed, 1 infeasible. Read out/tables/failures.md",
        "All tables: out/tables",
    ]
    assert max(map(len, lines)) <= markdown.WIDTH


def test_a_clean_run_mentions_no_failures() -> None:
    assert "failures.md" not in " ".join(summary_lines(cells_table([measured(cell(), 10.0)])))


def test_lost_requests_are_mentioned() -> None:
    lines = summary_lines(cells_table([measured(cell(), 10.0, completed=7, failed=1)]))
    assert "1 of 1 cells lost some of their requests. Read results/tables/failures.md" in lines


def test_a_huge_sweep_does_not_flood_the_console() -> None:
    records = [measured(cell(max_model_len=n), 10.0) for n in range(1, 200)]
    lines = summary_lines(cells_table(records))
    assert len(lines) < 70
    assert any("more lines in results/tables/throughput.md" in line for line in lines)
