import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.lib import device
from scripts.lib.gpus import Gpu
from scripts.lib.launch import Container, DeviceRequest
from tests.processes import wait_for

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from scripts.lib import device
from scripts.lib.gpus import Gpu
from scripts.lib.launch import DeviceRequest
names, count, seconds = sys.argv[1].split("+"), int(sys.argv[2]), float(sys.argv[3])
with device.exclusive(names, count, lambda holder: print("waiting for", holder, flush=True)) as held:
    print("held", *held, flush=True)
    time.sleep(seconds)
"""


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


@pytest.fixture
def hold():
    """Starts a process that holds `count` of the `names` (a+b) for some seconds."""
    started = []

    def start(names, seconds, count=1):
        argv = [sys.executable, "-c", HOLD, names, str(count), str(seconds)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_one_holder_at_a_time_and_a_dead_one_blocks_nobody(hold, monkeypatch):
    first = hold("gpu 0", 60)
    assert first.stdout.readline() == "held gpu 0\n"
    second = hold("gpu 0", 0)
    assert second.stdout.readline() == f"waiting for process {first.pid} in {os.getcwd()}\n"
    first.kill()
    first.wait()
    assert second.stdout.readline() == "held gpu 0\n"
    assert second.wait(10) == 0


def test_different_devices_do_not_wait_for_each_other(hold):
    assert hold("a", 60).stdout.readline() == "held a\n"
    assert hold("b", 0).wait(10) == 0


def test_the_first_free_devices_are_taken(hold):
    assert hold("a+b+c", 60).stdout.readline() == "held a\n"
    assert hold("a+b+c", 60, count=2).stdout.readline() == "held b c\n"


def test_who_waits_for_two_keeps_none_meanwhile(hold):
    assert hold("b", 60).stdout.readline() == "held b\n"
    greedy = hold("a+b", 60, count=2)
    assert hold("a", 0).stdout.readline() == "held a\n"
    assert greedy.poll() is None


def test_a_lock_file_of_somebody_else_is_used(locks):
    device.lock_path("shared").touch(mode=0o444)
    with device.exclusive(["shared"], 1, lambda holder: None):
        pass


def smi(locks, monkeypatch, text):
    (locks / "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
    (locks / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{locks}:{os.environ['PATH']}")


TWO = "echo '0, GPU-aa, NVIDIA H100 80GB HBM3, 9000'; echo '1, GPU-bb, NVIDIA H100 80GB HBM3, 5'"


def claim(gpus=1, name="h100"):
    return device.claim(DeviceRequest(name, gpus), device.usable_gpus(), lambda holder: None)


def test_a_gpu_is_held_by_what_it_is_not_by_what_a_config_calls_it(locks, monkeypatch, hold):
    smi(locks, monkeypatch, "echo '0, GPU-aa, NVIDIA H100 80GB HBM3, 5'")
    with claim(name="h100") as held:
        assert [gpu.uuid for gpu in held.gpus] == ["GPU-aa"]
        assert held.visible_devices is None, "it may see all there is"
        other = hold("GPU-aa", 0)
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.5)
    assert other.wait(10) == 0


def test_servers_beside_each_other_get_a_gpu_each(locks, monkeypatch):
    smi(locks, monkeypatch, TWO)
    with claim() as first, claim() as second:
        assert first.visible_devices == "1", "the one with more free memory"
        assert second.visible_devices == "0"
    with claim(gpus=2) as both:
        assert [gpu.index for gpu in both.gpus] == ["0", "1"]
        assert both.visible_devices is None


def test_idle_devices_are_taken_in_order(locks, monkeypatch):
    smi(locks, monkeypatch, "echo '0, GPU-aa, NVIDIA H100, 600'; echo '1, GPU-bb, NVIDIA H100, 5'")
    for _ in range(2):
        with claim() as held:
            assert held.visible_devices == "0"


def test_only_devices_that_the_shell_leaves_are_used(locks, monkeypatch):
    smi(locks, monkeypatch, TWO)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with claim() as held:
        assert held.visible_devices == "0"


def test_of_devices_that_a_container_names_no_other_is_held(locks, monkeypatch):
    smi(locks, monkeypatch, TWO)
    assert [gpu.uuid for gpu in device.usable_gpus(Container("i", gpus='"device=0"').devices)] == ["GPU-aa"]
    assert [gpu.uuid for gpu in device.usable_gpus(Container("i", gpus="all").devices)] == [
        "GPU-bb",
        "GPU-aa",
    ]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-bb")
    assert device.usable_gpus("0") == []


def test_a_server_on_the_cpu_holds_the_cpu(locks, monkeypatch):
    smi(locks, monkeypatch, TWO)
    with claim(gpus=0) as held:
        assert held == device.Claim()
        assert device.lock_path("cpu").exists()
        assert not device.lock_path("GPU-aa").exists()


def test_gpus_that_nobody_shows_are_told_apart_by_what_the_scheduler_gave(locks, monkeypatch):
    smi(locks, monkeypatch, "exit 9")
    with claim() as held:
        assert held == device.Claim()
        monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "1")
        with claim():
            assert device.lock_path("gpu 1").exists()


def test_waiting_for_memory_to_come_back(locks, monkeypatch):
    counter = locks / "count"
    line = "0, GPU-aa, NVIDIA H100, "
    smi(
        locks,
        monkeypatch,
        f"echo x >> {counter}; if [ $(wc -l < {counter}) -lt 3 ]; then echo '{line}9000'; else echo '{line}700'; fi",
    )
    claimed = [Gpu("0", "GPU-aa", "NVIDIA H100", 300)]
    assert device.await_memory_free(claimed, limit_s=30)
    assert len(counter.read_text().splitlines()) == 3
    smi(locks, monkeypatch, f"echo '{line}9000'")
    assert not device.await_memory_free(claimed, limit_s=0)
    shared = [Gpu("0", "GPU-aa", "NVIDIA GB10", None)]
    assert device.await_memory_free(shared, limit_s=0), "a device that reports nothing is not waited for"


def test_memory_of_the_host(locks, monkeypatch):
    monkeypatch.setattr(device, "MEMINFO", locks / "meminfo")
    assert device.host_memory_gib() == (None, None)
    (locks / "meminfo").write_text("MemTotal:  127506840 kB\nMemFree: 1 kB\nMemAvailable:  62914560 kB\n")
    total, available = device.host_memory_gib()
    assert (round(total, 1), available) == (121.6, 60.0)


def test_description_without_a_gpu():
    found = device.describe()
    assert found["cpus"] >= 1
    assert found["memory_mib"] > 100


def test_wait_for_reports_in_vain():
    with pytest.raises(AssertionError, match="in vain"):
        wait_for(lambda: False, 0.05)
