"""Words of a command line that all engines write alike: rendered flags, and where a server listens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scripts.lib.launch import PORT
from scripts.lib.resolve import Resolved


def start(resolved: Resolved) -> list[str]:
    """The engine's command with the target in it, and the revision to ask the hub for."""
    model = resolved.model
    words = [part.replace("{model}", model.target) for part in resolved.engine.command]
    return [*words, "--revision", model.hub_revision] if model.hub_revision else words


def rendered(flags: Mapping[str, Any]) -> list[str]:
    """Flags by name, so that their order in a config file changes neither the command nor a cell's identity."""
    return [word for flag, value in sorted(flags.items()) for word in flag_words(flag, value)]


def flag_words(flag: str, value: Any) -> list[str]:
    """`--flag` for true, `--flag a b` for a list, JSON for a mapping, else `--flag value`."""
    if value is True:
        return [f"--{flag}"]
    if isinstance(value, (list, tuple)):
        return [f"--{flag}", *(_text(item) for item in value)]
    return [f"--{flag}", _text(value)]


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list, bool)) or value is None:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def listen(resolved: Resolved) -> list[str]:
    """Host and port: loopback, but in a container on docker's bridge network, which is reached through a port published on
    loopback and must listen on all of its own interfaces.
    """
    container = resolved.engine.container
    if resolved.engine.launcher == "docker" and container is not None and container.network != "host":
        return ["--host", "0.0.0.0", "--port", str(container.port)]  # noqa: S104 - published on 127.0.0.1 only
    return ["--host", "127.0.0.1", "--port", PORT]
