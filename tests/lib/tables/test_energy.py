"""Energy per token beside power, memory and throttling; a machine without GPUs is one sentence."""

from __future__ import annotations

import pytest

from scripts.lib.tables import markdown
from scripts.lib.tables.energy import energy_table, energy_text
from tests.evidence_factory import cell
from tests.lib.tables.reading import body, header
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import failed, measured, points_of

POWER = {"gpu_energy_j": 4000.0, "joules_per_token": 2.5, "gpu_power_mean_w": 500.0, "slowdown_share": 0.0}


def watched(method: str, k: int, repeat: int = 1, **more: object) -> dict:
    return measured(cell(method, k, repeat=repeat), 10.0, **(POWER | more))


def test_figures_of_each_point_and_what_no_device_told() -> None:
    lines = energy_text(
        energy_table(points_of([watched("none", 0), watched("mtp", 3, joules_per_token=1.5)]))
    )
    assert header(lines)[3:6] == ["energy per token (J/token)", "power mean (W)", "throttled (share)"]
    assert [row[3] for row in body(lines)] == ["2.500", "1.500"]
    assert "No cell has: power max, GPU memory" in " ".join(lines)


def test_medians_and_intervals_over_repeats() -> None:
    records = [watched("none", 0, n, joules_per_token=float(value)) for n, value in enumerate((1, 2, 6), 1)]
    (row,) = energy_table(points_of(records)).to_dicts()
    assert row["joules_per_token"] == 2
    assert row["joules_per_token_low"] < 3 < row["joules_per_token_high"]


def test_a_failed_cell_shows_its_status() -> None:
    lines = energy_text(energy_table(points_of([watched("none", 0), failed(cell("mtp", 3))])))
    assert body(lines)[1][3] == "failed"


def test_a_machine_without_gpus_says_so() -> None:
    lines = energy_text(energy_table(points_of([measured(cell(), 10.0)])))
    assert lines[0].startswith("No GPU was read")
    assert not any("|" in line for line in lines)


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_types_do_not_depend_on_the_outcome(records: list[dict]) -> None:
    table = energy_table(points_of(records))
    assert table.schema == energy_table(points_of([watched("none", 0)])).schema
    assert max(map(len, energy_text(table))) <= markdown.WIDTH
