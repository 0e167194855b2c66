"""The machine against what the config calls it, with a stand-in nvidia-smi on PATH."""

import json
import os

import pytest

H100 = {"description": "a card", "nvml_name": "H100", "memory_gib": 80}


@pytest.fixture
def cards(project, monkeypatch):
    """Call it with the names of the GPUs that the machine shall have."""
    folder = project.folder / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    project.write("config/hardware/sim.yaml", H100)
    project.save(method=[{"name": "none"}], concurrency=[1])

    def have(*names):
        rows = "\n".join(f"{i}, GPU-{i}{i}, {name}, 5" for i, name in enumerate(names))
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'END'\n{rows}\nEND\n")
        (folder / "nvidia-smi").chmod(0o755)

    return have


def manifest(project):
    return json.loads((project.evidence("none", 0, 1) / "manifest.json").read_text())


def test_the_wrong_machine_is_told_before_a_server_starts(project, cards):
    cards("NVIDIA GH200 480GB")
    project.run(status=1)
    assert project.starts == []
    row = project.cell("none", 1)
    assert (row["status"], row["failure_class"]) == ("failed", "mislabelled")
    assert "hardware sim is a H100, but this machine has: NVIDIA GH200 480GB" in row["failure_cause"]
    cards("NVIDIA H100 80GB HBM3")
    project.run()
    assert project.cell("none", 1)["device"] == "NVIDIA H100 80GB HBM3"


def test_a_server_sees_as_many_gpus_as_it_has_ranks(project, cards):
    cards("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3")
    project.run()
    assert [gpu["uuid"] for gpu in manifest(project)["server"]["gpus"]] == ["GPU-00"]
    project.save(overrides=[{"when": {"method": "none"}, "flags": {"tensor-parallel-size": 2}}])
    project.run()
    assert [gpu["uuid"] for gpu in manifest(project)["server"]["gpus"]] == ["GPU-00", "GPU-11"]
    project.save(overrides=[{"when": {"method": "none"}, "flags": {"tensor-parallel-size": 4}}])
    project.run(status=1)
    assert "make 4 GPUs, and 2 may be used here" in project.cell("none", 1)["failure_cause"]
    early, late = (
        "1 of 1 servers will not start: the server's parallel sizes make 4 GPUs",
        "FAILED (infeasible)",
    )
    assert 0 < project.console.find(early) < project.console.find(late)


def test_a_server_takes_the_device_that_is_named_and_leaves_the_other(project, cards):
    cards("NVIDIA T400 4GB", "NVIDIA H100 80GB HBM3")
    project.run()
    assert [gpu["uuid"] for gpu in manifest(project)["server"]["gpus"]] == ["GPU-11"]
    assert manifest(project)["server"]["environment"]["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_share_of_memory_that_the_host_cannot_spare(project, cards):
    cards("NVIDIA H100 80GB HBM3")
    project.write("config/hardware/sim.yaml", H100 | {"unified_memory": True})
    project.save(overrides=[{"when": {"method": "none"}, "flags": {"gpu-memory-utilization": 0.999}}])
    project.run(status=1)
    assert project.starts == []
    row = project.cell("none", 1)
    assert row["failure_class"] == "resource_start"
    assert "CPU and GPU share the memory" in row["failure_cause"]
