"""What a run keeps of the machine around its windows: others' load, and the GPUs where there are some."""

import json
from pathlib import Path

import pytest

STAND_IN = Path(__file__).parents[1] / "fake_nvml"


def manifest(project, method="none", k=0):
    return json.loads((project.evidence(method, k, 1) / "manifest.json").read_text())


def test_energy_and_load_reach_the_table(project, tmp_path, monkeypatch):
    gpu = {
        "uuid": "GPU-a",
        "name": "NVIDIA H200",
        "power_w": 500.0,
        "memory_mib": [143771, 2048],
        "reasons": 0x20,
    }
    (tmp_path / "nvml.json").write_text(json.dumps({"gpus": [gpu]}))
    monkeypatch.setenv("FAKE_NVML_FILE", str(tmp_path / "nvml.json"))
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    project.engine(environment={"VLLM_LOG_STATS_INTERVAL": "0.2", "CUDA_VISIBLE_DEVICES": "0"})
    project.run("--config", "concurrency=[1]")
    row = project.cell("none", 1)
    assert row["gpu_power_mean_w"] == pytest.approx(500)
    assert row["gpu_energy_j"] == pytest.approx(500 * manifest(project)["window"]["wall_s"])
    assert row["joules_per_token"] == pytest.approx(row["gpu_energy_j"] / row["completion_tokens"])
    assert row["gpu_memory_peak_gib"] == 2
    assert row["slowdown_share"] == 1
    assert any("throttled inside the window: heat" in note for note in row["notes"])
    assert 0 <= row["foreign_cpu_share"] <= 1.1  # clocks tick every 10 ms, and the window is short
    assert any("a container" in reason for reason in row["absent"] if "foreign_gpu_memory_gib" in reason)
    state = manifest(project)["host_state"]
    assert state["server_cpu_s"] > 0
    assert state["client_cpu_s"] > 0

    # The same evidence says which requests were alike, and what was answered token by token.
    lines = {
        method: (project.evidence(method, k, 1) / "requests.jsonl").read_text().splitlines()
        for method, k in (("none", 0), ("mtp", 3))
    }
    ours, theirs = ([json.loads(line) for line in lines[method]] for method in ("none", "mtp"))
    assert [request["request_sha256"] for request in ours] == [
        request["request_sha256"] for request in theirs
    ]
    assert [request["token_ids"] for request in ours] == [request["token_ids"] for request in theirs]
    assert len({request["request_sha256"] for request in ours}) == len(ours)


def test_a_machine_without_gpus_says_so(project, monkeypatch):
    monkeypatch.setenv("FAKE_NVML_FILE", "/nowhere")
    project.run("--config", "concurrency=[1]", "repeats=2", 'method=[{"name": "none"}]')
    rows = project.cells()
    assert rows["joules_per_token"].null_count() == len(rows) == 2
    assert all(any("joules_per_token" in reason for reason in absent) for absent in rows["absent"])
    first, second = (
        json.loads((project.folder / folder / "requests.jsonl").read_text().splitlines()[-1])
        for folder in rows.sort("repeat")["evidence"]
    )
    assert first["request_sha256"] == second["request_sha256"], "repeats ask the same"
