"""What a target's config.json says of a speculator packed into it: some releases serve such a checkpoint plainly and
say nothing, so the evidence keeps it beside the log."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PREFIX = "speculator"


def packaged_speculator(model: Mapping[str, str | None], environment: Mapping[str, str]) -> dict[str, Any]:
    """The keys of config.json that begin with "speculator", e.g. speculators_config; empty for an ordinary checkpoint
    and for one that is neither a directory nor in the hub's cache on this machine.

    `model`: target and revision, as in a cell's identity. `environment`: the server's, over this process's own."""
    target, revision = str(model["target"]), model["revision"]
    # A container's HF_HOME is no folder of this machine; what lies there is the caller's cache, mounted.
    caches = ({**os.environ, **environment}, os.environ)
    for folder in (Path(target), *(_snapshot(target, revision, names) for names in caches)):
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(config, dict):
            return {key: value for key, value in config.items() if key.startswith(_PREFIX)}
    return {}


def _snapshot(target: str, revision: str | None, environment: Mapping[str, str]) -> Path:
    """Where the hub's cache keeps this revision (a branch or a commit)."""
    home = Path(environment.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    cache = Path(environment.get("HF_HUB_CACHE") or home / "hub")
    folder = cache / f"models--{target.replace('/', '--')}"
    try:
        commit = (folder / "refs" / (revision or "main")).read_text(encoding="utf-8").strip()
    except OSError:
        commit = revision or ""
    return folder / "snapshots" / commit
