"""The device a server runs on: who may use it, how much of its memory is taken, what it is called."""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from scripts.lib import gpus
from scripts.lib.launch import DeviceRequest

_POLL_S = 0.2
_TELL_AFTER_S = 5.0
_FREED_WITHIN_MIB = 512
_VISIBLE = (gpus.VISIBLE, "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
MEMINFO = Path("/proc/meminfo")


def lock_path(device: str) -> Path:
    """One file per device and machine. TMPDIR is not followed: two users' sweeps must meet at the same file."""
    folder = Path(os.environ.get("SPECDEC_LOCK_DIR", "/tmp"))  # noqa: S108 - a lock, opened without following its content
    return folder / f"specdec-{re.sub(r'[^A-Za-z0-9._-]', '_', device)}.lock"


def _open_lock(path: Path) -> int:
    for _ in range(3):
        try:
            return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except PermissionError:
            return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            try:
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
                os.fchmod(handle, 0o666)
                return handle
            except FileExistsError:
                continue
    raise OSError(f"cannot open the device lock {path}")


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['pid']} in {holder['folder']}"
    except (OSError, ValueError, KeyError):
        return "another sweep"


@contextmanager
def exclusive(
    candidates: Sequence[str], count: int, waiting: Callable[[str], None]
) -> Iterator[tuple[str, ...]]:
    """Hold `count` of the devices for one server, the first that are free; yields their names. `waiting(who)` is called once
    when somebody else keeps them (a boot that is still stopping has its for a moment).

    The locks go with the process, so a killed sweep never blocks the next one. None is kept while others are waited for: two
    servers that want two devices each cannot block each other.
    """
    told, came = False, time.monotonic()
    while len(held := _take(candidates, count)) < count:
        _release(held)
        if not told and time.monotonic() - came > _TELL_AFTER_S:
            waiting(_holder(lock_path(next(name for name in candidates if name not in held))))
            told = True
        time.sleep(_POLL_S)
    try:
        for lock in held.values():
            _sign(lock)
        yield tuple(held)
    finally:
        _release(held)


def _take(candidates: Sequence[str], count: int) -> dict[str, int]:
    """Locks of up to `count` devices that nobody holds now, by name."""
    held: dict[str, int] = {}
    for name in candidates:
        lock = _open_lock(lock_path(name))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        held[name] = lock
        if len(held) == count:
            break
    return held


def _release(held: Mapping[str, int]) -> None:
    for lock in held.values():
        os.close(lock)


def _sign(lock: int) -> None:
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps({"pid": os.getpid(), "folder": os.getcwd()}).encode(), 0)
    except OSError:
        # Another user's file: the lock holds all the same, only the name of its holder is not told.
        pass


@dataclass(frozen=True)
class Claim:
    """The devices that one server has to itself. `gpus` is empty for a server on the CPU, and where no NVIDIA device is seen.

    `visible_devices` is what CUDA_VISIBLE_DEVICES has to say to the server; None when it may see all that the machine has.
    """

    gpus: tuple[gpus.Gpu, ...] = ()
    visible_devices: str | None = None

    @property
    def described(self) -> list[dict[str, str]]:
        """The GPUs as the manifest keeps them."""
        return [{"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name} for gpu in self.gpus]


def usable_gpus(listed: str | None = None) -> list[gpus.Gpu]:
    """The NVIDIA devices that this process may use (of those `listed`, as in CUDA_VISIBLE_DEVICES), those with less memory in use
    first (in GiB: idle ones keep their order, so that boots which are compared run on the same one)."""
    usable = gpus.visible(gpus.found(), os.environ)
    if listed is not None:
        usable = gpus.visible(usable, {gpus.VISIBLE: listed})
    return sorted(usable, key=lambda gpu: (gpu.memory_used_mib or 0) // 1024)


@contextmanager
def claim(
    request: DeviceRequest, usable: Sequence[gpus.Gpu], waiting: Callable[[str], None]
) -> Iterator[Claim]:
    """Hold what a server needs of this machine. GPUs are held by their UUIDs, whatever a config calls the machine."""
    if not request.gpus or not usable:
        with exclusive([_unseen(os.environ) if request.gpus else "cpu"], 1, waiting):
            yield Claim()
        return
    by_uuid = {gpu.uuid: gpu for gpu in usable}
    with exclusive(list(by_uuid), request.gpus, waiting) as held:
        taken = tuple(sorted((by_uuid[uuid] for uuid in held), key=lambda gpu: gpu.index))
        everything = {gpu.uuid for gpu in gpus.found()} == set(held)
        yield Claim(taken, None if everything else ",".join(gpu.mark for gpu in taken))


def _unseen(environment: Mapping[str, str]) -> str:
    """A name for GPUs that nvidia-smi does not show (other makers', or a machine without the tool): what a scheduler gave us."""
    given = next((environment[name] for name in _VISIBLE if environment.get(name)), None)
    return "gpu" if given is None else f"gpu {given}"


def memory_used_mib(claimed: Sequence[gpus.Gpu]) -> dict[str, int | None]:
    """Memory in use now on each claimed GPU, by UUID; None for devices that report none (unified memory)."""
    now = {gpu.uuid: gpu.memory_used_mib for gpu in gpus.found()} if claimed else {}
    return {gpu.uuid: now.get(gpu.uuid) for gpu in claimed}


def await_memory_free(claimed: Sequence[gpus.Gpu], limit_s: float = 60.0) -> bool:
    """Wait until every claimed GPU uses no more than when it was claimed (+ 512 MiB). False after `limit_s`.

    Devices that report no memory are not waited for: their memory is the host's, freed when the processes are gone.
    """
    deadline = time.monotonic() + limit_s
    before = {gpu.uuid: gpu.memory_used_mib for gpu in claimed}
    while True:
        used = memory_used_mib(claimed)
        if all(
            None in (before[uuid], now) or now <= before[uuid] + _FREED_WITHIN_MIB
            for uuid, now in used.items()
        ):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)


def host_memory_gib() -> tuple[float | None, float | None]:
    """(total, available) memory of the host as the operating system tells; None where it does not."""
    return tuple(
        None if kib is None else kib / 2**20 for kib in (_meminfo("MemTotal"), _meminfo("MemAvailable"))
    )


def describe() -> dict[str, object]:
    """What the manifest keeps: GPU names, memory and driver, and the CPU's model and count."""
    return {
        "gpus": _gpus(),
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": (_meminfo("MemTotal") or 0) // 1024 or None,
    }


def _gpus() -> list[dict[str, str]]:
    fields = ("name", "uuid", "memory.total", "driver_version")
    return [dict(zip(fields, row, strict=True)) for row in gpus.query(*fields)]


def _cpu_model() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def _meminfo(name: str) -> int | None:
    """A line of /proc/meminfo in KiB."""
    try:
        match = re.search(rf"^{name}:\s+(\d+) kB", MEMINFO.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return None
    return int(match.group(1)) if match else None


def scratch_folder() -> str:
    """A private folder for files that must not outlive a boot (container id files)."""
    return tempfile.mkdtemp(prefix="specdec-")
