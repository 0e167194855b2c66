"""Flags and variables that a config may not set, because an axis, the workflow or the user's shell does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from scripts.lib.config import ConfigError, nearest

AXIS_FLAGS = {
    "model": "the axis `model`",
    "max-model-len": "the axis `max_model_len`",
    "context-length": "the axis `max_model_len`",
    "host": "the workflow (servers listen on 127.0.0.1 only)",
    "port": "the workflow (a free port is chosen at each start)",
    "uds": "the workflow (servers are reached through a port)",
    "api-key": "`api_key_name` of the engine (secrets are passed by name)",
    "model-path": "the axis `model`",
    "speculative-algorithm": "the key `method`",
    "speculative-num-draft-tokens": "the key `k`",
    "speculative-dspark-block-size": "the key `k`",
    "speculative-dflash-block-size": "the key `k`",
    "speculative-draft-model-path": "`drafters` of the model, or `model` of the method's speculative_config",
}
"""Flags that a config must not set, and what sets them."""

SPECULATIVE_KEYS = {"method": "the key `method`", "num_speculative_tokens": "the key `k`"}
ENGINE_KINDS = ("vllm", "sglang")
SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIALS?)$", re.IGNORECASE
)


def check_settings(data: Mapping[str, Any], prefix: str) -> None:
    """Refuse what `data` must not set in its `flags`, `environment` and `overrides`.

    `prefix` is the place of `data`, ready to be followed by a key: "config: method[1]." or "FILE: ".
    """
    for flag, value in data.get("flags", {}).items():
        _check_flag(flag, value, f"{prefix}flags.{flag}")
    for name in data.get("environment", {}):
        if SECRET_NAME.search(name):
            raise ConfigError(
                f"{prefix}environment.{name}: looks like a secret; "
                "name it under `environment_names` of the engine and export it in your shell"
            )
    check_speculative_config(data.get("speculative_config", {}), f"{prefix}speculative_config")
    for index, override in enumerate(data.get("overrides", ())):
        _check_engine_kind(override["when"], f"{prefix}overrides[{index}].when")
        check_settings(override, f"{prefix}overrides[{index}].")


def check_speculative_config(keys: Mapping[str, Any], place: str) -> None:
    """Refuse the keys of a speculative config that the axes own."""
    for key in sorted(SPECULATIVE_KEYS.keys() & keys.keys()):
        raise ConfigError(f"{place}.{key}: is set by {SPECULATIVE_KEYS[key]} of the method; remove it here")


def _check_flag(flag: str, value: Any, place: str) -> None:
    owner = AXIS_FLAGS.get(flag.removeprefix("no-"))
    if owner is not None:
        raise ConfigError(f"{place}: is set by {owner}; remove it here")
    if SECRET_NAME.search(flag.replace("-", "_")):
        raise ConfigError(
            f"{place}: looks like a secret, and flags are written to plans, logs and evidence; export it in your shell "
            "as the variable that the engine reads, and name that under `environment_names` of the engine"
        )
    if flag == "speculative-config":
        if not isinstance(value, Mapping):
            raise ConfigError(f"{place}: give a mapping of keys, not text, so that levels can be merged")
        check_speculative_config(value, place)


def check_words(words: Sequence[str], place: str) -> None:
    """Refuse a secret in words that are written to plans, logs and evidence: the value of a flag or variable that is called like
    one. Naming a variable, as in `--env HF_TOKEN`, is no secret. The value is not repeated."""
    for index, word in enumerate(words):
        name, equals, value = re.sub("^--?e(nv)?=", "", word).partition("=")
        takes_next = name.startswith("-") and index + 1 < len(words)
        if SECRET_NAME.search(name.lstrip("-").replace("-", "_")) and (value if equals else takes_next):
            raise ConfigError(
                f"{place}[{index}]: looks like a secret; export it in your shell as the variable that the engine reads, and name that "
                "under `environment_names`"
            )


def _check_engine_kind(when: Mapping[str, Any], place: str) -> None:
    given = when.get("engine_kind", [])
    for kind in given if isinstance(given, list) else [given]:
        if kind not in ENGINE_KINDS:
            raise ConfigError(f"{place}.engine_kind: {kind!r} is not known{nearest(kind, ENGINE_KINDS)}")
