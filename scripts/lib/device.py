"""The device a server runs on: who may use it, how much of its memory is taken, what it is called."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_POLL_S = 0.2
_TELL_AFTER_S = 5.0
_FREED_WITHIN_MIB = 512


def lock_path(device: str) -> Path:
    """One file per device and machine. TMPDIR is not followed: two users' sweeps must meet at the same file."""
    folder = Path(os.environ.get("SPECDEC_LOCK_DIR", "/tmp"))  # noqa: S108 - a lock, opened without following its content
    return folder / f"specdec-{re.sub(r'[^A-Za-z0-9._-]', '_', device)}.lock"


def _open_lock(path: Path) -> int:
    for _ in range(3):
        try:
            return os.open(path, os.O_RDWR)
        except PermissionError:
            return os.open(path, os.O_RDONLY)
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
def exclusive(device: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the device for one server; `waiting(who)` is called once when somebody else keeps it (a boot that is still
    stopping has it for a moment).

    The lock goes with the process, so a killed sweep never blocks the next one.
    """
    path = lock_path(device)
    lock = _open_lock(path)
    try:
        told, came = False, time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told and time.monotonic() - came > _TELL_AFTER_S:
                    waiting(_holder(path))
                    told = True
                time.sleep(_POLL_S)
        _sign(lock)
        yield
    finally:
        os.close(lock)


def _sign(lock: int) -> None:
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps({"pid": os.getpid(), "folder": os.getcwd()}).encode(), 0)
    except OSError:
        # Another user's file: the lock holds all the same, only the name of its holder is not told.
        pass


def gpu_memory_used_mib() -> list[int | None]:
    """Memory in use per visible NVIDIA GPU; None for devices that report none (unified memory); [] without nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [int(line) if line.strip().isdigit() else None for line in output.splitlines()]


def await_memory_free(before: list[int | None], limit_s: float = 60.0) -> bool:
    """Wait until every GPU uses no more than it did before the server started (+ 512 MiB). False after `limit_s`.

    Devices that report no memory are not waited for: their memory is the host's, freed when the processes are gone.
    """
    deadline = time.monotonic() + limit_s
    while True:
        pairs = zip(before, gpu_memory_used_mib(), strict=False)
        if all(b is None or now is None or now <= b + _FREED_WITHIN_MIB for b, now in pairs):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)


def describe() -> dict[str, object]:
    """What the manifest keeps: GPU names, memory and driver, and the CPU's model and count."""
    return {
        "gpus": _gpus(),
        "cpu": _cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mib": _memory_mib(),
    }


def _gpus() -> list[dict[str, str]]:
    if shutil.which("nvidia-smi") is None:
        return []
    fields = ("name", "uuid", "memory.total", "driver_version")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [dict(zip(fields, map(str.strip, line.split(",")), strict=False)) for line in output.splitlines()]


def _cpu_model() -> str | None:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def _memory_mib() -> int | None:
    try:
        match = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        return None
    return int(match.group(1)) // 1024 if match else None


def free_disk_mib(path: Path) -> int:
    """Free space where `path` is or will be."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free // 2**20


def scratch_folder() -> str:
    """A private folder for files that must not outlive a boot (container id files)."""
    return tempfile.mkdtemp(prefix="specdec-")
