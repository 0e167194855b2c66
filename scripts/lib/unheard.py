"""Names in the overrides of hardware, engine and model files that nothing is called. Most overrides of a file are about other servers
than those of one sweep, so that one with a typing error would go unseen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from scripts.lib.config import KIND_FOLDERS, ConfigError, find_file, nearest
from scripts.lib.methods import METHOD_KINDS
from scripts.lib.parts import Engine, Hardware, Model


def unheard_names(
    parts: Iterable[tuple[str, str, Hardware | Engine | Model]],
    methods: Collection[str],
    config_dirs: Sequence[Path],
) -> Iterator[str]:
    """Warnings about the files of `parts` (axis, name, part). `methods` are the names that the config gives to some of its own."""
    for axis, name, part in parts:
        for index, override in enumerate(part.overrides):
            place = f"config/{KIND_FOLDERS[axis]}/{name}.yaml: overrides[{index}].when"
            for key, given in override["when"].items():
                for value in given if isinstance(given, list) else [given]:
                    if unheard := _unheard(key, value, f"{place}.{key}", methods, config_dirs):
                        yield f"{unheard} (it matches nothing)"


def _unheard(
    axis: str, name: Any, place: str, methods: Collection[str], config_dirs: Sequence[Path]
) -> str | None:
    if axis == "method" and name not in (known := {*METHOD_KINDS, *methods}):
        return f"{place}: there is no method {name!r}{nearest(name, known)}"
    if axis in ("hardware", "engine", "model"):
        try:
            find_file(axis, name, config_dirs, place)
        except ConfigError as error:
            return str(error)
    return None
