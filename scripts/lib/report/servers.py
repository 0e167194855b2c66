"""How to start each server of the report by hand."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from scripts.lib.cell import Server
from scripts.lib.launch import Launch
from scripts.lib.launchers import typed
from scripts.lib.plan import flag_groups

SERVER = ("hardware", "engine", "model", "method", "k", "max_model_len")


@dataclass(frozen=True)
class Command:
    """`text` is a shell command, empty where there is none; `facts` what else belongs to it."""

    name: str
    facts: str
    text: str


def commands(cells: pl.DataFrame, launch_of: Callable[[Server], Launch | None]) -> Iterator[Command]:
    """One for each server that gave a cell a result, in the order of `cells`.

    The config's own command where `launch_of` knows the server, else the one that its evidence has."""
    started = cells.filter(pl.col("command").is_not_null() | (pl.col("status") == "measured"))
    for row in started.unique(SERVER, keep="first", maintain_order=True).iter_rows(named=True):
        server = Server.from_axes(row)
        launch = launch_of(server)
        yield Command(
            server.label, _facts(row), _typed(launch) if launch and launch.argv else row["command"] or ""
        )


def _facts(row: Mapping[str, object]) -> str:
    facts = {
        "engine version": row["engine_version"],
        "image": row["image_digest"],
        "device": row["device"],
        "host": row["host"],
    }
    return " · ".join(f"{name} {value}" for name, value in facts.items() if value)


def _typed(launch: Launch) -> str:
    """The command as it is typed, one setting or flag a line."""
    variables, argv = typed(launch)
    settings = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    return " \\\n    ".join([*settings, *flag_groups(argv)])
