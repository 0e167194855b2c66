"""Speculators packed into a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.lib.checkpoint import packaged_speculator

PACKED = {"architectures": ["X"], "speculators_config": {"algorithm": "eagle3"}, "speculators_version": "0.1"}
KEPT = {"speculators_config": {"algorithm": "eagle3"}, "speculators_version": "0.1"}


def write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


def test_a_directory(tmp_path: Path) -> None:
    packed = write(tmp_path / "packed", json.dumps(PACKED))
    plain = write(tmp_path / "plain", json.dumps({"model_type": "llama"}))
    assert packaged_speculator({"target": str(packed), "revision": None}, {}) == KEPT
    assert packaged_speculator({"target": str(plain), "revision": "1"}, {}) == {}


@pytest.mark.parametrize("text", ["", "[1]", "\0"])
def test_a_config_that_is_none_says_nothing(tmp_path: Path, text: str) -> None:
    assert packaged_speculator({"target": str(write(tmp_path / "x", text)), "revision": None}, {}) == {}


def test_a_hub_name_is_looked_up_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "empty"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    hub = tmp_path / "hub"
    write(hub / "models--org--name" / "snapshots" / "0a1b", json.dumps(PACKED))
    refs = hub / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("0a1b")
    assert packaged_speculator({"target": "org/name", "revision": None}, {"HF_HOME": str(tmp_path)}) == KEPT
    assert (
        packaged_speculator({"target": "org/name", "revision": None}, {"HF_HOME": "/in/the/container"}) == {}
    )
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert (
        packaged_speculator({"target": "org/name", "revision": None}, {"HF_HOME": "/in/the/container"})
        == KEPT
    )
    assert packaged_speculator({"target": "org/name", "revision": "0a1b"}, {"HF_HUB_CACHE": str(hub)}) == KEPT
    assert packaged_speculator({"target": "org/name", "revision": "ffff"}, {"HF_HUB_CACHE": str(hub)}) == {}
    assert packaged_speculator({"target": "org/other", "revision": None}, {"HF_HUB_CACHE": str(hub)}) == {}
