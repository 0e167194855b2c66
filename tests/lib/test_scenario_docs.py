"""docs/scenarios.md and what it describes stay in step."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.lib.config import REPOSITORY, load_schema
from scripts.lib.prompt_files import _SOURCES, LIMITS
from scripts.lib.scenario import load_scenario

TEXT = (REPOSITORY / "docs" / "scenarios.md").read_text(encoding="utf-8")


def test_every_key_and_every_layout_is_explained():
    for key, part in load_schema("scenario")["properties"].items():
        assert f"| `{key}` |" in TEXT, key
        for inner in part.get("properties", {}):
            assert f"`{inner}" in TEXT, inner
    for name in (*_SOURCES, *LIMITS):
        assert f"`{name}`" in TEXT, name


def test_every_shipped_scenario_is_listed():
    listed = {
        name for row in re.findall(r"^\| ([\w, -]+) \|", TEXT, re.MULTILINE) for name in row.split(", ")
    }
    shipped = {path.stem for path in (REPOSITORY / "config" / "scenarios").glob("*.yaml")}
    assert shipped <= listed


def test_the_example_loads_and_asks_what_it_says(tmp_path: Path):
    for name, content in re.findall(
        r"^```\w+ config/scenarios/(\S+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
    scenario = load_scenario(tmp_path / "support.yaml")
    assert (len(scenario.prompts), len(scenario.warmup_prompts)) == (2, 1)
    first, second = scenario.requests("measure", 2, "salt")
    assert (first.body["max_tokens"], second.body["max_tokens"]) == (400, 120)
    assert (first.body["seed"], second.body["seed"]) == (1, 2)
    assert [message["role"] for message in second.body["messages"]] == ["system", "user"]
