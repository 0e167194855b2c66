"""What a table's row needs from the plan behind it: how its server is started. Rows may come from elsewhere (another
machine, another tool), so that not every server can be planned here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from scripts.lib.analysis.roofline import Facts, facts
from scripts.lib.cell import Server
from scripts.lib.config import ConfigError
from scripts.lib.launch import Launch
from scripts.lib.resolve import Resolved
from scripts.lib.sweep import Sweep


def resolved(sweep: Sweep, server: Server) -> Resolved | None:
    """The merged settings of a server, None when this config knows a part of it no longer, or never did."""
    try:
        return sweep.resolved(server)
    except ConfigError:
        return None


def devices_of(sweep: Sweep, server: Server) -> int:
    """How many devices a server occupies: its GPUs, 1 for one on a CPU and where nothing is known."""
    launch = launch_of(sweep, server)
    return 1 if launch is None else max(1, launch.device.gpus)


def launch_of(sweep: Sweep, server: Server) -> Launch | None:
    """How the server is started, None when this config cannot plan it."""
    return None if resolved(sweep, server) is None else sweep.launch(server)


def flags_of(sweep: Sweep, server: Server) -> Mapping[str, object] | None:
    """The flags that the server was given, None when this config cannot plan it."""
    settings = resolved(sweep, server)
    return None if settings is None else settings.flags


def launches_digest(sweep: Sweep) -> str:
    """Changes with anything that starts a server of the sweep by hand, also with what no measurement depends on."""
    found = hashlib.sha256()
    for server in sweep.servers:
        found.update(f"{server.path} {launch_of(sweep, server)}\n".encode())
    return found.hexdigest()


def facts_of(sweep: Sweep, server: Server) -> Facts:
    """What is known of the server's machine and model; empty for a server that this config does not know."""
    settings = resolved(sweep, server)
    if settings is None:
        return Facts()
    dtype = settings.flags.get("kv-cache-dtype")
    return facts(
        settings.hardware,
        settings.model.facts,
        devices_of(sweep, server),
        None if dtype is None else str(dtype),
    )
