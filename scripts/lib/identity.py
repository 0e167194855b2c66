"""The server's part of a cell's identity: everything that decides the outcome, as JSON components by name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from scripts.lib.config import REPOSITORY
from scripts.lib.launch import Container, Launch
from scripts.lib.provision.recipes import recipe_of
from scripts.lib.resolve import Resolved

PROTOCOL_VERSION = 4
"""Version of the measurement protocol (phases, client, evidence). Raising it re-measures every cell."""

IRRELEVANT_ENVIRONMENT = frozenset(
    {
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_HUB_OFFLINE",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_HUB_DISABLE_TELEMETRY",
        "TRANSFORMERS_OFFLINE",
        "VLLM_NO_USAGE_STATS",
        "DO_NOT_TRACK",
        "VLLM_LOG_STATS_INTERVAL",
        "VLLM_LOGGING_COLOR",
        "VLLM_LOGGING_LEVEL",
        "NO_COLOR",
        "PYTHONUNBUFFERED",
    }
)
"""Variables that change where files lie or what is logged, not what is measured: no part of the identity."""


def server_identity(resolved: Resolved, launch: Launch, epoch: str) -> dict[str, Any]:
    """Components by name. Left out: port, secrets, time limits, config file names, folders of this host."""
    engine, model, drafter = resolved.engine, resolved.model, resolved.drafter
    identity = {
        "protocol": PROTOCOL_VERSION,
        "epoch": epoch,
        "hardware": resolved.server.hardware,
        "engine": {
            "kind": engine.kind,
            "launcher": engine.launcher,
            "version": engine.version,
            "build": engine.build,
            "container": _container(engine.container),
        },
        "argv": list(launch.argv),
        "environment": {
            name: value for name, value in launch.environment.items() if name not in IRRELEVANT_ENVIRONMENT
        },
        "model": {"target": model.target, "revision": model.revision},
        "drafter": None if drafter is None else {"model": drafter.model, "revision": drafter.revision},
    }
    built = {need: recipe for need in launch.needs if (recipe := recipe_of(need, REPOSITORY))}
    if built:
        # What the workflow builds itself has no revision of its own; it is what it is made from.
        identity["built"] = built
    if not launch.gate:
        # Kept apart: nobody has seen to it that these servers answer in any language.
        identity["gate"] = False
    if engine.launcher == "external":
        # Nothing is known of that server but what the user calls it.
        identity["external"] = {"base_url": launch.base_url, "server": resolved.server.path}
    return _portable(identity, ((os.getcwd(), ""), (os.path.expanduser("~"), "~/")))


def _container(container: Container | None) -> dict[str, Any] | None:
    if container is None:
        return None
    mounts = [mount.split(":", 1)[1] for mount in container.mounts]
    return asdict(container) | {"mounts": mounts}


def _portable(value: Any, folders: Sequence[tuple[str, str]]) -> Any:
    """`value` with absolute paths under each folder of (folder, mark) written from the mark on, so that moving a checkout
    changes no identity.
    """
    if isinstance(value, dict):
        return {key: _portable(item, folders) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_portable(item, folders) for item in value]
    if isinstance(value, str):
        for folder, mark in folders:
            # Only whole absolute paths: "/" as a home or working directory must not eat every slash.
            if folder != "/":
                value = re.sub(rf"(?<![\w./-]){re.escape(folder.rstrip('/'))}/", mark, value)
    return value
