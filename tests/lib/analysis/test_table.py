"""The analysis of a whole sweep, whatever became of it."""

from __future__ import annotations

import polars as pl
import pytest

from scripts.lib.analysis.roofline import Facts
from scripts.lib.analysis.table import SCHEMA, analysis_table, analysis_text
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table
from tests.evidence_factory import cell
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import measured

KNOWN = Facts(bandwidth_gb_s=100, active_weight_gb=1.0)


def table(*records: dict, known: Facts = KNOWN) -> pl.DataFrame:
    return analysis_table(points_table(cells_table(records)), lambda server: known)


BASE = measured(cell(), 50.0, tpot_mean_s=0.02)
MTP = measured(cell("mtp", 3), 75.0, tpot_mean_s=0.0125, acceptance_length=2.4)


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_columns_and_text_whatever_happened(records: list[dict]) -> None:
    found = table(*records)
    assert found.schema == pl.Schema(SCHEMA)
    assert "\n".join(analysis_text(found))


def test_speedup_step_cost_and_share_of_the_limit() -> None:
    base, mtp = table(BASE, MTP).to_dicts()
    assert mtp["speedup"] == pytest.approx(1.5)
    assert mtp["step_cost"] == pytest.approx(2.4 / 1.6)
    assert mtp["break_even_length"] == pytest.approx(1.6)
    assert (base["limit_tps"], base["limit_share"], base["above_limit"]) == (100, 0.5, False)
    assert mtp["limit_share"] == pytest.approx(75 / 240)
    text = "\n".join(analysis_text(table(BASE, MTP)))
    assert "1.50x" in text
    assert "50%" in text
    assert "ABOVE" not in text


def test_more_than_the_machine_can_read_is_flagged() -> None:
    found = table(measured(cell(), 130.0, tpot_mean_s=0.008))
    assert found["above_limit"].to_list() == [True]
    text = "\n".join(analysis_text(found))
    assert "130% ABOVE" in text
    assert "1 of 1 points are above what memory bandwidth allows" in text


def test_unknown_facts_are_said_once() -> None:
    text = "\n".join(analysis_text(table(BASE, MTP, known=Facts())))
    assert "- limit_tps: the hardware file states no memory bandwidth (2 of 2 points)" in text


def test_what_stands_on_a_baseline_that_is_not_valid_is_marked() -> None:
    text = "\n".join(analysis_text(table(BASE | {"wall_s": 0.2}, MTP)))
    assert "| mtp !" in text
    assert "! not valid, or its `none` is not: see validity.md." in text
    assert "| mtp  " in "\n".join(analysis_text(table(BASE, MTP)))
