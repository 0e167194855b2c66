"""How flags and environments of several levels become one: hardware < model < engine < method < override.

Later levels win. Within a level its own `flags` come first, then those of its `overrides` whose `when`
matches, in order. `resolve` puts the levels into this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def merge_flags(levels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Flags after all levels, per flag; a mapping is merged with an inherited mapping key by key.

    false and null remove the flag, and inside a mapping null removes a key. `no-x` and `x` are one switch:
    the later one replaces the other.
    """
    merged: dict[str, Any] = {}
    for level in levels:
        for flag, value in level.items():
            merged.pop(_opposite(flag), None)
            if value is None or value is False:
                merged.pop(flag, None)
            elif isinstance(value, Mapping) and isinstance(merged.get(flag), Mapping):
                merged[flag] = _merge_mapping(merged[flag], value)
            else:
                merged[flag] = _merge_mapping({}, value) if isinstance(value, Mapping) else value
    return merged


def _opposite(flag: str) -> str:
    return flag.removeprefix("no-") if flag.startswith("no-") else f"no-{flag}"


def _merge_mapping(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(low)
    for key, value in high.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            inherited = merged.get(key)
            merged[key] = _merge_mapping(inherited if isinstance(inherited, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def merge_environment(levels: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Variables after all levels, as text; null removes an inherited one."""
    merged: dict[str, str] = {}
    for level in levels:
        for name, value in level.items():
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = str(value)
    return merged


def matches(choice: Mapping[str, Any], axes: Mapping[str, Any]) -> bool:
    """Whether every axis that `choice` names has (one of) the value(s) it gives."""
    return all(
        axes[axis] in wanted if isinstance(wanted, (list, tuple)) else axes[axis] == wanted
        for axis, wanted in choice.items()
    )
