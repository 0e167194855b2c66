"""Whether a schedule kept its promise: kept, broken, open, and what it is set against."""

from __future__ import annotations

import polars as pl
import pytest

from scripts.lib.cell import Server
from scripts.lib.deploy.promise import SCHEMA, outcome, promise_table, promise_text
from scripts.lib.deploy.scheduled import Scheduled
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table
from tests.evidence_factory import cell
from tests.record_factory import failed, measured

SERVER = Server("cpu", "vllm", "smollm2", "mtp", 3, 1024)
SCHEDULE = Scheduled("mtp-schedule", SERVER, ((1, 2, 3), (3, 8, 1)), {1: 3, 4: 1}, 1, ("code",))
BASE = {("none", 0): (80, 300), ("mtp", 1): (100, 420), ("mtp", 3): (120, 360)}


def records(one: list[float], four: list[float]) -> list[dict]:
    """Repeats of the schedule at concurrency 1 and 4 beside those of fixed k, which scatter by 1%."""
    made = []
    for repeat in range(1, len(one) + 1):
        wobble = 1 + 0.005 * (repeat - 2)
        for (method, k), pair in BASE.items():
            made += [
                measured(cell(method, k, c, repeat=repeat), tps * wobble, requests=40)
                for c, tps in zip((1, 4), pair, strict=True)
            ]
        pair = (one[repeat - 1], four[repeat - 1])
        made += [
            measured(cell("mtp-schedule", 3, c, repeat=repeat), tps * wobble, requests=40)
            for c, tps in zip((1, 4), pair, strict=True)
        ]
    return made


def table(made: list[dict]) -> pl.DataFrame:
    return promise_table(points_table(cells_table(made)), [SCHEDULE], tolerance=0.02)


def test_as_fast_as_the_best_k_at_each_concurrency_is_kept() -> None:
    found = table(records([120, 120, 120], [421, 419, 420]))
    assert found.schema == pl.Schema(SCHEMA)
    assert found["verdict"].to_list() == ["kept", "kept"]
    assert found["promised_k"].to_list() == [3, 1]
    assert found["fixed_ratio"].to_list() == pytest.approx([1.2, 1.0], rel=0.01)
    assert found["none_ratio"].to_list() == pytest.approx([1.5, 1.4], rel=0.01)
    said = outcome(found.to_dicts())
    assert said.startswith("mtp-schedule kept its promise at every operating point (2).")
    assert "1.00x of the best fixed k at each, 1.10x of the best single k (k 1) and 1.45x of `none`." in said


def test_slower_than_the_k_it_imitates_is_broken() -> None:
    found = table(records([120, 120, 120], [361, 359, 360]))
    assert found["verdict"].to_list() == ["kept", "broken"]
    assert "broke its promise at 1 of 2 operating points" in outcome(found.to_dicts())


def test_noise_that_hides_a_loss_leaves_it_open() -> None:
    found = table(records([120, 120, 120], [300, 500, 400]))
    assert found["verdict"].to_list() == ["kept", "unresolved"]
    assert "is open at 1 of 2 operating points" in outcome(found.to_dicts())
    assert any("scatter" in line or "interval" in line for line in promise_text(found, []))


def test_single_runs_claim_nothing() -> None:
    found = table(records([120], [420]))
    assert found["verdict"].to_list() == ["single run", "single run"]
    assert "measure with repeats: 3 or more" in outcome(found.to_dicts())


def test_what_failed_or_was_not_measured_has_no_verdict() -> None:
    made = [
        row
        for row in records([120, 120], [420, 420])
        if (row["method"], row["concurrency"]) != ("mtp-schedule", 4)
    ]
    lost = table([*made, *(failed(cell("mtp-schedule", 3, 4, repeat=repeat)) for repeat in (1, 2))])
    assert lost["verdict"].to_list()[1] == "no verdict"
    assert table(made)["reason"].to_list()[1] == "the schedule was not measured here"


def test_without_a_schedule_the_reason_is_given() -> None:
    empty = promise_table(points_table(cells_table([])), [], 0.02)
    assert empty.schema == pl.Schema(SCHEMA)
    assert "- k 3 is best everywhere" in promise_text(empty, ["k 3 is best everywhere"])
    assert "There is no schedule to verify." in promise_text(empty, [])
