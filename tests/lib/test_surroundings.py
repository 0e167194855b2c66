"""Watching a window: real processes of this machine, a stand-in for the GPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from scripts.lib import host
from scripts.lib.endpoint import READY, Endpoint
from scripts.lib.host_metrics import host_metrics
from scripts.lib.power_metrics import power_metrics
from scripts.lib.surroundings import Surroundings

BURN = "import os, sys\nsys.stdin.readline()\nwhile sum(os.times()[:2]) < 0.3: pass\nprint(flush=True)\nsys.stdin.read()"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])"


@pytest.fixture
def server():
    """A supervisor whose child burns 0.3 s when it is told to."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


def endpoint(process, **facts):
    return Endpoint(READY, "boot", supervisor_pid=process.pid, facts={"argv": ["serve"]} | facts)


def work(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    process.stdout.readline()


def child_of(process):
    """The pid of the supervisor's child, once it is there."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        pids = host.tree(host.look().processes, [process.pid]) - {process.pid}
        if pids:
            return min(pids)
    raise AssertionError("no child")


@pytest.fixture
def gpus(nvml):
    nvml(driver=False)
    return nvml


def test_the_servers_descendants_are_the_server(server, gpus):
    child_of(server)
    with Surroundings(endpoint(server)) as around:
        work(server)
    state = around.host_state
    assert state["absent"] is None
    assert 0.1 < state["server_cpu_s"] < 1
    assert server.pid not in {process["pid"] for process in state["foreign_processes"]}
    assert around.device_watch["absent"].startswith("no NVIDIA driver answers on this machine")
    assert around.samples == []
    values, _ = host_metrics({"host_state": state, "device_watch": around.device_watch})
    assert values["foreign_cpu_share"] is not None
    json.dumps([state, around.device_watch])


def test_the_gpu_on_which_the_servers_child_runs_is_watched(server, gpus):
    gpus(
        {"uuid": "GPU-a", "power_w": 50.0, "processes": []},
        {
            "uuid": "GPU-b",
            "power_w": 400.0,
            "memory_mib": [81920, 4096],
            "processes": [[child_of(server), 4000]],
        },
    )
    with Surroundings(endpoint(server)) as around:
        began, ended = time.time(), time.time() + 0.05
        time.sleep(0.1)
    assert [gpu["uuid"] for gpu in around.device_watch["gpus"]] == ["GPU-b"]
    assert around.device_watch["foreign_processes"] == []
    values, _ = power_metrics(around.device_watch, around.samples, {"start_s": began, "end_s": ended}, 10)
    assert values["gpu_power_mean_w"] == pytest.approx(400)
    assert values["joules_per_token"] == pytest.approx(400 * (ended - began) / 10)
    json.dumps([around.device_watch, around.samples])


def test_the_gpus_that_the_boot_holds_are_the_servers_though_the_driver_hides_its_processes(server, gpus):
    gpus({"uuid": "GPU-a", "power_w": 50.0}, {"uuid": "GPU-b", "power_w": 400.0})
    with Surroundings(endpoint(server, gpus=[{"index": "1", "uuid": "GPU-b", "name": "H200"}])) as around:
        pass
    assert [gpu["uuid"] for gpu in around.device_watch["gpus"]] == ["GPU-b"]
    assert around.device_watch["foreign_processes"] is None


def test_a_server_on_the_cpu_has_no_gpu_though_there_is_one(server, gpus):
    gpus({"uuid": "GPU-a", "power_w": 50.0, "processes": []})
    with Surroundings(endpoint(server, gpus=[])) as around:
        pass
    assert "none of the GPUs here is known to be the server's" in around.device_watch["absent"]


def test_a_server_of_somebody_else_is_not_told_from_the_rest(server, gpus):
    gpus({"uuid": "GPU-a", "power_w": 50.0, "processes": []})
    with Surroundings(Endpoint(READY, "boot", supervisor_pid=server.pid)) as around:
        pass
    assert "not started here" in around.host_state["absent"]
    assert around.host_state["busy_cpu_s"] >= 0
    assert around.host_state["foreign_cpu_share"] is None
    assert "not started here" in around.device_watch["absent"]


def test_a_machine_that_cannot_be_looked_at_costs_nothing(server, gpus, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("/proc/stat")

    monkeypatch.setattr(host.psutil, "cpu_times", refuse)
    with Surroundings(endpoint(server)) as around:
        pass
    assert "PermissionError: /proc/stat" in around.host_state["absent"]


def test_gpus_that_cannot_be_asked_cost_nothing(server, gpus):
    gpus({"uuid": "GPU-a", "processes": "nonsense"})
    with Surroundings(endpoint(server)) as around:
        pass
    assert "cannot be watched" in around.device_watch["absent"]
    assert around.host_state["absent"] is None


def test_the_window_may_end_with_an_error(server, gpus):
    gpus({"uuid": "GPU-a", "power_w": 50.0, "processes": []})
    around = Surroundings(endpoint(server))
    with pytest.raises(KeyError), around:
        raise KeyError
    assert around.host_state["client_cpu_s"] >= 0
    assert os.getpid() not in {process["pid"] for process in around.host_state["foreign_processes"]}
