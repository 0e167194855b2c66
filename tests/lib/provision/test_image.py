from __future__ import annotations

import hashlib
import json
import os

import pytest

from scripts.lib.provision.command import ProvisionError
from scripts.lib.provision.image import pull_image
from scripts.lib.server_process import pulled_identity

IMAGE = "docker://example/vllm:v1"


@pytest.fixture
def apptainer(tmp_path, monkeypatch):
    """A stand-in that notes its arguments and runs the given shell text with the file to write as $1."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    def write(text):
        (tools / "apptainer").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nset -- "$3"\n{text}\n')
        (tools / "apptainer").chmod(0o755)

    write('echo layers > "$1"')
    return write


def pull(tmp_path, image=IMAGE):
    pull_image(image, tmp_path / "image", tmp_path / "log")


def calls(tmp_path):
    return (tmp_path / "calls").read_text().splitlines()


def test_an_image_is_pulled_once(tmp_path, apptainer):
    pull(tmp_path)
    pull(tmp_path)
    assert calls(tmp_path) == [f"pull --force {tmp_path}/image/image.part.sif {IMAGE}"]
    digest = hashlib.sha256(b"layers\n").hexdigest()
    assert json.loads((tmp_path / "image/ready.json").read_text()) == {"image": IMAGE, "sha256": digest}
    assert pulled_identity(str(tmp_path / "image/image.sif"))["image_digest"] == f"sha256:{digest}"


def test_another_image_takes_its_place(tmp_path, apptainer):
    pull(tmp_path)
    pull(tmp_path, "docker://example/vllm:v2")
    assert len(calls(tmp_path)) == 2


def test_a_pull_that_broke_off_is_begun_anew(tmp_path, apptainer):
    apptainer('echo half > "$1"; echo FATAL: no network >&2; exit 255')
    with pytest.raises(ProvisionError, match=r"status 255: FATAL: no network.*name the file as `image`"):
        pull(tmp_path)
    assert not (tmp_path / "image/ready.json").exists()
    apptainer('echo layers > "$1"')
    pull(tmp_path)
    assert sorted(path.name for path in (tmp_path / "image").iterdir()) == [
        "image.sif",
        "ready.json",
        "sealed.json",
    ]


def test_without_apptainer(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProvisionError, match="apptainer cannot be started"):
        pull(tmp_path)


def test_a_file_of_the_user_s_has_no_digest(tmp_path):
    assert pulled_identity(str(tmp_path / "mine.sif"))["image_digest"] is None
