"""Reading config files: where they lie, what is wrong with their syntax, and the types `--config` loses.

No Snakemake here. Contents are checked against workflow/schemas by `config_errors`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMAS = REPOSITORY / "workflow" / "schemas"
KIND_FOLDERS = {"hardware": "hardware", "engine": "engines", "model": "models", "scenario": "scenarios"}
"""Folder under config/ that holds the files of each kind of name."""


OTHER_WORDS = {"num_speculative_tokens": "k", "baseline": "none"}
"""What people who know an engine may write, where spelling does not lead to our word."""


class ConfigError(ValueError):
    """A config the user has to change. The message names the place and the remedy, in one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


def nearest(word: object, known: Iterable[object]) -> str:
    """`; did you mean 'x'?` for the most similar known word, else `; known: ...` (at most twelve)."""
    words = [str(candidate) for candidate in known]
    if OTHER_WORDS.get(str(word)) in words:
        return f"; did you mean {OTHER_WORDS[str(word)]!r}?"
    folded = {candidate.lower().replace("_", "-"): candidate for candidate in words}
    match = difflib.get_close_matches(str(word).lower().replace("_", "-"), folded, n=1, cutoff=0.6)
    if match:
        return f"; did you mean {folded[match[0]]!r}?"
    shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
    return f"; known: {shown}" if words else ""


MERGE_TAG = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """safe_load that refuses a repeated key: YAML keeps the last one silently."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key_node, _ in node.value:
        if isinstance(key_node, yaml.ScalarNode) and key_node.tag != MERGE_TAG:
            key = loader.construct_object(key_node)
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} is given twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises ConfigError for a file that cannot be read, is no UTF-8, no YAML, no mapping, or repeats a key.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}{_describe_yaml_error(error, text)}") from None
    except RecursionError:
        raise ConfigError(f"{path}: nested too deeply to be a config") from None
    except ValueError as error:
        raise ConfigError(f"{path}: a value that YAML cannot read ({error}); put it in quotes") from None
    if data is None:
        raise ConfigError(f"{path}: empty; see docs/config.md for the keys it needs")
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: a {type_name(data)} at top level, where `key: value` lines are needed")
    return data


def _describe_yaml_error(error: yaml.YAMLError, text: str) -> str:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not valid YAML"
    if mark is None:
        return f": not valid YAML ({problem})"
    lines = text.splitlines()
    shown = lines[mark.line].strip()[:60] if mark.line < len(lines) else ""
    hint = "; YAML wants spaces, not tabs, for indentation" if "\\t" in problem or "\t" in shown else ""
    return f", line {mark.line + 1}: {problem}{hint}" + (f" (at: {shown})" if shown else "")


def type_name(value: object) -> str:
    """The word a YAML user has for the type of a value."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "text"), (list, "list")):
        if isinstance(value, kind):
            return name
    return "mapping" if isinstance(value, Mapping) else type(value).__name__


def find_file(kind: str, name: str, config_dirs: Sequence[Path], where: str) -> Path:
    """The file of a named hardware, engine, model or scenario; the first folder that has it wins.

    Raises ConfigError with the nearest existing name. `where` is the key that asked for it.
    """
    folder = KIND_FOLDERS[kind]
    for base in config_dirs:
        path = Path(base) / folder / f"{name}.yaml"
        if path.is_file():
            return path
    known = sorted({path.stem for base in config_dirs for path in (Path(base) / folder).glob("*.yaml")})
    raise ConfigError(f"{where}: there is no config/{folder}/{name}.yaml{nearest(name, known)}")


def restore_types(config: dict[str, Any], command_line: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Give values from `snakemake --config` the types that the schema asks for, in place.

    Snakemake reads everything inside a list or mapping there as text (`concurrency=[1,2]` arrives as ['1',
    '2']). Only keys in `command_line` (workflow.config_settings.config) are touched, so that "4096" in a file
    stays the error it is. Text that does not fit is left for validation to refuse.
    """
    properties = schema.get("properties", {})
    for key, given in command_line.items():
        if key in config and key in properties:
            config[key] = _merge_typed(config[key], _typed(given, properties[key]))


def _merge_typed(current: Any, typed: Any) -> Any:
    """`typed` laid over `current` as Snakemake merged the untyped value: mappings by key, the rest
    replaced.
    """
    if isinstance(current, dict) and isinstance(typed, dict):
        return current | {key: _merge_typed(current.get(key), value) for key, value in typed.items()}
    return typed


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    schema = _follow(schema)
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        other = schema.get("additionalProperties")
        other = other if isinstance(other, Mapping) else {}
        return {key: _typed(item, properties.get(key, other)) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item, schema.get("items", {})) for item in value]
    if not isinstance(value, str):
        return value
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if not types or {"boolean", "number"} <= set(types):
        return _free_scalar(value)
    if "integer" in types and re.fullmatch(r"-?[0-9]+", value):
        return int(value)
    if "number" in types and re.fullmatch(r"-?[0-9]+([.][0-9]*)?([eE][-+]?[0-9]+)?", value):
        return float(value)
    if "boolean" in types and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return None if "null" in types and value in ("null", "~") else value


def _free_scalar(text: str) -> Any:
    value = yaml.safe_load(text) if text.strip() else text
    return value if value is None or isinstance(value, (bool, int, float)) else text


def _follow(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve one `$ref` into workflow/schemas/common.schema.yaml, the only file that schemas refer to."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    name = reference.rsplit("/", 1)[1]
    return load_schema("common")["$defs"][name]


_SCHEMA_CACHE: dict[str, dict[str, Any]] = {}


def load_schema(name: str) -> dict[str, Any]:
    """The parsed schema `workflow/schemas/{name}.schema.yaml` (do not change it: it is shared)."""
    if name not in _SCHEMA_CACHE:
        _SCHEMA_CACHE[name] = yaml.safe_load((SCHEMAS / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    return _SCHEMA_CACHE[name]
