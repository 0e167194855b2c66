"""Published figures as data: config/published.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.lib import config_errors
from scripts.lib.cell import BASELINE
from scripts.lib.config import ConfigError, nearest, read_yaml
from scripts.lib.metrics import METRICS

FILE = "published.yaml"
OF_A_FIGURE = ("method", "k", "concurrency")
"""What a figure is of, as far as it was stated."""
CONDITIONS = ("hardware", "engine", "model", "max_model_len", "scenario", "requests")
"""What may differ in a run that is put beside it."""
SPREAD = "_spread"


@dataclass(frozen=True)
class Figure:
    """One published value. `of`: method, k and concurrency as far as stated. `conditions`: the values, any of which holds,
    by name of CONDITIONS; `flags` of the engine. `metric` is a column of the points table."""

    study: str
    metric: str
    value: float
    of: Mapping[str, object]
    conditions: Mapping[str, tuple]
    flags: Mapping[str, object]


@dataclass(frozen=True)
class Study:
    name: str
    title: str
    figures: tuple[Figure, ...]


def load_published(config_dirs: Sequence[Path]) -> list[Study]:
    """The studies of the first folder that has the file.

    Raises ConfigError for a file that is missing or wrong, with the nearest legal name.
    """
    paths = [Path(folder) / FILE for folder in config_dirs]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise ConfigError(
            f"there is no {paths[-1] if paths else FILE}, the published figures to compare with"
        )
    data = config_errors.check(read_yaml(path), "published", str(path))
    return [
        Study(
            name,
            study["title"],
            tuple(
                figure
                for index, entry in enumerate(study["figures"])
                for figure in _figures(
                    name, study["conditions"], entry, f"{path}: studies.{name}.figures[{index}]"
                )
            ),
        )
        for name, study in data["studies"].items()
    ]


def _figures(study: str, shared: Mapping, entry: Mapping, place: str) -> list[Figure]:
    stated = {**shared, **entry}
    of = {axis: stated[axis] for axis in OF_A_FIGURE if axis in stated}
    if of.get("method") == BASELINE:
        of["k"] = 0
    conditions = {name: _choice(stated[name]) for name in CONDITIONS if name in stated}
    metrics = {name: value for name, value in entry.items() if name not in (*OF_A_FIGURE, *CONDITIONS)}
    for name in metrics:
        if name.removesuffix(SPREAD) not in METRICS:
            raise ConfigError(f"{place}: {name!r} is no metric and no condition{nearest(name, METRICS)}")
        if isinstance(metrics[name], (str, list)):
            raise ConfigError(f"{place}.{name}: {metrics[name]!r} is no number")
    if not metrics:
        raise ConfigError(f"{place}: has no metric; give at least one value, e.g. per_request_tps: 80")
    flags = shared.get("flags", {})
    return [Figure(study, name, float(value), of, conditions, flags) for name, value in metrics.items()]


def _choice(value: object) -> tuple:
    return tuple(value) if isinstance(value, list) else (value,)
