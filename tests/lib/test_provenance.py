from __future__ import annotations

import json

import pytest

from scripts.lib import provenance
from scripts.lib.provenance import built_facts, versions


def test_a_package_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package):
        if package == "aiohttp":
            raise provenance.PackageNotFoundError
        return "1.2"

    monkeypatch.setattr(provenance, "version", version)
    found = versions()
    assert (found["openai"], found["aiohttp"]) == ("1.2", None)


def test_what_was_built_is_told_but_for_single_files(tmp_path):
    ready = tmp_path / "ready.json"
    ready.write_text(json.dumps({"packages": {"torch": "2.13.0"}, "build": "b", "files": {"a": "1"}}))
    assert built_facts([str(ready)]) == {str(ready): {"packages": {"torch": "2.13.0"}, "build": "b"}}


def test_what_is_not_there_or_says_nothing_is_left_out(tmp_path):
    for name, text in (("a", ""), ("b", "[]"), ("c", "{")):
        (tmp_path / name).write_text(text)
    assert built_facts([str(tmp_path / name) for name in "abcd"]) == {}
