"""Records of a whole sweep: every cell once, the same with one process or several."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib import collect, receipts
from scripts.lib.collect import collect_records
from scripts.lib.receipts import fingerprint, read_receipts
from tests.evidence_factory import STARTUP_FAILURE, Truth, cell, write_evidence


def sweep(root: Path) -> dict[str, str]:
    """Evidence of four cells: their folders by path, as planning gives them."""
    truths = {
        cell("none", concurrency=1): Truth(),
        cell("none", concurrency=4): Truth(requests=20),
        cell("mtp", 1): Truth(failure=STARTUP_FAILURE),
        cell("mtp", 3): Truth(failed=8),
    }
    return {at.path: str(write_evidence(root / "store", at, it)) for at, it in truths.items()}


def test_every_cell_once_infeasible_ones_included(tmp_path: Path) -> None:
    infeasible = [{"cell": cell("eagle", 1).axes, "reasons": ["no drafter"]}]
    records = collect_records(sweep(tmp_path), tmp_path / "store", infeasible)
    found = sorted((record["method"], record["concurrency"], record["status"]) for record in records)
    assert found == [
        ("eagle", 1, "infeasible"),
        ("mtp", 1, "failed"),
        ("mtp", 1, "failed"),
        ("none", 1, "measured"),
        ("none", 4, "measured"),
    ]


def test_nothing_to_collect(tmp_path: Path) -> None:
    assert collect_records({}, tmp_path / "store", [], processes=4) == []


def test_several_processes_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, store = sweep(tmp_path), tmp_path / "store"
    alone = collect_records(folders, store, [], processes=1)
    monkeypatch.setattr(collect, "_WORTH_A_POOL", 1)
    assert collect_records(folders, store, [], processes=2) == alone


def test_the_order_of_cells_does_not_matter(tmp_path: Path) -> None:
    folders, store = sweep(tmp_path), tmp_path / "store"
    turned = dict(reversed(folders.items()))
    assert collect_records(turned, store, []) == collect_records(folders, store, [])


def test_whole_evidence_gets_a_receipt_and_damage_takes_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, "_SETTLED_NS", 0)
    folders, store = sweep(tmp_path), tmp_path / "store"
    collect_records(folders, store, [])
    found = read_receipts(store)
    assert found == {
        f"{path}/{Path(folder).name}": fingerprint(Path(folder)) for path, folder in folders.items()
    }

    rotten = Path(folders[cell("none", concurrency=4).path])
    requests = rotten / "requests.jsonl"
    requests.write_bytes(bytes(requests.stat().st_size))
    (record,) = (r for r in collect_records(folders, store, []) if r["status"] == "damaged")
    assert record["concurrency"] == 4
    assert len(read_receipts(store)) == 3


def test_evidence_that_changed_just_now_gets_no_receipt(tmp_path: Path) -> None:
    collect_records(sweep(tmp_path), tmp_path / "store", [])
    assert read_receipts(tmp_path / "store") == {}
