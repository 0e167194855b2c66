"""What the user wants of a deployment: the config's `recommend` section, checked against the sweep's cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.lib.cell import Cell
from scripts.lib.config import ConfigError, nearest


@dataclass(frozen=True, order=True)
class Traffic:
    """Requests of one scenario that are answered `concurrency` at a time; `share` is their part of all requests (0, 1]."""

    scenario: str
    concurrency: int
    share: float

    @property
    def label(self) -> str:
        return f"{self.scenario} at concurrency {self.concurrency}"


@dataclass(frozen=True)
class Wishes:
    """`limits` by key of limits.LIMITS. `devices` by hardware name, or one number that holds for each hardware.
    `tolerance`: a plan may be so much worse than the best one (relative) if it is simpler. `image`: the container image to
    write for engines that were not measured in one."""

    limits: Mapping[str, float]
    traffic: tuple[Traffic, ...]
    devices: Mapping[str, int] | int
    max_configurations: int
    requests_per_s: float | None
    tolerance: float
    image: str | None

    def devices_of(self, hardware: str) -> int:
        """Devices of this kind that may be used; 0 for one that the budget does not name."""
        return self.devices if isinstance(self.devices, int) else self.devices.get(hardware, 0)


def read_wishes(section: Mapping[str, Any]) -> Wishes:
    """The `recommend` section of a checked config. Shares of the traffic are scaled to a sum of 1."""
    entries = section["traffic"]
    total = sum(entry["share"] for entry in entries)
    traffic = (Traffic(entry["scenario"], entry["concurrency"], entry["share"] / total) for entry in entries)
    devices = section["devices"]
    return Wishes(
        limits=dict(section["limits"]),
        traffic=tuple(traffic),
        devices=devices if isinstance(devices, int) else dict(devices),
        max_configurations=section["max_configurations"],
        requests_per_s=section["requests_per_s"],
        tolerance=section["tolerance"],
        image=section["image"],
    )


def check_wishes(section: Mapping[str, Any], cells: Iterable[Cell]) -> None:
    """Refuse what the sweep cannot answer, before anything is measured.

    Raises ConfigError with the nearest legal value for traffic that no cell measures and for unknown hardware.
    """
    cells = tuple(cells)
    seen: set[tuple[str, int]] = set()
    for index, entry in enumerate(section["traffic"]):
        place = f"config: recommend.traffic[{index}]"
        key = (entry["scenario"], entry["concurrency"])
        scenarios = dict.fromkeys(cell.scenario for cell in cells)
        if key[0] not in scenarios:
            raise ConfigError(f"{place}.scenario: {key[0]!r} is not measured{nearest(key[0], scenarios)}")
        concurrencies = sorted({cell.concurrency for cell in cells if cell.scenario == key[0]})
        if key[1] not in concurrencies:
            known = ", ".join(map(str, concurrencies))
            raise ConfigError(f"{place}.concurrency: {key[1]} is not measured with {key[0]}; known: {known}")
        if key in seen:
            raise ConfigError(
                f"{place}: {key[0]} at concurrency {key[1]} is given twice; add the two shares up"
            )
        seen.add(key)
    if not isinstance(section["devices"], int):
        known = dict.fromkeys(cell.server.hardware for cell in cells)
        for name in section["devices"]:
            if name not in known:
                raise ConfigError(
                    f"config: recommend.devices.{name}: no such hardware here{nearest(name, known)}"
                )
