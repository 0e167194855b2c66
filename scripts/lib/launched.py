"""What a table's row needs from the plan behind it: how its server is started. Rows may come from elsewhere (another
machine, another tool), so that not every server can be planned here."""

from __future__ import annotations

from scripts.lib.cell import Server
from scripts.lib.config import ConfigError
from scripts.lib.launch import Launch
from scripts.lib.resolve import Resolved
from scripts.lib.sweep import Sweep

_PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")


def resolved(sweep: Sweep, server: Server) -> Resolved | None:
    """The merged settings of a server, None when this config knows a part of it no longer, or never did."""
    try:
        return sweep.resolved(server)
    except ConfigError:
        return None


def devices_of(sweep: Sweep, server: Server) -> int:
    """How many devices a server occupies: the product of its parallel sizes, 1 where nothing is known."""
    settings = resolved(sweep, server)
    return 1 if settings is None else parallel_size(settings)


def parallel_size(settings: Resolved) -> int:
    product = 1
    for flag in _PARALLEL:
        value = settings.flags.get(flag, 1)
        product *= int(value) if str(value).isdigit() else 1
    return product


def launch_of(sweep: Sweep, server: Server) -> Launch | None:
    """How the server is started, None when this config cannot plan it."""
    return None if resolved(sweep, server) is None else sweep.launch(server)
