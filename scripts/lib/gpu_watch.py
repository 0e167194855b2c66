"""The server's GPUs while a window is open: power, energy, memory, clocks, what holds the clocks back. Read through NVML.

A thread of its own asks twice a second. NVML's calls leave Python's lock alone, so that the client's event loop goes on; how
long the asking took is kept (`asking_s`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

PERIOD_S = 0.5

BY_CLAIM, BY_PROCESS, BY_VARIABLE = "the boot's claim", "its processes", "CUDA_VISIBLE_DEVICES"
"""How it is known which GPUs are the server's."""

_MIB = 2**20
_PATIENCE_S = 10.0


class NoDevice(Exception):
    """There is nothing to watch; the message says why."""


class GpuWatch:
    """Samples of the GPUs that a server uses, from `start` to `stop`. `server` are its pids, `claimed` the UUIDs of the GPUs
    that its boot holds (none where that is not known), `environment` what it was started with.

    `samples` hold lists with one item per GPU: at_s (since the epoch), power_w, energy_j (a counter; only differences say
    something), memory_mib, sm_mhz, memory_mhz, utilization (percent), temperature_c, reasons (NVML's bit mask of what holds the
    clocks back). None for what the device does not tell.
    """

    def __init__(self, server: frozenset[int], claimed: Sequence[str], environment: Mapping[str, str]):
        """Raises NoDevice."""
        self._nvml = _nvml()
        try:
            self._select(server, claimed, environment)
        except self._nvml.NVMLError as error:
            self.close()
            raise NoDevice(f"NVML fails: {error}") from error
        except NoDevice:
            self.close()
            raise
        self.samples: list[dict[str, object]] = []
        self.asking_s = 0.0
        self.broken: str | None = None
        """What ended the watching before its time."""
        self.foreign: list[dict[str, object]] | None = None
        """Processes of others on these GPUs: pid, memory_mib, utilization (percent). None where the driver does not show even
        the server's own there (it runs in a container), so that others' could not be told from them."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._since_us = int(time.time() * 1e6)

    def _select(self, server: frozenset[int], claimed: Sequence[str], environment: Mapping[str, str]) -> None:
        nvml = self._nvml
        everything = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        if not everything:
            raise NoDevice("NVML lists no GPU")
        running = [[process.pid for process in self._processes(handle)] for handle in everything]
        uuids = [self._ask(nvml.nvmlDeviceGetUUID, handle) for handle in everything]
        chosen, self.selected_by = select(
            claimed, running, uuids, server, environment.get("CUDA_VISIBLE_DEVICES")
        )
        self._sees_server = any(server & set(running[index]) for index in chosen)
        self._server = server
        self._handles = [everything[index] for index in chosen]
        self.gpus = [self._describe(index, everything[index], uuids[index]) for index in chosen]

    def _describe(self, index: int, handle: object, uuid: str | None) -> dict[str, object]:
        nvml = self._nvml
        memory = self._ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        limit_mw = self._ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
        return {
            "index": index,
            "uuid": uuid,
            "name": self._ask(nvml.nvmlDeviceGetName, handle),
            "memory_mib": memory and memory.total // _MIB,
            "power_limit_w": limit_mw and limit_mw / 1000,
        }

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Take the last sample and end. Nothing is asked of NVML afterwards."""
        self._over.set()
        self._thread.join(_PATIENCE_S)
        if self._thread.is_alive():
            self.broken = f"NVML did not answer for {_PATIENCE_S:g} s"
        if self.broken is None:
            self.foreign = self._foreign()
            self.close()

    def close(self) -> None:
        self._ask(self._nvml.nvmlShutdown)

    def _run(self) -> None:
        try:
            due = time.monotonic()
            while not self._over.is_set():
                self._sample()
                due = max(due + PERIOD_S, time.monotonic())
                self._over.wait(due - time.monotonic())
            self._sample()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a driver, the measurement goes on
            self.broken = f"the GPUs could not be watched to the end: {type(error).__name__}: {error}"

    def _sample(self) -> None:
        began = time.perf_counter()
        at_s = time.time()
        rows = [self._read(handle) for handle in self._handles]
        self.samples.append({"at_s": at_s} | {name: [row[name] for row in rows] for name in rows[0]})
        self.asking_s += time.perf_counter() - began

    def _read(self, handle: object) -> dict[str, float | int | None]:
        nvml, ask = self._nvml, self._ask
        power_mw = ask(nvml.nvmlDeviceGetPowerUsage, handle)
        energy_mj = ask(nvml.nvmlDeviceGetTotalEnergyConsumption, handle)
        memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
        utilization = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
        return {
            "power_w": None if power_mw is None else power_mw / 1000,
            "energy_j": None if energy_mj is None else energy_mj / 1000,
            "memory_mib": None if memory is None else memory.used // _MIB,
            "sm_mhz": ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            "memory_mhz": ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            "utilization": None if utilization is None else utilization.gpu,
            "temperature_c": ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            "reasons": self._reasons(handle),
        }

    def _reasons(self, handle: object) -> int | None:
        """Drivers before 535 know them by the older name only."""
        reasons = self._ask(self._nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        return (
            self._ask(self._nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
            if reasons is None
            else reasons
        )

    def _ask(self, function: Callable[..., object], *arguments: object) -> object | None:
        """The answer, None for what this device or this driver does not tell."""
        try:
            return function(*arguments)
        except self._nvml.NVMLError:
            return None

    def _processes(self, handle: object) -> list[object]:
        nvml = self._nvml
        found = []
        for list_them in (
            nvml.nvmlDeviceGetComputeRunningProcesses,
            nvml.nvmlDeviceGetGraphicsRunningProcesses,
        ):
            found += self._ask(list_them, handle) or ()
        return found

    def _foreign(self) -> list[dict[str, object]] | None:
        if not self._sees_server:
            return None
        found: dict[int, dict[str, object]] = {}
        for handle in self._handles:
            used = {process.pid: process.usedGpuMemory for process in self._processes(handle)}
            shares = self._shares(handle)
            for pid in (used.keys() | shares.keys()) - self._server:
                entry = found.setdefault(pid, {"pid": pid, "memory_mib": None, "utilization": None})
                if used.get(pid) is not None:
                    entry["memory_mib"] = (entry["memory_mib"] or 0) + used[pid] // _MIB
                if pid in shares:
                    entry["utilization"] = max(entry["utilization"] or 0.0, shares[pid])
        return list(found.values())

    def _shares(self, handle: object) -> dict[int, float]:
        """Mean utilization in percent by process since the start, of those that NVML has samples of."""
        rows = self._ask(self._nvml.nvmlDeviceGetProcessUtilization, handle, self._since_us) or ()
        by_pid: dict[int, list[int]] = {}
        for row in rows:
            by_pid.setdefault(row.pid, []).append(row.smUtil)
        return {pid: sum(shares) / len(shares) for pid, shares in by_pid.items()}


def _nvml() -> ModuleType:
    """NVML, initialised. Raises NoDevice."""
    try:
        import pynvml
    except ImportError:
        raise NoDevice("the package nvidia-ml-py is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NoDevice(f"no NVIDIA driver answers on this machine ({error})") from None
    return pynvml


def select(
    claimed: Sequence[str],
    running: Sequence[Sequence[int]],
    uuids: Sequence[str | None],
    server: frozenset[int],
    visible: str | None,
) -> tuple[list[int], str]:
    """Indices of the server's GPUs, and how that is known: those with the `claimed` UUIDs; else where one of its processes
    runs; else those that its CUDA_VISIBLE_DEVICES names (by number or by the start of a UUID).

    Raises NoDevice when nothing tells: figures of other servers' GPUs would be worse than none.
    """
    ours = [index for index, uuid in enumerate(uuids) if uuid in claimed]
    if ours:
        return ours, BY_CLAIM
    at_home = [index for index, pids in enumerate(running) if server & set(pids)]
    if at_home:
        return at_home, BY_PROCESS
    names = [name.strip() for name in (visible or "").split(",")]
    named = [
        index
        for index, uuid in enumerate(uuids)
        if str(index) in names
        or any(name.startswith("GPU-") and (uuid or "").startswith(name) for name in names)
    ]
    if not named:
        raise NoDevice("none of the GPUs here is known to be the server's")
    return named, BY_VARIABLE
