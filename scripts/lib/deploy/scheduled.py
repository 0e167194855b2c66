"""A derived schedule as a method of the sweep: written by the deployment, read when the next run is planned.

So `{method}-schedule` can be measured like any method of the config, with the same flags and overrides as the one it
stands for, and its cells lie in the same store. Standard library only: every snakemake call loads this."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from scripts.lib.cell import Cell, Server
from scripts.lib.config import ConfigError
from scripts.lib.methods import Method
from scripts.lib.sweep import Sweep

KEY = "num_speculative_tokens_per_batch_size"


@dataclass(frozen=True)
class Scheduled:
    """A schedule of k by number of running requests for one server. `name` is the method's name in tables and paths.
    `server` names the method it was derived from, with the largest k. `ranges`: [first, last, k]; `best_k` is what they were
    derived from, by measured concurrency. `fixed_k`: the best single k over all of them. `scenarios`: where it was measured.
    """

    name: str
    server: Server
    ranges: tuple[tuple[int, int, int], ...]
    best_k: Mapping[int, int]
    fixed_k: int
    scenarios: tuple[str, ...]

    @property
    def scheduled_server(self) -> Server:
        return replace(self.server, method=self.name)

    def cells(self, repeats: int) -> list[Cell]:
        """What to measure to see whether the schedule does what the K curve says."""
        return [
            Cell(self.scheduled_server, scenario, concurrency, repeat)
            for repeat in range(1, repeats + 1)
            for scenario in self.scenarios
            for concurrency in self.best_k
        ]


def to_json(schedules: Iterable[Scheduled]) -> list[dict[str, Any]]:
    return [asdict(schedule) for schedule in schedules]


def read_scheduled(path: Path) -> list[Scheduled]:
    """The schedules of a deployment's schedule.json; none when there is no such file.

    Raises ConfigError for a file that is not one of these.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["schedules"]
        return [_scheduled(entry) for entry in entries]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path}: is damaged ({error!r}); delete it, the next run derives it again"
        ) from None


def _scheduled(entry: Mapping[str, Any]) -> Scheduled:
    return Scheduled(
        str(entry["name"]),
        Server.from_axes(entry["server"]),
        tuple((int(first), int(last), int(k)) for first, last, k in entry["ranges"]),
        {int(concurrency): int(k) for concurrency, k in entry["best_k"].items()},
        int(entry["fixed_k"]),
        tuple(str(name) for name in entry["scenarios"]),
    )


def applicable(sweep: Sweep, schedules: Iterable[Scheduled]) -> list[Scheduled]:
    """Those whose method and server the sweep still has: others were derived under another config."""
    conditions = {replace(server, method="", k=0) for server in sweep.servers}
    return [
        schedule
        for schedule in schedules
        if schedule.server.method in sweep.methods and replace(schedule.server, method="", k=0) in conditions
    ]


def with_schedules(sweep: Sweep, schedules: Iterable[Scheduled]) -> Sweep:
    """The same sweep, in which the schedules' methods can be asked for; its own cells stay what they are.

    Raises KeyError for a schedule whose method it does not have, and ConfigError where the config has a method of that name.
    """
    added = {}
    for schedule in schedules:
        if schedule.name in sweep.methods:
            raise ConfigError(
                f"config: method: the name {schedule.name!r} belongs to the schedule that was derived for "
                f"{schedule.server.method}; choose another"
            )
        added[schedule.name] = scheduled_method(sweep.methods[schedule.server.method], schedule)
    return replace(sweep, methods={**sweep.methods, **added}, _cache={}) if added else sweep


def scheduled_method(base: Method, schedule: Scheduled) -> Method:
    """The method `base` with k as the schedule says."""
    keys = {**base.speculative_config, KEY: [list(part) for part in schedule.ranges]}
    return replace(
        base, name=schedule.name, k=(schedule.server.k,), speculative_config=keys, stands_for=base.name
    )
