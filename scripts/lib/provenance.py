"""Which code measured: versions and the workflow's commit, for the manifest."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path


def versions() -> dict[str, str]:
    """What the client ran on."""
    packages = {package: version(package) for package in ("openai", "aiohttp")}
    return {"python": platform.python_version(), **packages}


def built_facts(needs: Iterable[str]) -> dict[str, dict[str, object]]:
    """What the ready.json files in `needs` say of engines and models that the workflow built: package versions, digests.

    The checksums of single files are left out: `content` stands for them. A file that is not there says nothing.
    """
    found = {}
    for need in needs:
        try:
            facts = json.loads(Path(need).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(facts, dict):
            found[need] = {name: value for name, value in facts.items() if name != "files"}
    return found


def workflow_commit() -> str | None:
    """Commit of the workflow's checkout, with `+changes` when files differ from it; None outside a git checkout."""
    root = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            command = ["git", "-C", str(root), *arguments]
            return subprocess.run(
                command, capture_output=True, text=True, timeout=10, check=True
            ).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return None

    commit = git("rev-parse", "HEAD")
    return commit and commit + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
