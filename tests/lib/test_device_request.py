from __future__ import annotations

import pytest

from scripts.lib.device_request import device_request
from scripts.lib.launch import DeviceRequest
from tests.planning import engine, hardware, resolved

H100 = hardware(name="h100", nvml_name="H100", vllm_defaults={"gpu_memory_utilization": 0.92})


def test_a_server_on_the_cpu_needs_no_gpu():
    machine = hardware(name="cpu", accelerator="cpu")
    assert device_request(resolved(machine=machine, flags={"tensor-parallel-size": 2})) == DeviceRequest(
        "cpu"
    )


def test_what_the_hardware_file_says():
    assert device_request(resolved(machine=H100)) == DeviceRequest("h100", 1, "H100", False, 0.92)


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ({}, 1),
        ({"tensor-parallel-size": 4}, 4),
        ({"tensor-parallel-size": None}, 1),
        ({"tp": 2, "pipeline-parallel-size": 2}, 4),
        ({"tensor-parallel-size": 2, "data-parallel-size": 2}, 4),
        ({"tp-size": 4, "dp-size": 4, "enable-dp-attention": True}, 4),
    ],
)
def test_gpus_by_the_parallel_sizes(flags, count):
    build = engine(kind="sglang") if "tp-size" in flags else engine()
    assert device_request(resolved(machine=H100, build=build, flags=flags)).gpus == count
