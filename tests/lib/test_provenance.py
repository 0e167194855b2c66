from __future__ import annotations

import json

from scripts.lib.provenance import built_facts, versions


def test_versions_of_what_measures_are_told():
    found = versions()
    assert set(found) == {"python", "openai", "aiohttp"}
    assert all(found.values())


def test_what_was_built_is_told_but_for_single_files(tmp_path):
    ready = tmp_path / "ready.json"
    ready.write_text(json.dumps({"packages": {"torch": "2.13.0"}, "build": "b", "files": {"a": "1"}}))
    assert built_facts([str(ready)]) == {str(ready): {"packages": {"torch": "2.13.0"}, "build": "b"}}


def test_what_is_not_there_or_says_nothing_is_left_out(tmp_path):
    for name, text in (("a", ""), ("b", "[]"), ("c", "{")):
        (tmp_path / name).write_text(text)
    assert built_facts([str(tmp_path / name) for name in "abcd"]) == {}
