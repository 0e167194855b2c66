"""Results that this sweep did not measure but its tables shall show: other results folders, and files of other tools.

Planning only: what the config names is looked for, not read.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.lib.cell import BASELINE
from scripts.lib.config import ConfigError

RECORDS = "tables/records.parquet"
_FILES = "files"


def has_others(config: Mapping[str, Any]) -> bool:
    """Whether there is anything to show without measuring a cell."""
    return bool(config["other_results"] or config["imports"])


def other_records(config: Mapping[str, Any]) -> list[str]:
    """The records tables of all folders under `other_results`, as paths. Raises ConfigError for one that has none."""
    return [_records_of(folder, f"other_results[{i}]") for i, folder in enumerate(config["other_results"])]


def _records_of(folder: str, place: str) -> str:
    path = Path(folder).expanduser()
    for table in (path / RECORDS, path / "results" / RECORDS):
        if table.is_file():
            return str(table)
    raise ConfigError(
        f"config: {place}: {folder} has no {RECORDS}; name the results folder of a run that built its tables"
    )


def imports(config: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """(file, axes its runs have) for every file under `imports`, each once.

    Raises ConfigError for a pattern without a file, a file named twice and a k that does not go with its method.
    """
    found: dict[str, dict[str, Any]] = {}
    for i, entry in enumerate(config["imports"]):
        place = f"config: imports[{i}]"
        _check_method(entry, place)
        axes = {name: value for name, value in entry.items() if name != _FILES}
        for path in _matching(entry[_FILES], place):
            if path in found:
                raise ConfigError(
                    f"{place}.files: {path} is named by an earlier entry too; each file has one"
                )
            found[path] = axes
    return list(found.items())


def _check_method(entry: Mapping[str, Any], place: str) -> None:
    method, k = entry.get("method"), entry.get("k")
    if method is None and k is not None:
        raise ConfigError(f"{place}.k: goes with a `method`, and there is none")
    if method is not None and (method == BASELINE) != (not k):
        raise ConfigError(
            f"{place}: method {method} {'has no k' if method == BASELINE else 'needs k, 1 or more'}"
        )


def _matching(pattern: str, place: str) -> Sequence[str]:
    paths = sorted(
        path for path in glob.glob(str(Path(pattern).expanduser()), recursive=True) if Path(path).is_file()
    )
    if not paths:
        raise ConfigError(f"{place}.files: no file matches {pattern!r} (from {Path.cwd()})")
    return paths
