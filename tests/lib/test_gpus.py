from __future__ import annotations

import os

import pytest

from scripts.lib import gpus
from scripts.lib.gpus import Gpu

LISTED = [Gpu("0", "GPU-aaaa", "NVIDIA H100", 5, "0"), Gpu("1", "GPU-bbbb", "NVIDIA H100", 5, "1")]


@pytest.fixture
def smi(tmp_path, monkeypatch):
    """Puts a stand-in nvidia-smi of this shell text in front of the PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def write(text):
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)

    return write


def test_what_nvidia_smi_lists(smi):
    smi("echo '0, GPU-aa, NVIDIA GB10, [N/A]'; echo '1, GPU-bb, NVIDIA H200, 1234'")
    assert gpus.found() == [
        Gpu("0", "GPU-aa", "NVIDIA GB10", None, "0"),
        Gpu("1", "GPU-bb", "NVIDIA H200", 1234, "1"),
    ]


LIST = """
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-aaaa)
  MIG 3g.40gb     Device  0: (UUID: MIG-1111)
GPU 1: NVIDIA H200 (UUID: GPU-bbbb)
  MIG 1g.18gb     Device  0: (UUID: MIG-2222)
"""


def test_a_slice_has_the_name_that_nvml_gives_it(smi):
    smi(f"cat <<'END'{LIST}END")
    named = [gpu.name for gpu in gpus.visible([], {gpus.VISIBLE: "MIG-2222,MIG-1111,MIG-3333"})]
    assert named == ["NVIDIA H200 MIG 1g.18gb", "NVIDIA H100 80GB HBM3 MIG 3g.40gb", ""]


@pytest.mark.parametrize("text", ["exit 9", "echo 'No devices were found'", "exec sleep 0"])
def test_a_tool_that_lists_none(smi, text):
    smi(text)
    assert gpus.found() == []


def test_no_tool_at_all(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus.found() == []


@pytest.mark.parametrize(
    ("value", "uuids", "marks"),
    [
        (None, ["GPU-aaaa", "GPU-bbbb"], ["0", "1"]),
        ("1,0", ["GPU-bbbb", "GPU-aaaa"], ["1", "0"]),
        ("GPU-bb", ["GPU-bbbb"], ["GPU-bbbb"]),
        ("", [], []),
        ("-1", [], []),
        ("1,7,0", ["GPU-bbbb"], ["1"]),
        ("1,GPU-bbbb,0", ["GPU-bbbb"], ["1"]),
        ("MIG-1234", ["MIG-1234"], ["MIG-1234"]),
    ],
)
def test_what_cuda_visible_devices_leaves(value, uuids, marks):
    environment = {} if value is None else {gpus.VISIBLE: value}
    left = gpus.visible(LISTED, environment)
    assert [gpu.uuid for gpu in left] == uuids
    assert [gpu.mark for gpu in left] == marks
