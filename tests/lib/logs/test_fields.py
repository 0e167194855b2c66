"""Config dumps are tokenised, numbers survive separators."""

from __future__ import annotations

import re

import pytest

from scripts.lib.logs import fields


def test_values_with_commas_brackets_and_quotes() -> None:
    text = (
        "model='/m/a,b)c', speculative_config=SpeculativeConfig(method='mtp', model='x', "
        "num_spec_tokens=3), compilation_config={'mode': <CompilationMode.VLLM_COMPILE: 3>, 'sizes': [1, "
        "2], 'x': {'y': (1, 2)}}, "
        'note="it\'s, ok", seed=0)'
    )
    parsed = fields.parse_fields(text)
    assert parsed["model"] == "'/m/a,b)c'"
    assert parsed["speculative_config"] == "SpeculativeConfig(method='mtp', model='x', num_spec_tokens=3)"
    assert parsed["compilation_config"].endswith("'x': {'y': (1, 2)}}")
    assert parsed["note"] == '"it\'s, ok"'
    assert parsed["seed"] == "0"


def test_text_behind_the_closing_bracket_is_not_read() -> None:
    assert fields.parse_fields("a=1, b=2), c=3") == {"a": "1", "b": "2"}


def test_dictionary_body() -> None:
    parsed = fields.parse_fields("'host': '127.0.0.1', 'speculative_config': {'method': 'ngram', 'k': 3}}")
    assert parsed == {"host": "'127.0.0.1'", "speculative_config": "{'method': 'ngram', 'k': 3}"}


def test_cut_off_value_is_dropped_not_guessed() -> None:
    assert fields.parse_fields("a=1, b=Thing(x='y") == {"a": "1"}


def test_escaped_quotes() -> None:
    assert fields.parse_fields(r"a='it\'s, fine', b=2") == {"a": r"'it\'s, fine'", "b": "2"}


def test_comparison_is_no_bracket() -> None:
    assert fields.parse_fields("a=1 < 2, b=3") == {"a": "1 < 2", "b": "3"}


def test_empty_parts_are_skipped() -> None:
    assert fields.parse_fields("") == {}
    assert fields.parse_fields("a=1,, ,b=2,") == {"a": "1", "b": "2"}


def test_call() -> None:
    assert fields.parse_call("SpeculativeConfig(method='mtp', n=3)") == (
        "SpeculativeConfig",
        {"method": "'mtp'", "n": "3"},
    )
    assert fields.parse_call("None") is None
    assert fields.parse_call("{'a': (1)}") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        (None, None),
        ("True", True),
        ("False", False),
        ("'x'", "x"),
        ('"x"', "x"),
        ("3", 3),
        ("0.5", 0.5),
        ("torch.bfloat16", "torch.bfloat16"),
        ("auto", "auto"),
    ],
)
def test_plain(text: str | None, value: object) -> None:
    assert fields.plain(text) == value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,234,567 tokens", "1,234,567"),
        ("345678, next", "345678"),
        ("-1792", "-1792"),
        ("0.801, 0.601", "0.801"),
        ("8192,16384", "8192"),
    ],
)
def test_number_pattern_takes_separators_but_no_list(text: str, found: str) -> None:
    assert re.match(fields.NUMBER, text)[0] == found


def test_conversions() -> None:
    assert fields.integer("1,234,567") == 1234567
    assert fields.number("-1,234.5") == -1234.5
