"""Where torch comes from: its CPU build where pip finds one, else the general build that every index has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

INDEX_VARIABLE = "SPECDEC_TORCH_INDEX"
"""Environment variable with the URL of a package index that has torch's CPU builds (PyTorch publishes one)."""

GENERAL_GIB = 10
"""Free disk for an engine environment with the general build of torch on x86_64: 6 GiB, and 3 GiB of downloads in pip's cache."""


@dataclass(frozen=True)
class Attempt:
    """One way to install torch. `arguments` follow `pip install`; `notice` is told to the user before it is tried."""

    arguments: tuple[str, ...]
    needs_gib: int | None = None
    notice: str | None = None


def attempts(version: str, environment: Mapping[str, str]) -> list[Attempt]:
    """Ways to install torch `version` (without local part), in the order to try them.

    The CPU build needs nothing that the engine's own requirements do not list. The general build is a CUDA build on x86_64 and
    brings CUDA's libraries as dependencies: it runs on a CPU all the same, but does not start without them.
    """
    index = environment.get(INDEX_VARIABLE, "").strip()
    cpu_build = Attempt(
        ("--no-deps", f"torch=={version}+cpu", *(("--extra-index-url", index) if index else ()))
    )
    where = f"neither in pip's sources nor at {INDEX_VARIABLE}" if index else "not in pip's sources"
    general = Attempt(
        (f"torch=={version}",),
        GENERAL_GIB,
        f"torch {version}+cpu (200 MB) is {where}: taking the general build, up to 3 GB to fetch and 6 GB on disk. To have "
        f"the small one, set {INDEX_VARIABLE} to the package index of CPU builds that PyTorch's installation page names.",
    )
    return [cpu_build, general]
