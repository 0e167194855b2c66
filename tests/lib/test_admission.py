from __future__ import annotations

from dataclasses import replace

import pytest

from scripts.lib.admission import ahead, fitting, is_named, of_devices, of_memory
from scripts.lib.gpus import Gpu
from scripts.lib.launch import DeviceRequest

H200 = Gpu("0", "GPU-aa", "NVIDIA H200", 5)


def test_the_machine_that_is_named():
    assert of_devices(DeviceRequest("h200", 1, "H200"), [H200]) is None


def test_another_machine_than_is_named():
    failure = of_devices(DeviceRequest("h100", 1, "H100"), [H200])
    assert (failure.failure_class, failure.phase, failure.retry) == ("mislabelled", "startup", True)
    assert failure.cause == "hardware h100 is a H100, but this machine has: NVIDIA H200"
    assert "config/hardware/h100.yaml" in failure.fix


def test_a_machine_without_the_device_that_is_named():
    failure = of_devices(DeviceRequest("h100", 1, "H100"), [])
    assert "nvidia-smi shows no device" in failure.cause
    assert of_devices(DeviceRequest("other", 1), []) is None, "other makers' devices are not looked at"
    assert of_devices(DeviceRequest("cpu", 0), [H200]) is None


def test_more_ranks_than_devices():
    failure = of_devices(DeviceRequest("h200", 2, "H200"), [H200])
    assert failure.failure_class == "infeasible"
    assert "make 2 GPUs, and 1 may be used" in failure.cause
    assert of_devices(DeviceRequest("h200", 1, "H200"), [H200, H200]) is None


def test_a_small_device_for_the_screen_is_not_in_the_way():
    screen = Gpu("1", "GPU-bb", "NVIDIA T400 4GB", 5)
    request = DeviceRequest("h200", 1, "H200")
    assert of_devices(request, [screen, H200]) is None
    assert fitting(request, [screen, H200]) == [H200]
    assert fitting(DeviceRequest("any", 1), [screen, H200]) == [screen, H200]
    assert (
        "make 2 GPUs, and 1 may be used" in of_devices(DeviceRequest("h200", 2, "H200"), [screen, H200]).cause
    )


SLICES = [Gpu("", f"MIG-{i}", "NVIDIA H200 MIG 3g.71gb", mark=f"MIG-{i}") for i in "ab"]


def test_slices_are_hardware_of_their_own_and_cannot_be_joined():
    failure = of_devices(DeviceRequest("h200", 1, "H200"), SLICES)
    assert failure.cause == "hardware h200 is a H200, but this machine has: NVIDIA H200 MIG 3g.71gb"
    third = DeviceRequest("h200-mig", 1, "MIG 3g.71gb")
    assert of_devices(third, SLICES) is None
    assert "one slice (MIG) at most" in of_devices(replace(third, gpus=2), SLICES).cause
    assert "this machine has: MIG-c" in of_devices(third, [Gpu("", "MIG-c", "", mark="MIG-c")]).cause


def test_what_will_not_start_is_told_before_anything_is_built():
    one, two = DeviceRequest("h200", 1, "H200"), DeviceRequest("h200", 2, "H200")
    assert ahead({"a": one, "b": two, "c": two, "d": DeviceRequest()}, lambda: [H200]) == [
        "2 of 4 servers will not start: the server's parallel sizes make 2 GPUs, and 1 may be used here; lower the parallel sizes, or "
        "look at CUDA_VISIBLE_DEVICES"
    ]
    assert ahead({"d": DeviceRequest()}, lambda: pytest.fail("nobody asks for a GPU")) == []


@pytest.mark.parametrize(
    ("name", "wanted", "same"),
    [
        ("NVIDIA H100 80GB HBM3", "H100", True),
        ("NVIDIA GH200 480GB", "H200", False),
        ("NVIDIA GB10", "GB10", True),
        ("NVIDIA GB100", "GB10", False),
        ("NVIDIA GB200", "gb200", True),
    ],
)
def test_names_are_compared_by_words(name, wanted, same):
    assert is_named(name, wanted) is same


SPARK = DeviceRequest("dgx-spark", 1, "GB10", unified_memory=True, memory_share=0.85)


def test_a_host_that_can_spare_the_share():
    assert of_memory(SPARK, 121.0, 115.0) is None


def test_a_host_that_would_hang_for_want_of_memory():
    failure = of_memory(SPARK, 121.0, 104.0)
    assert (failure.failure_class, failure.retry) == ("resource_start", True)
    assert "0.85 of 121.0 GiB = 102.8 GiB, but 104.0 GiB are available" in failure.cause


@pytest.mark.parametrize(
    "request_",
    [DeviceRequest("h100", 1, "H100", False, 0.95), DeviceRequest("spark", 1, "GB10", True, None)],
)
def test_what_is_not_the_host_s_or_not_known_is_not_judged(request_):
    assert of_memory(request_, 100.0, 1.0) is None
    assert of_memory(SPARK, None, None) is None
