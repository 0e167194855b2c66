"""Check config data against a schema of workflow/schemas and say what is wrong in one line.

jsonschema finds the violations; this module chooses the one to show and words it: where, what, and what would
be legal.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.lib.config import ConfigError, load_schema, nearest, type_name

TYPE_WORDS = {
    "array": "a list",
    "object": "a mapping",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def check(data: Any, schema_name: str, source: str) -> dict[str, Any]:
    """A copy of `data` with the schema's defaults filled in.

    Raises ConfigError naming `source` (a file, or "config"), the key's path and the nearest legal value.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{source}: is {_article(type_name(data))}, where `key: value` lines are needed")
    message = _first_error(data, schema_name)
    if message is not None:
        raise ConfigError(f"{source}: {message}")
    filled = copy.deepcopy(dict(data))
    _fill_defaults(filled, load_schema(schema_name))
    return filled


def explain(data: Any, schema: str | Path, source: str = "config") -> str:
    """One line for a config that snakemake.utils.validate refused: where, what, nearest legal value.

    `schema` is the schema's path or name. Returns a general sentence if nothing is wrong after all.
    """
    name = Path(schema).name.removesuffix(".yaml").removesuffix(".schema")
    try:
        check(data, name, source)
    except ConfigError as error:
        return str(error)
    return f"{source}: refused by Snakemake's validation for a reason that the schema {name} does not show"


def _validator(schema_name: str) -> Any:
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry, Resource

    common = Resource.from_contents(load_schema("common"))
    registry = Registry().with_resource("common.schema.yaml", common)
    # JSON Schema counts 4.0 as an integer; in a path it would read c4.0.
    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict = validators.extend(Draft202012Validator, type_checker=checker)
    return strict(load_schema(schema_name), registry=registry)


_RANK = {"additionalProperties": 0, "propertyNames": 1, "type": 2, "required": 4}


def _first_error(data: Mapping[str, Any], schema_name: str) -> str | None:
    for place, problem in _unrepresentable(data, ()):
        return f"{_dotted(place)}: {problem}"
    errors = list(_validator(schema_name).iter_errors(data))
    if not errors:
        return None
    # A misspelt key shows twice, as unknown and as missing: the former is the cause.
    errors.sort(
        key=lambda error: (_RANK.get(error.validator, 3), [str(part) for part in error.absolute_path])
    )
    message = _word(errors[0])
    return message if len(errors) == 1 else f"{message} (and {len(errors) - 1} more)"


