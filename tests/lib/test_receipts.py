from __future__ import annotations

import os

from scripts.lib.receipts import RECEIPTS, fingerprint, note_receipts, read_receipts, settled


def folder_with(root, name="a", text="data"):
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "requests.jsonl").write_text(text)
    return folder


def test_a_fingerprint_stays_until_something_is_written(tmp_path):
    folder = folder_with(tmp_path)
    before = fingerprint(folder)
    assert fingerprint(folder) == before
    (folder / "requests.jsonl").read_text()
    assert fingerprint(folder) == before
    (folder / "more").touch()
    assert fingerprint(folder) != before


def test_what_is_not_there_has_none(tmp_path):
    assert fingerprint(tmp_path / "gone") is None
    assert not settled(tmp_path / "gone")


def test_a_file_that_changed_just_now_is_not_settled(tmp_path):
    assert not settled(folder_with(tmp_path))


def test_receipts_are_added_dropped_and_forgotten_with_their_folder(tmp_path):
    for name in "abc":
        folder_with(tmp_path, name)
    note_receipts(tmp_path, {"a": "1", "b": "2", "gone": "3"}, [])
    note_receipts(tmp_path, {"c": "4"}, ["b"])
    assert read_receipts(tmp_path) == {"a": "1", "c": "4"}
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [RECEIPTS]


def test_an_unreadable_file_only_costs_time(tmp_path):
    for text in ("", "[]", "{", "null"):
        (tmp_path / RECEIPTS).write_text(text)
        assert read_receipts(tmp_path) == {}
    note_receipts(tmp_path / "no" / "store", {"a": "1"}, [])
    assert os.listdir(tmp_path) == [RECEIPTS]
