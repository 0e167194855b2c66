from __future__ import annotations

import pytest

from scripts.lib.cell import Cell, Server
from scripts.lib.pointer import Pointer

CELL = Cell(Server("cpu", "vllm", "m", "mtp", 3, 1024), "code", 4, 1)


@pytest.mark.parametrize("store", ["store", "/data/store"])
def test_the_folder_is_found_from_anywhere(tmp_path, store):
    path = tmp_path / "results" / "cells" / CELL.path / "evidence.json"
    made = Pointer(CELL, "0" * 64, f"{store}/{CELL.path}/0000")
    made.write(path)
    assert Pointer.read(path) == made
    assert made.folder_from(path) == tmp_path / store / CELL.path / "0000"


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"cell": {}, "key": "", "folder": ""}'])
def test_anything_else_is_refused_by_name(tmp_path, text):
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"evidence\.json names no evidence"):
        Pointer.read(path)


def test_no_file_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="names no evidence"):
        Pointer.read(tmp_path / "evidence.json")
