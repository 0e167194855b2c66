"""Building an artifact: aside, whole, described, and not again. The engine's Python is a stand-in that writes a file."""

import json
import signal
import subprocess
import sys
import time

import pytest

from scripts.lib.provision.artifacts import ARTIFACTS
from scripts.lib.provision.command import ProvisionError
from scripts.lib.provision.model_build import build_model
from tests.lib.provision import ROOT

STAND_IN = """#!{python}
import json, os, pathlib, sys, time
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
with open({runs!r}, "a") as file:
    file.write(sys.argv[3] + "\\n")
(out / "model.safetensors").write_text(os.environ.get("WEIGHTS", "weights of " + sys.argv[3]))
print("STATUS working", flush=True)
time.sleep(float(os.environ.get("SECONDS_TAKEN", "0")))
if os.environ.get("BROKEN"):
    sys.exit("ValueError: the GGUF file has a tensor x, which no Llama model has")
print("FACTS", json.dumps({{"held_out_acceptance": [0.45, 0.2]}}))
"""


@pytest.fixture
def place(tmp_path):
    python = tmp_path / "engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(STAND_IN.format(python=sys.executable, runs=str(tmp_path / "runs")))
    python.chmod(0o755)
    (tmp_path / "runs").write_text("")
    for need in ("smollm2", "smollm2-activations"):
        folder = tmp_path / "models" / need
        folder.mkdir(parents=True)
        (folder / "ready.json").write_text(json.dumps({"content": f"content of {need}"}))
    return tmp_path


def build(place, name="smollm2-mimo", root=ROOT):
    build_model(name, place / "engine", place / "models", root, place / "log")
    return json.loads((place / "models" / name / "ready.json").read_text())


def runs(place):
    return (place / "runs").read_text().split()


def test_an_artifact_is_built_described_and_moved_into_place(place, capsys):
    ready = build(place)
    assert ready["artifact"] == "smollm2-mimo"
    assert ready["weights_sha256"] == ready["files"]["model.safetensors"]
    assert len(ready["content"]) == 64
    assert not list((place / "models").glob(".*"))
    said = capsys.readouterr().err
    assert (
        "smollm2-mimo is ready; share of drafts accepted on held-out prompts: 0.45 for k=1, 0.20 for k=2"
        in said
    )


def test_a_whole_artifact_is_not_built_again(place):
    first = build(place)
    (place / "models" / "smollm2-mimo" / "ready.json").unlink()  # as Snakemake does before a job
    assert build(place) == first
    assert runs(place) == ["smollm2-mimo"]


@pytest.mark.parametrize("damage", ["", "weights of another"])
def test_damaged_weights_are_built_again(place, damage):
    first = build(place)
    (place / "models" / "smollm2-mimo" / "model.safetensors").write_text(damage)
    assert build(place) == first
    assert len(runs(place)) == 2


def test_what_it_is_made_of_decides_whether_it_is_built_again(place):
    build(place)
    (place / "models" / "smollm2" / "ready.json").write_text(json.dumps({"content": "other"}))
    build(place)
    assert len(runs(place)) == 2


def test_other_files_make_anew_what_is_made_from_them_and_nothing_else(place):
    root = place / "repository"
    prompts = root / ARTIFACTS["smollm2-activations"].files[0]
    prompts.parent.mkdir(parents=True)
    prompts.write_text("One.\n")

    def build_both():
        for name in ("smollm2-activations", "smollm2-draft"):
            build(place, name, root)
        return runs(place)

    assert build_both() == ["smollm2-activations", "smollm2-draft"]
    prompts.write_text("# a comment\nOne.\n")
    assert len(build_both()) == 2
    prompts.write_text("Another.\n")
    assert build_both()[2:] == ["smollm2-activations"]


def test_a_failure_is_told_with_its_cause_and_leaves_nothing(place, monkeypatch):
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(
        ProvisionError, match=r"building smollm2-mimo failed: ValueError: the GGUF file .*log"
    ):
        build(place)
    assert not (place / "models" / "smollm2-mimo").exists()
    monkeypatch.delenv("BROKEN")
    build(place)


def test_an_interrupted_build_leaves_nothing_that_looks_ready(place):
    command = [
        sys.executable,
        "-m",
        "scripts.build_model",
        "--artifact",
        "smollm2-mimo",
        "--log",
        str(place / "log"),
    ]
    command += ["--engine", str(place / "engine"), "--models", str(place / "models")]
    job = subprocess.Popen(
        command, cwd=ROOT, env={"SECONDS_TAKEN": "60", "PATH": "/usr/bin:/bin"}, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 20
    while not runs(place) and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    assert job.wait(10) == 128 + signal.SIGTERM
    assert not (place / "models" / "smollm2-mimo").exists()
    assert build(place)["artifact"] == "smollm2-mimo"
