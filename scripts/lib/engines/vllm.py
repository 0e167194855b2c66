"""vLLM's command line for a resolved server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scripts.lib.launch import PORT
from scripts.lib.resolve import Resolved

MARLIN_MTP_BACKEND = "triton"
"""Given to an MTP head when the target runs on marlin: marlin refuses the head's unquantised experts
(spec.md).
"""


def argv(resolved: Resolved) -> tuple[str, ...]:
    """The engine's command, then max-model-len, the merged flags by name, the speculative config, host and
    port.

    Flags are sorted so that their order in a config file changes neither the command nor a cell's identity.
    """
    model = resolved.model
    parts = [part.replace("{model}", model.target) for part in resolved.engine.command]
    if model.hub_revision:
        parts += ["--revision", model.hub_revision]
    parts += ["--max-model-len", str(resolved.server.max_model_len)]
    for flag, value in sorted(resolved.flags.items()):
        parts += _render(flag, value)
    if resolved.speculative is not None:
        parts += _render("speculative-config", speculative_config(resolved))
    return (*parts, "--host", _host(resolved), "--port", _port(resolved))


def speculative_config(resolved: Resolved) -> dict[str, Any]:
    """The JSON argument: method, model, num_speculative_tokens first, then the rest by name."""
    keys = dict(resolved.speculative or {})
    if keys.get("method") == "mtp" and resolved.flags.get("moe-backend") == "marlin":
        keys.setdefault("moe_backend", MARLIN_MTP_BACKEND)
    first = [key for key in ("method", "model", "num_speculative_tokens") if key in keys]
    return {key: keys[key] for key in (*first, *sorted(keys.keys() - set(first)))}


def _render(flag: str, value: Any) -> list[str]:
    if value is True:
        return [f"--{flag}"]
    if isinstance(value, (list, tuple)):
        return [f"--{flag}", *(_text(item) for item in value)]
    return [f"--{flag}", _text(value)]


def _text(value: Any) -> str:
    if isinstance(value, (Mapping, list, bool)) or value is None:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _bridged(resolved: Resolved) -> bool:
    """A container on docker's bridge network: reached through a published port, so it must listen on all
    interfaces.
    """
    container = resolved.engine.container
    return container is not None and container.network != "host"


def _host(resolved: Resolved) -> str:
    return "0.0.0.0" if _bridged(resolved) else "127.0.0.1"  # noqa: S104 - published on 127.0.0.1 only


def _port(resolved: Resolved) -> str:
    container = resolved.engine.container
    return str(container.port) if container is not None and _bridged(resolved) else PORT
