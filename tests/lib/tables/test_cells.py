"""The tidy table: same columns and types whatever happened, nothing lost between parquet and csv."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from scripts.lib.cell import AXES
from scripts.lib.metrics import METRICS
from scripts.lib.tables.cells import SCHEMA, cells_table, flat, read_table, write_table
from tests.evidence_factory import cell
from tests.record_factory import damaged, failed, infeasible, measured, mislabelled

RECORDS = {
    "empty": [],
    "all failed": [failed(cell()), failed(cell("mtp", 1))],
    "all infeasible": [infeasible(cell("mtp", 3))],
    "all damaged": [damaged(cell())],
    "all mislabelled": [mislabelled(cell(), 20.0, async_scheduling=False, max_num_seqs=8, dtype="half")],
    "mixed": [
        measured(cell(), 20.0),
        measured(cell("mtp", 1), 30.0, acceptance_per_position=[0.8, 0.5], notes=["a; b"]),
        failed(cell("mtp", 3)),
        infeasible(cell("eagle", 1)),
    ],
}


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_columns_and_types_never_change(records: list[dict], tmp_path: Path) -> None:
    table = cells_table(records)
    assert dict(table.schema) == SCHEMA
    assert table.height == len(records)
    write_table(table, tmp_path / "cells.parquet", tmp_path / "cells.csv")
    assert_frame_equal(read_table(tmp_path / "cells.parquet"), table)
    assert (tmp_path / "cells.csv").read_text().splitlines()[0] == ",".join(SCHEMA)


def test_every_metric_is_a_column_in_registry_order() -> None:
    assert [name for name in SCHEMA if name in METRICS] == list(METRICS)
    assert tuple(SCHEMA)[: len(AXES)] == AXES


def test_rows_are_ordered_by_axes_with_counts_as_numbers() -> None:
    records = [measured(cell(concurrency=c), 1.0) for c in (16, 2, 1, 8)]
    assert cells_table(records)["concurrency"].to_list() == [1, 2, 8, 16]


def test_csv_joins_lists_with_semicolons_and_keeps_null_apart_from_zero(tmp_path: Path) -> None:
    records = [
        measured(cell("mtp", 2), 0.0, acceptance_per_position=[0.75, 0.0], notes=["one; two", "three"]),
        failed(cell("ngram", 2)),
    ]
    write_table(cells_table(records), tmp_path / "cells.parquet", tmp_path / "cells.csv")
    back = pl.read_csv(tmp_path / "cells.csv")
    assert back["acceptance_per_position"].to_list() == ["0.75;0.0", None]
    assert back["notes"].to_list()[0] == "one, two;three"
    assert back["aggregate_tps"].to_list() == [0.0, None]


def test_flat_leaves_other_columns_alone() -> None:
    frame = pl.DataFrame(
        {"a": [1, None], "b": [[1.5], None]}, schema={"a": pl.Int64, "b": pl.List(pl.Float64)}
    )
    assert flat(frame).to_dict(as_series=False) == {"a": [1, None], "b": ["1.5", None]}
