"""docs/config.md and the schemas and rules it describes stay in step."""

from __future__ import annotations

import re

from scripts.lib.config import REPOSITORY, load_schema
from scripts.lib.feasibility import CELL_RULES, SERVER_RULES
from scripts.lib.methods import METHOD_KINDS

TEXT = (REPOSITORY / "docs" / "config.md").read_text(encoding="utf-8")
EXAMPLE = (REPOSITORY / "config" / "config.yaml").read_text(encoding="utf-8")


def test_every_key_of_the_schema_is_in_the_reference_and_in_the_example():
    for key, part in load_schema("config")["properties"].items():
        assert f"`{key}`" in TEXT
        assert re.search(rf"^{key}:", EXAMPLE, re.MULTILINE), key
        for inner in part.get("properties", {}):
            assert f"`{inner}`" in TEXT


def test_defaults_are_those_of_the_schema():
    for part in ("measurement", "startup"):
        for key, schema in load_schema("config")["properties"][part]["properties"].items():
            assert f"`{key}` {schema['default']}" in TEXT, key


def test_every_rule_is_listed():
    for rule in (*SERVER_RULES, *CELL_RULES):
        assert rule.id in TEXT, rule.id


def test_methods_are_the_same_in_code_schema_and_text():
    schema = load_schema("config")["properties"]["method"]["items"]["properties"]["method"]["enum"]
    assert list(METHOD_KINDS) == schema
    drafters = load_schema("model")["properties"]["drafters"]["propertyNames"]["enum"]
    assert set(drafters) == {name for name, kind in METHOD_KINDS.items() if kind.drafter}
    assert ", ".join(METHOD_KINDS) in TEXT.replace("\n", " ")
