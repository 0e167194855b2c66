"""Finished folders are recognised, everything else is not."""

import json

import pytest

from scripts.lib.provision import seal
from scripts.lib.provision.seal import READY, SEALED, checksums, empty, sealed_facts, write_json


def test_a_sealed_folder_gives_its_facts_back(tmp_path):
    seal.seal(tmp_path, "recipe", {"a": 1})
    assert sealed_facts(tmp_path, "recipe") == {"a": 1}


def test_another_recipe_an_unsealed_and_a_missing_folder_have_none(tmp_path):
    assert sealed_facts(tmp_path, "recipe") is None
    assert sealed_facts(tmp_path / "missing", "recipe") is None
    seal.seal(tmp_path, "recipe", {})
    assert sealed_facts(tmp_path, "another") is None


@pytest.mark.parametrize("damage", [b"", b"\0" * 64, b'{"recipe": "recipe"', b"[]", b'{"recipe": "recipe"}'])
def test_a_damaged_seal_is_no_seal(tmp_path, damage):
    seal.seal(tmp_path, "recipe", {})
    (tmp_path / SEALED).write_bytes(damage)
    assert sealed_facts(tmp_path, "recipe") is None


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / READY
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == [READY]


def test_emptying_removes_all_and_makes_the_folder(tmp_path):
    folder = tmp_path / "folder"
    empty(folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "file").write_text("x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (folder / "link").symlink_to(outside)
    empty(folder)
    assert list(folder.iterdir()) == []
    assert (outside / "kept").exists()


def test_checksums_cover_files_at_any_depth_and_not_the_seals(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(b"")
    (tmp_path / SEALED).write_text("{}")
    (tmp_path / READY).write_text("{}")
    assert checksums(tmp_path) == {
        "sub/b": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    }