def _unrepresentable(value: Any, place: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Values YAML can hold but no setting can mean: NaN, infinity, dates, keys that are no text."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                yield (
                    place,
                    f"key {key!r} is {_article(type_name(key))}; keys are text, write '{key}' in quotes",
                )
            else:
                yield from _unrepresentable(item, (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unrepresentable(item, (*place, index))
    elif isinstance(value, str) and "\0" in value:
        yield place, f"{value!r} has a NUL character, which no program accepts; remove it"
    elif isinstance(value, float) and not math.isfinite(value):
        yield place, f"{value} is no usable number"
    elif value is not None and not isinstance(value, (str, int, float)):
        yield place, f"{value} is {_article(type_name(value))}; write it in quotes to make it text"


def _word(error: Any) -> str:
    place = list(error.absolute_path)
    kind, limit, value = error.validator, error.validator_value, error.instance
    if kind == "additionalProperties":
        known = list(error.schema.get("properties", {}))
        unknown = next(key for key in value if key not in known)
        return f"unknown key {_dotted([*place, unknown])!r}{nearest(unknown, known)}"
    if kind == "required":
        missing = next(key for key in limit if key not in value)
        at = f"{_dotted(place)}: " if place else ""
        return f"{at}the key {missing!r} is missing{_meaning(error.schema, missing)}"
    if error.parent is None and "propertyNames" in list(error.absolute_schema_path):
        return f"{_dotted(place)}: {_word_name(error, value)}"
    where = _dotted(place) if place else "top level"
    if error.schema.get("writeOnly"):
        return f"{where}: does not have the right form (not repeated here: it may be a secret); {error.schema['description']}"
    if kind == "type":
        return f"{where}: {_word_type(limit, value, error.schema)}"
    if kind == "enum":
        return f"{where}: {value!r} is not known{nearest(value, limit)}"
    if kind == "pattern":
        return f"{where}: {_word_pattern(error.schema, value)}"
    word = _CONSTRAINTS.get(kind)
    return f"{where}: {word(value, limit) if word else error.message}"


_CONSTRAINTS: dict[str, Callable[[Any, Any], str]] = {
    "minimum": lambda value, limit: f"{value} is less than {limit}, the smallest legal value",
    "exclusiveMinimum": lambda value, limit: f"{value} is not above {limit}",
    "maximum": lambda value, limit: f"{value} is more than {limit}, the largest legal value",
    "minItems": lambda value, limit: "is empty; give at least one value",
    "minProperties": lambda value, limit: "is empty; give at least one key",
    "minLength": lambda value, limit: "is empty text",
    "maxLength": lambda value, limit: f"{_shorten(value)} is longer than {limit} characters",
    "uniqueItems": lambda value, limit: f"{_duplicate(value)} is given twice",
}


def _word_name(error: Any, name: str) -> str:
    if error.validator == "enum":
        return f"{name!r} is not known{nearest(name, error.validator_value)}"
    if name.startswith("-"):
        return f"write {name.lstrip('-')!r} for {name!r}: no leading dashes"
    if "_" in name and "A-Za-z_" not in str(error.validator_value):
        return f"write {name.replace('_', '-')!r} for {name!r}: flags are spelt with '-'"
    return f"the name {name!r} has characters that are not allowed here"


def _word_type(expected: str | list[str], value: Any, schema: Mapping[str, Any]) -> str:
    kinds = [expected] if isinstance(expected, str) else expected
    wanted = " or ".join(TYPE_WORDS[kind] for kind in kinds)
    shown = "null" if value is None else f"{_shorten(value)} is {_article(type_name(value))}"
    text = f"{shown}, where {wanted} is needed"
    if value is None:
        return text + "; give a value or leave the key out"
    if kinds == ["array"]:
        return text + _as_list_hint(value, schema)
    if isinstance(value, str) and "integer" in kinds and value.strip().isdigit():
        return f"{text}; write {value.strip()} without quotes"
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return f"{text}; write {int(value)}"
    if "string" in kinds and isinstance(value, (bool, int, float)):
        return f"{text}; put it in quotes if it is meant as text"
    return f"{text}; write {{name: {value}}}" if kinds == ["object"] and isinstance(value, str) else text


def _as_list_hint(value: Any, schema: Mapping[str, Any]) -> str:
    items = schema.get("items", {})
    if items.get("type") == "object":
        return (
            f"; write [{{name: {value}}}]" if isinstance(value, str) and "name" in items["properties"] else ""
        )
    numbers = items.get("type") == "integer"
    if isinstance(value, str) and numbers:
        parts = value.replace(",", " ").split()
        return f"; write [{', '.join(parts)}]" if parts and all(part.isdigit() for part in parts) else ""
    return f"; write [{value}]" if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _word_pattern(schema: Mapping[str, Any], value: Any) -> str:
    return f"{_shorten(value)} does not have the right form; {schema.get('description', schema['pattern'])}"


def _meaning(schema: Mapping[str, Any], key: str) -> str:
    description = schema.get("properties", {}).get(key, {}).get("description")
    return f" ({description})" if description else ""


def _duplicate(values: list[Any]) -> str:
    return repr(next(value for index, value in enumerate(values) if value in values[:index]))


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _article(word: str) -> str:
    return word if word in ("null", "text") else f"{'an' if word[0] in 'aeio' else 'a'} {word}"


def _dotted(place: list[Any] | tuple[Any, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return text.removeprefix(".") or "top level"


def _fill_defaults(data: dict[str, Any], schema: Mapping[str, Any]) -> None:
    """The same filling that snakemake.utils.validate does, for files that it does not see."""
    for key, part in schema.get("properties", {}).items():
        if "default" in part:
            data.setdefault(key, copy.deepcopy(part["default"]))
    for key, value in data.items():
        part = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
        if not isinstance(part, Mapping):
            continue
        for item in value if isinstance(value, list) else [value]:
            inner = part.get("items", {}) if isinstance(value, list) else part
            if isinstance(item, dict) and isinstance(inner, Mapping):
                _fill_defaults(item, inner)
