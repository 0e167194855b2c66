from __future__ import annotations

import json
from pathlib import Path

import pytest
from snakemake.cli import parse_config
from snakemake.utils import update_config

from scripts.lib.config import ConfigError, find_file, load_schema, nearest, read_yaml, restore_types
from tests.planning import CONFIG, smoke


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "some.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: 1\nb: \xff\xfe\n", "line 2: not UTF-8"),
        ("a: [1\nb: 2\n", "line 2"),
        ("a:\n\t- 1\n", "line 2"),
        ("a: 1\nb: 2\na: 3\n", "line 3: key 'a' is given twice"),
        ("a: {b: 1, b: 2}\n", "line 1: key 'b' is given twice"),
        ("- a\n- b\n", "a list at top level"),
        ("just text\n", "a text at top level"),
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("a: 2026-99-99\n", "put it in quotes"),
        ("a: !!python/object:os.system {}\n", "could not determine a constructor"),
        ("a: *nowhere\n", "nowhere"),
        ("a: {[1, 2]: 3}\n", "line 1"),
        ("a: \x00\n", "not valid YAML"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_bad_syntax_names_file_place_and_problem(tmp_path, content, said):
    path = write(tmp_path, content)
    with pytest.raises(ConfigError) as error:
        read_yaml(path)
    assert str(error.value).startswith(str(path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_tabs_are_named_as_the_reason(tmp_path):
    with pytest.raises(ConfigError, match="spaces, not tabs"):
        read_yaml(write(tmp_path, "a:\n\t- 1\n"))


def test_a_missing_file_and_a_folder_are_config_errors(tmp_path):
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(ConfigError, match="cannot be read"):
            read_yaml(path)


def test_anchors_merges_and_a_byte_order_mark_are_fine(tmp_path):
    text = "\ufeffbase: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\n"
    assert read_yaml(write(tmp_path, text)) == {"base": {"a": 1, "b": 2}, "more": {"a": 1, "b": 3}}


def test_json_is_read_too(tmp_path):
    assert read_yaml(write(tmp_path, json.dumps({"a": [1, True, None]}, indent=1))) == {"a": [1, True, None]}


def test_nearest_suggests_the_similar_word_else_lists_the_known():
    assert nearest("concurency", ["concurrency", "model"]) == "; did you mean 'concurrency'?"
    assert nearest("MAX-MODEL-LEN", ["max_model_len"]) == "; did you mean 'max_model_len'?"
    assert nearest("num_speculative_tokens", ["k", "speculative_config"]) == "; did you mean 'k'?"
    assert nearest("zzz", ["a", "b"]) == "; known: a, b"
    assert nearest("zzz", []) == ""


def test_the_working_directory_comes_before_the_repository(tmp_path):
    mine = tmp_path / "hardware" / "cpu.yaml"
    mine.parent.mkdir()
    mine.write_text("description: mine\n")
    assert find_file("hardware", "cpu", [tmp_path, CONFIG], "x") == mine
    assert find_file("hardware", "h100", [tmp_path, CONFIG], "x") == CONFIG / "hardware" / "h100.yaml"


def test_an_unknown_name_suggests_one_of_either_folder(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "my-model.yaml").touch()
    with pytest.raises(ConfigError, match=r"config: model: .* did you mean 'my-model'"):
        find_file("model", "my-modle", [tmp_path, CONFIG], "config: model")


def from_command_line(*entries: str) -> dict:
    """The config as the Snakefile sees it: smoke.yaml, `--config` entries over it, types restored."""
    command_line = parse_config(entries)
    config = smoke()
    update_config(config, command_line)
    restore_types(config, command_line, load_schema("config"))
    return config


@pytest.mark.parametrize(
    ("entry", "key", "value"),
    [
        ("concurrency=[1,2,4]", "concurrency", [1, 2, 4]),
        ("max_model_len=[4096]", "max_model_len", [4096]),
        (
            "method=[{name: none}, {name: mtp, k: [1, 3]}]",
            "method",
            [{"name": "none"}, {"name": "mtp", "k": [1, 3]}],
        ),
        ("repeats=3", "repeats", 3),
        ("allow_failures=true", "allow_failures", True),
        ("epoch=2", "epoch", 2),
        ("store=/data/store", "store", "/data/store"),
        ("exclude=[{method: mtp, k: 3}]", "exclude", [{"method": "mtp", "k": 3}]),
        (
            "overrides=[{when: {k: [1]}, flags: {seed: 4, enforce-eager: null, x: true, dtype: auto}}]",
            "overrides",
            [
                {
                    "when": {"k": [1]},
                    "flags": {"seed": 4, "enforce-eager": None, "x": True, "dtype": "auto"},
                }
            ],
        ),
        # Text that does not fit stays text, for validation to refuse.
        ("concurrency=[1,two]", "concurrency", [1, "two"]),
    ],
)
def test_command_line_values_get_their_types_back(entry, key, value):
    assert from_command_line(entry)[key] == value


def test_a_mapping_on_the_command_line_changes_only_the_keys_it_has():
    config = from_command_line("startup={limit_s: 60}", "measurement={min_requests: 4}")
    assert config["startup"] == {"limit_s": 60, "stall_s": 120}
    assert config["measurement"]["min_requests"] == 4
    assert config["measurement"]["requests_per_worker"] == 5


def test_text_in_a_file_is_left_alone():
    config = smoke(max_model_len=["4096"])
    restore_types(config, {"concurrency": ["1"]}, load_schema("config"))
    assert config["max_model_len"] == ["4096"]
