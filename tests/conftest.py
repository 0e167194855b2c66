"""Fixtures of more than one folder."""

import json
import sys
import tarfile
from pathlib import Path

import pytest

from tests.no_skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - pytest looks for hooks here


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    """Say what the stand-in of NVML's package tells."""

    def told(*gpus, driver=True):
        (tmp_path / "nvml.json").write_text(json.dumps({"driver": driver, "gpus": gpus}))

    monkeypatch.setenv("FAKE_NVML_FILE", str(tmp_path / "nvml.json"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.syspath_prepend(str(Path(__file__).parent / "fake_nvml"))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    yield told
    sys.modules.pop("pynvml", None)


@pytest.fixture(scope="session")
def h200_store(tmp_path_factory):
    """The cell store that a run on two H200s left (tests/data/h200/README.md)."""
    folder = tmp_path_factory.mktemp("h200")
    with tarfile.open(Path(__file__).parent / "data/h200/evidence.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "store"
