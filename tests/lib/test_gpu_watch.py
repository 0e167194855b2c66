"""Sampling through NVML, against a stand-in for its package: this machine may have no GPU."""

from __future__ import annotations

import sys
import time

import pytest

from scripts.lib.gpu_watch import BY_CLAIM, BY_PROCESS, BY_VARIABLE, GpuWatch, NoDevice, select

H200 = {
    "uuid": "GPU-aaaa",
    "name": "NVIDIA H200",
    "memory_mib": [143771, 120000],
    "power_limit_w": 700,
    "power_w": 420.5,
    "energy_j": [1000.0, 1100.0, 1200.0, 1300.0],
    "utilization": 97,
    "sm_mhz": 1980,
    "memory_mhz": 3201,
    "temperature_c": 51,
    "reasons": 4,
    "processes": [[100, 118000]],
    "shares": [[100, 95]],
}
GB10 = {
    "uuid": "GPU-gb10",
    "name": "NVIDIA GB10",
    "power_w": 31.0,
    "sm_mhz": 2400,
    "processes": [[100, None]],
}
SERVER = frozenset({99, 100})


def watched(server=SERVER, claimed=(), environment=None):
    watch = GpuWatch(server, claimed, environment or {})
    watch.start()
    watch.stop()
    return watch


def test_a_sample_holds_what_the_device_tells(nvml):
    nvml(H200)
    began = time.time()
    watch = watched()
    assert len(watch.samples) >= 2, "one at the start and one at the end, however short the window"
    first = watch.samples[0]
    assert began <= first.pop("at_s") <= time.time()
    assert first == {
        "power_w": [420.5],
        "energy_j": [1000.0],
        "memory_mib": [120000],
        "sm_mhz": [1980],
        "memory_mhz": [3201],
        "utilization": [97],
        "temperature_c": [51],
        "reasons": [4],
    }
    assert watch.gpus == [
        {"index": 0, "uuid": "GPU-aaaa", "name": "NVIDIA H200", "memory_mib": 143771, "power_limit_w": 700}
    ]
    assert watch.foreign == []


def test_a_unified_memory_device_is_watched_without_its_memory(nvml):
    nvml(GB10)
    watch = watched()
    assert watch.samples[-1]["memory_mib"] == [None]
    assert watch.samples[-1]["power_w"] == [31.0]
    assert watch.gpus[0]["memory_mib"] is None


def test_an_old_driver_tells_by_the_older_name_what_holds_the_clocks_back(nvml):
    nvml(H200 | {"reasons": None, "old_reasons": 32})
    assert watched().samples[0]["reasons"] == [32]


def test_samples_go_on_while_the_window_is_open(nvml, monkeypatch):
    monkeypatch.setattr("scripts.lib.gpu_watch.PERIOD_S", 0.01)
    nvml(H200)
    watch = GpuWatch(SERVER, (), {})
    watch.start()
    until = time.monotonic() + 20
    while len(watch.samples) < 5 and time.monotonic() < until:
        time.sleep(0.01)
    watch.stop()
    times = [sample["at_s"] for sample in watch.samples]
    assert len(times) >= 6
    assert times == sorted(times)
    assert watch.asking_s > 0


def test_others_on_the_servers_gpu_are_told(nvml):
    other = {"processes": [[100, 118000], [7, 2048], [8, None]], "shares": [[100, 60], [7, 30], [7, 40]]}
    nvml(H200 | other)
    assert sorted(watched().foreign, key=lambda process: process["pid"]) == [
        {"pid": 7, "memory_mib": 2048, "utilization": 35.0},
        {"pid": 8, "memory_mib": None, "utilization": None},
    ]


def test_others_are_unknown_where_the_server_itself_is_not_seen(nvml):
    nvml(H200 | {"processes": [[1, 118000]]})
    watch = watched(claimed=["GPU-aaaa"])
    assert watch.selected_by == BY_CLAIM
    assert watch.foreign is None


def test_only_the_servers_gpus_are_watched(nvml):
    neighbour = {"processes": [[7, 118000]], "shares": [[7, 95]]}
    nvml(H200 | neighbour, H200 | {"uuid": "GPU-bbbb", "power_w": 300.0})
    watch = watched()
    assert [gpu["index"] for gpu in watch.gpus] == [1]
    assert watch.foreign == [], "a server on another GPU takes nothing of this one"
    assert watch.samples[0]["power_w"] == [300.0]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"driver": False}, "no NVIDIA driver answers on this machine"),
        ({}, "NVML lists no GPU"),
        ({"gpu": H200 | {"processes": []}}, "none of the GPUs here is known to be the server's"),
    ],
)
def test_without_a_device_the_reason_is_said(nvml, told, why):
    nvml(*([told.pop("gpu")] if "gpu" in told else []), **told)
    with pytest.raises(NoDevice, match=why):
        GpuWatch(SERVER, (), {})


def test_without_the_package_the_reason_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NoDevice, match="nvidia-ml-py is not installed"):
        GpuWatch(SERVER, (), {})


def test_a_watch_that_breaks_says_so_and_keeps_what_it_had(nvml, monkeypatch):
    nvml(H200)
    watch = GpuWatch(SERVER, (), {})
    monkeypatch.setattr(watch, "_read", lambda handle: 1 / 0)
    watch.start()
    watch.stop()
    assert watch.samples == []
    assert "ZeroDivisionError" in watch.broken


@pytest.mark.parametrize(
    ("claimed", "running", "visible", "chosen", "by"),
    [
        (["GPU-b"], [[100], [], []], "0", [1], BY_CLAIM),
        (["GPU-a", "GPU-c"], [[], [], []], None, [0, 2], BY_CLAIM),
        (["GPU-elsewhere"], [[], [], [99]], None, [2], BY_PROCESS),
        ([], [[100], [], [99]], "1", [0, 2], BY_PROCESS),
        ([], [[], [], []], "1,2", [1, 2], BY_VARIABLE),
        ([], [[5], [], []], "GPU-c", [2], BY_VARIABLE),
    ],
)
def test_which_gpus_are_the_servers(claimed, running, visible, chosen, by):
    assert select(claimed, running, ["GPU-a", "GPU-b", "GPU-c"], SERVER, visible) == (chosen, by)


@pytest.mark.parametrize("visible", [None, "", "MIG-1234", "7"])
def test_gpus_of_nobody_known_are_not_taken_for_the_servers(visible):
    with pytest.raises(NoDevice):
        select([], [[5], [], []], ["GPU-a", "GPU-b", "GPU-c"], SERVER, visible)
