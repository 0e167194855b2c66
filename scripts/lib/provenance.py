"""Which code measured: versions and the workflow's commit, for the manifest."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), "openai": version("openai")}


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
