"""The behaviour a test asks for, resolved for one method and k. The package docstring explains each key."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields


class SettingsError(Exception):
    """A behaviour that cannot be followed; the text names the key and what is legal."""


@dataclass(frozen=True)
class Settings:
    startup_s: float = 0.0
    ttft_s: float = 0.02
    prefill_s_per_token: float = 0.0
    step_s: float = 0.01
    slope: float = 0.0
    acceptance: float | list[float] = 0.0
    acceptance_counts: str = "drawn"
    natural_tokens: int | list[int] = field(default_factory=lambda: [48, 192])
    thinking_tokens: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    differ: int | dict | None = None
    platform: str = "cuda"
    kv_cache_tokens: int = 90112
    kv_available_gib: float = 51.3
    weights_gib: float = 15.0
    weights_s: float = 5.12
    compile_s: float = 0.0
    capture_s: float = 21.0
    capture_gib: float = 0.8
    init_s: float = 2.02
    model_max_len: int = 8192
    block_size: int = 16
    startup_log: list[str] = field(default_factory=list)
    routes: bool = True
    shutdown_error: bool = True
    engine_processes: int = 0
    preempt_every: int = 0
    faults: list[dict] = field(default_factory=list)

    def differ_from(self, prompt: str) -> int | None:
        """The token from which the answer to this prompt differs from the other methods' answers."""
        if isinstance(self.differ, dict):
            return self.differ.get("from", 0) if self.differ.get("contains", "") in prompt else None
        return self.differ


_WHOLE = {"answers", "faults"}
_CHOICES = {"acceptance_counts": ("drawn", "emitted"), "platform": ("cuda", "cpu")}


def load_settings(environ: Mapping[str, str], method: str, k: int) -> Settings:
    """Settings of this method and k out of FAKE_SERVER or FAKE_SERVER_FILE; the defaults when neither is set.

    Raises SettingsError for what is not JSON, unknown keys and values of another type.
    """
    raw = _read(environ)
    known = {f.name for f in fields(Settings)}
    chosen = {}
    for key, value in raw.items():
        if key not in known:
            raise SettingsError(unknown("setting", key, known))
        if key not in _WHOLE and isinstance(value, dict) and not (key == "differ" and "from" in value):
            value = _look_up(value, method, k)
            if value is None:
                continue
        chosen[key] = _checked(key, value)
    return Settings(**chosen)


def unknown(what: str, key: str, known: set[str]) -> str:
    """One line that names an unknown key and the nearest known one."""
    near = difflib.get_close_matches(key, known, n=1, cutoff=0)
    return f"unknown {what} '{key}'; did you mean '{near[0]}'? (known: {', '.join(sorted(known))})"


def _read(environ: Mapping[str, str]) -> dict:
    text = environ.get("FAKE_SERVER")
    if text is None and (path := environ.get("FAKE_SERVER_FILE")):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise SettingsError(f"FAKE_SERVER_FILE: {path} cannot be read: {error}") from None
    try:
        raw = json.loads(text or "{}")
    except ValueError as error:
        raise SettingsError(f"not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise SettingsError("give a JSON object")
    return raw


def _look_up(table: dict, method: str, k: int) -> object:
    for key in (f"{method}:{k}", method, "default"):
        if key in table:
            return table[key]
    return None


def _checked(key: str, value: object) -> object:
    default = getattr(Settings(), key)
    if key in _CHOICES and value not in _CHOICES[key]:
        raise SettingsError(f"{key} is {value!r}; legal: {', '.join(_CHOICES[key])}")
    if key in ("acceptance", "natural_tokens", "differ"):
        return value
    if isinstance(default, float) and isinstance(value, int):
        value = float(value)
    if type(value) is not type(default):
        raise SettingsError(f"{key} is {value!r}; give a {type(default).__name__}")
    return value
