"""A stand-in for the package nvidia-ml-py, put on the path where there is no GPU.

What it tells is a JSON object in FAKE_NVML_FILE, read anew at every call: {"driver": true, "gpus": [{...}]}. A key that a GPU
lacks is answered with NotSupported, as a real driver does. `power_w` and `energy_j` may be lists: one item per call, the last
one from then on.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
NVML_TEMPERATURE_GPU = 0
_CLOCKS = {NVML_CLOCK_SM: "sm_mhz", NVML_CLOCK_MEM: "memory_mhz"}
_calls: dict[tuple[int, str], int] = {}


class NVMLError(Exception):
    pass


class NotSupported(NVMLError):
    def __str__(self) -> str:
        return "Not Supported"


def _told() -> dict:
    return json.loads(Path(os.environ["FAKE_NVML_FILE"]).read_text())


def _of(index: int, key: str) -> object:
    gpu = _told()["gpus"][index]
    if gpu.get(key) is None:
        raise NotSupported
    value = gpu[key]
    if isinstance(value, list) and key in ("power_w", "energy_j"):
        call = _calls[index, key] = _calls.get((index, key), -1) + 1
        return value[min(call, len(value) - 1)]
    return value


def nvmlInit():
    _calls.clear()
    if not _told().get("driver", True):
        raise NVMLError("NVML Shared Library Not Found")


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return len(_told()["gpus"])


def nvmlDeviceGetHandleByIndex(index):
    return index


def nvmlDeviceGetUUID(handle):
    return _of(handle, "uuid")


def nvmlDeviceGetName(handle):
    return _of(handle, "name")


def nvmlDeviceGetMemoryInfo(handle):
    total, used = _of(handle, "memory_mib")
    return SimpleNamespace(total=total * 2**20, used=used * 2**20)


def nvmlDeviceGetEnforcedPowerLimit(handle):
    return int(1000 * _of(handle, "power_limit_w"))


def nvmlDeviceGetPowerUsage(handle):
    return int(1000 * _of(handle, "power_w"))


def nvmlDeviceGetTotalEnergyConsumption(handle):
    return int(1000 * _of(handle, "energy_j"))


def nvmlDeviceGetUtilizationRates(handle):
    return SimpleNamespace(gpu=_of(handle, "utilization"))


def nvmlDeviceGetClockInfo(handle, which):
    return _of(handle, _CLOCKS[which])


def nvmlDeviceGetTemperature(handle, sensor):
    return _of(handle, "temperature_c")


def nvmlDeviceGetCurrentClocksEventReasons(handle):
    return _of(handle, "reasons")


def nvmlDeviceGetCurrentClocksThrottleReasons(handle):
    return _of(handle, "old_reasons")


def nvmlDeviceGetComputeRunningProcesses(handle):
    return [
        SimpleNamespace(pid=pid, usedGpuMemory=None if mib is None else mib * 2**20)
        for pid, mib in _of(handle, "processes")
    ]


def nvmlDeviceGetGraphicsRunningProcesses(handle):
    return []


def nvmlDeviceGetProcessUtilization(handle, since_us):
    return [SimpleNamespace(pid=pid, smUtil=share) for pid, share in _of(handle, "shares")]
