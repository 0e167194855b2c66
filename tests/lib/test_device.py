import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.lib import device
from tests.processes import wait_for

ROOT = Path(__file__).parents[2]
HOLD = """
import sys, time
from scripts.lib import device
with device.exclusive(sys.argv[1], lambda holder: print("waiting for", holder, flush=True)):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_LOCK_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


def hold(name, seconds):
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, name, str(seconds)], stdout=subprocess.PIPE, text=True
    )


def test_one_holder_at_a_time_and_a_dead_one_blocks_nobody(locks):
    first = hold("gpu 0", 60)
    assert first.stdout.readline() == "held\n"
    second = hold("gpu 0", 0)
    assert second.stdout.readline() == f"waiting for process {first.pid} in {os.getcwd()}\n"
    first.kill()
    first.wait()
    assert second.stdout.readline() == "held\n"
    assert second.wait(10) == 0


def test_different_devices_do_not_wait_for_each_other():
    first = hold("a", 60)
    assert first.stdout.readline() == "held\n"
    assert hold("b", 0).wait(10) == 0
    first.kill()
    first.wait()


def test_a_lock_file_of_somebody_else_is_used(locks):
    device.lock_path("shared").touch(mode=0o444)
    with device.exclusive("shared", lambda holder: None):
        pass


def smi(locks, monkeypatch, text):
    (locks / "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
    (locks / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{locks}:{os.environ['PATH']}")


def test_memory_of_gpus(locks, monkeypatch):
    smi(locks, monkeypatch, "echo 1234; echo '[N/A]'")
    assert device.gpu_memory_used_mib() == [1234, None]
    smi(locks, monkeypatch, "exit 9")
    assert device.gpu_memory_used_mib() == []


def test_waiting_for_memory_to_come_back(locks, monkeypatch):
    counter = locks / "count"
    smi(
        locks,
        monkeypatch,
        f"echo x >> {counter}; if [ $(wc -l < {counter}) -lt 3 ]; then echo 9000; else echo 700; fi",
    )
    assert device.await_memory_free([300], limit_s=30)
    assert len(counter.read_text().splitlines()) == 3
    smi(locks, monkeypatch, "echo 9000")
    assert not device.await_memory_free([300], limit_s=0)
    assert device.await_memory_free([None], limit_s=0), "a device that reports nothing is not waited for"


def test_description_without_a_gpu():
    found = device.describe()
    assert found["cpus"] >= 1
    assert found["memory_mib"] > 100


def test_free_disk_of_a_folder_that_is_not_there_yet(locks):
    assert device.free_disk_mib(locks / "a" / "b") == pytest.approx(device.free_disk_mib(locks), abs=200)


def test_wait_for_reports_in_vain():
    with pytest.raises(AssertionError, match="in vain"):
        wait_for(lambda: False, 0.05)
