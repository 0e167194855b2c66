"""Records of a whole sweep: every cell once, the same with one process or several."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib import collect
from scripts.lib.collect import collect_records
from tests.evidence_factory import STARTUP_FAILURE, Truth, cell, write_evidence, write_pointer


def sweep(root: Path) -> list[Path]:
    truths = {
        cell("none", concurrency=1): Truth(),
        cell("none", concurrency=4): Truth(requests=20),
        cell("mtp", 1): Truth(failure=STARTUP_FAILURE),
        cell("mtp", 3): Truth(failed=8),
    }
    return [
        write_pointer(root / "results", at, write_evidence(root / "store", at, it))
        for at, it in truths.items()
    ]


def test_every_cell_once_infeasible_ones_included(tmp_path: Path) -> None:
    infeasible = [{"cell": cell("eagle", 1).axes, "reasons": ["no drafter"]}]
    records = collect_records(sweep(tmp_path), infeasible)
    found = sorted((record["method"], record["concurrency"], record["status"]) for record in records)
    assert found == [
        ("eagle", 1, "infeasible"),
        ("mtp", 1, "failed"),
        ("mtp", 1, "failed"),
        ("none", 1, "measured"),
        ("none", 4, "measured"),
    ]


def test_nothing_to_collect() -> None:
    assert collect_records([], [], processes=4) == []


def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pointers = sweep(tmp_path)
    alone = collect_records(pointers, [], processes=1)
    monkeypatch.setattr(collect, "_WORTH_A_POOL", 1)
    assert collect_records(pointers, [], processes=2) == alone


def test_the_order_of_pointers_does_not_matter(tmp_path: Path) -> None:
    pointers = sweep(tmp_path)
    assert collect_records(pointers[::-1], []) == collect_records(pointers, [])
