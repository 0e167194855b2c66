from __future__ import annotations

import datetime
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snakemake.utils import validate

from scripts.lib.cell import AXES
from scripts.lib.config import SCHEMAS, ConfigError, load_schema, read_yaml
from scripts.lib.config_errors import check, explain
from scripts.lib.sweep import load_sweep
from tests.planning import CONFIG, junk, smoke

MTP = {"name": "mtp", "k": [3]}

WRONG = [
    # (changed keys, what the one line must say)
    ({"concurency": [1]}, "unknown key 'concurency'; did you mean 'concurrency'?"),
    ({"concurrency": ...}, "the key 'concurrency' is missing"),
    ({"concurrency": 4}, "concurrency: 4 is an integer, where a list is needed; write [4]"),
    ({"concurrency": "1,4"}, "write [1, 4]"),
    ({"concurrency": "1-8"}, "concurrency: '1-8' is text, where a list is needed"),
    (
        {"concurrency": ["4"]},
        "concurrency[0]: '4' is text, where an integer is needed; write 4 without quotes",
    ),
    ({"concurrency": []}, "concurrency: is empty"),
    ({"concurrency": [1, 2, 1]}, "concurrency: 1 is given twice"),
    ({"concurrency": [1.0]}, "concurrency[0]: 1.0 is a number, where an integer is needed; write 1"),
    ({"concurrency": [True]}, "concurrency[0]: True is a boolean, where an integer is needed"),
    ({"concurrency": [1, 0]}, "concurrency[1]: 0 is less than 1"),
    ({"concurrency": [-1]}, "concurrency[0]: -1 is less than 1"),
    ({"concurrency": None}, "concurrency: null, where a list is needed"),
    ({"concurrency": [math.nan]}, "concurrency[0]: nan is no usable number"),
    ({"max_model_len": ["4k"]}, "max_model_len[0]: '4k' is text"),
    ({"max_model_len": ["4096"]}, "write 4096 without quotes"),
    ({"method": "mtp"}, "method: 'mtp' is text, where a list is needed; write [{name: mtp}]"),
    ({"method": ["mtp"]}, "method[0]: 'mtp' is text, where a mapping is needed; write {name: mtp}"),
    ({"method": {"mtp": [1]}}, "method: {'mtp': [1]} is a mapping, where a list is needed"),
    ({"method": [{"name": "none", "k": [1]}]}, "method[0].k: none does not speculate and has no k"),
    ({"method": [{"name": "base", "method": "none", "k": [1]}]}, "method[0].k: none does not speculate"),
    ({"method": [{"name": "mtp"}]}, "method[0].k: is missing"),
    ({"method": [{"name": "mtp", "k": []}]}, "method[0].k: is empty"),
    ({"method": [{"name": "mtp", "k": [0]}]}, "method[0].k[0]: 0 is less than 1"),
    (
        {"method": [{"name": "mtp", "k": 3}]},
        "method[0].k: 3 is an integer, where a list is needed; write [3]",
    ),
    ({"method": [{"name": "mtp", "k": [True]}]}, "method[0].k[0]: True is a boolean"),
    ({"method": [{"name": "mtp", "k": [3, 3]}]}, "method[0].k: 3 is given twice"),
    ({"method": [{"name": "mpt", "k": [3]}]}, "there is no method 'mpt'; did you mean 'mtp'?"),
    ({"method": [{"name": "MTP", "k": [3]}]}, "did you mean 'mtp'?"),
    ({"method": [{"name": "mine", "method": "egale", "k": [3]}]}, "method[0].method: 'egale' is not known"),
    ({"method": [{"name": "eagle", "method": "mtp", "k": [3]}]}, "'eagle' is itself a method"),
    ({"method": [MTP, MTP]}, "method[1].name: 'mtp' is given twice"),
    (
        {"method": [{"name": False}]},
        "method[0].name: False is a boolean, where text is needed; put it in quotes",
    ),
    (
        {"method": [{"name": "a b", "method": "mtp", "k": [1]}]},
        "method[0].name: 'a b' does not have the right form",
    ),
    ({"method": [MTP | {"num_speculative_tokens": 3}]}, "did you mean 'k'?"),
    (
        {"method": [MTP | {"speculative_config": {"num_speculative_tokens": 3}}]},
        "method[0].speculative_config.num_speculative_tokens: is set by the key `k`",
    ),
    ({"method": [MTP | {"flags": {"port": 1}}]}, "method[0].flags.port: is set by the workflow"),
    ({"method": [MTP | {"flags": {"max-model-len": 1}}]}, "is set by the axis `max_model_len`"),
    ({"method": [MTP | {"flags": {"--seed": 1}}]}, "write 'seed' for '--seed'"),
    ({"method": [MTP | {"flags": {"max_num_seqs": 1}}]}, "write 'max-num-seqs' for 'max_num_seqs'"),
    ({"method": [MTP | {"flags": {"speculative-config": "{}"}}]}, "give a mapping of keys, not text"),
    ({"method": [MTP | {"environment": {"HF_TOKEN": "x"}}]}, "environment.HF_TOKEN: looks like a secret"),
    ({"method": [MTP | {"environment": {"X": True}}]}, "environment.X: True is a boolean"),
    ({"method": [MTP | {"environment": {"X": "a\0"}}]}, "environment.X: 'a\\x00' has a NUL character"),
    ({"hardware": ["h1000"]}, "hardware: there is no config/hardware/h1000.yaml; did you mean 'h100'?"),
    ({"hardware": "cpu"}, "hardware: 'cpu' is text, where a list is needed; write [cpu]"),
    ({"hardware": [3090]}, "hardware[0]: 3090 is an integer, where text is needed; put it in quotes"),
    ({"model": ["smolm2"]}, "did you mean 'smollm2'?"),
    ({"model": ["org/name"]}, "model[0]: 'org/name' does not have the right form"),
    ({"scenario": ["../etc"]}, "scenario[0]: '../etc' does not have the right form"),
    ({"engine": ["vlm-0.27.1"]}, "did you mean 'vllm-0.27.1'?"),
    ({"exclude": [{"metod": "mtp"}]}, "unknown key 'exclude[0].metod'; did you mean 'method'?"),
    ({"exclude": {"method": "mtp"}}, "exclude: {'method': 'mtp'} is a mapping, where a list is needed"),
    ({"exclude": None}, "exclude: null, where a list is needed; give a value or leave the key out"),
    ({"exclude": [{}]}, "exclude[0]: is empty"),
    ({"exclude": [{"k": "3"}]}, "exclude[0].k: '3' is text"),
    ({"exclude": [{"method": ["none", "mtp", "eagle"]}]}, "exclude: the rules leave no cell"),
    ({"include": [{"method": "ngram"}]}, "include[0].method: 'ngram' is not under `method`"),
    ({"include": [{"method": "mtp", "k": 0}]}, "include[0]: names no possible cell"),
    ({"include": [{"concurrency": 0}]}, "include[0].concurrency: 0 is less than 1"),
    ({"overrides": [{"when": {"concurrency": 1}}]}, "unknown key 'overrides[0].when.concurrency'"),
    ({"overrides": [{"when": {"engine_kind": "vlm"}}]}, "overrides[0].when.engine_kind: 'vlm' is not known"),
    ({"overrides": [{"flags": {}}]}, "overrides[0]: the key 'when' is missing"),
    ({"repeats": 0}, "repeats: 0 is less than 1"),
    ({"repeats": True}, "repeats: True is a boolean"),
    ({"measurement": {"min_request": 3}}, "did you mean 'min_requests'?"),
    ({"measurement": []}, "measurement: [] is a list, where a mapping is needed"),
    ({"measurement": None}, "measurement: null"),
    ({"startup": {"limit_s": 0}}, "startup.limit_s: 0 is not above 0"),
    ({"startup": {"limit_s": "10m"}}, "startup.limit_s: '10m' is text, where a number is needed"),
    ({"stop_grace_s": math.inf}, "stop_grace_s: inf is no usable number"),
    ({"store": ""}, "store: is empty text"),
    ({"epoch": datetime.date(2026, 1, 1)}, "epoch: 2026-01-01 is a date; write it in quotes"),
    ({"allow_failures": "yes"}, "allow_failures: 'yes' is text, where true or false is needed"),
]


@pytest.mark.parametrize(("changes", "said"), WRONG, ids=[said[:50] for _, said in WRONG])
def test_a_wrong_config_is_one_clear_line(changes, said):
    with pytest.raises(ConfigError) as error:
        load_sweep(smoke(**changes), [CONFIG])
    message = str(error.value)
    assert said in message
    assert message.startswith("config")
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_a_config_that_is_no_mapping_is_an_error(data):
    with pytest.raises(ConfigError, match="key: value"):
        load_sweep(data, [CONFIG])


def test_a_key_that_is_no_text_is_an_error():
    with pytest.raises(ConfigError, match="write 'True' in quotes"):
        check({True: 1}, "config", "config")


def outcome(config) -> str:
    """What planning says about a config: nothing, or the one line. Any other exception is a fault."""
    try:
        made = load_sweep(config, [CONFIG])
    except ConfigError as error:
        return str(error)
    for cell in made.cells[:4]:
        json.dumps([made.launch(cell.server).to_json(), made.identity(cell), str(made.findings(cell))])
    return ""


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(load_schema("config")["properties"])), junk)
def test_whatever_stands_in_a_key_is_planned_or_explained(key, value):
    config = smoke(**{key: value})
    assert "\n" not in outcome(config)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["include", "exclude", "overrides", "method"]),
    st.sampled_from([*AXES, "when", "flags", "environment", "name", "speculative_config", "method"]),
    junk,
)
def test_whatever_stands_in_a_list_entry_is_planned_or_explained(key, inner, value):
    entry = {"overrides": {"when": {"k": 3}}, "method": {"name": "mtp", "k": [1]}}.get(key, {"method": "mtp"})
    config = smoke(**{key: [entry | {inner: value}]})
    assert "\n" not in outcome(config)


def test_the_unknown_key_is_shown_before_the_missing_one_it_was_meant_to_be():
    config = smoke(concurrency=...) | {"concurency": [1]}
    assert "unknown key 'concurency'" in explain(config, "config")


def test_further_errors_are_counted():
    assert explain(smoke(repeats=0, stop_grace_s=0), "config").endswith("(and 1 more)")


def test_explain_takes_the_path_that_validate_took():
    message = explain(smoke(repeats="x"), SCHEMAS / "config.schema.yaml")
    assert message.startswith("config: repeats: 'x' is text")


@pytest.mark.parametrize(
    "path",
    sorted(set(CONFIG.glob("*.yaml")) - {CONFIG / "published.yaml"}) + sorted(CONFIG.glob("studies/*.yaml")),
    ids=str,
)
def test_snakemake_accepts_every_shipped_config_and_fills_the_same_defaults(path):
    config = read_yaml(path)
    validate(config, str(SCHEMAS / "config.schema.yaml"))
    assert config == check(read_yaml(path), "config", "config")


def test_check_leaves_its_argument_alone_and_shares_no_defaults():
    config = smoke(measurement=...)
    first = check(config, "config", "config")
    assert "measurement" not in config
    first["measurement"]["min_requests"] = 99
    assert check(config, "config", "config")["measurement"]["min_requests"] != 99


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_object_of_every_schema_is_closed_or_open_on_purpose(schema):
    """Objects with fixed properties refuse other keys: a misspelt one must not be ignored."""
    from jsonschema import Draft202012Validator

    data = read_yaml(schema)
    Draft202012Validator.check_schema(data)

    def walk(node):
        if isinstance(node, dict):
            if "properties" in node and isinstance(node["properties"], dict) and node.get("type") is not None:
                assert node.get("additionalProperties") is False, node
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(data)


@pytest.mark.parametrize(
    "keys",
    [
        {"environment_names": ["HF_TOKEN=hf_value"]},
        {"environment_names": "HF_TOKEN=hf_value"},
        {"environment_names": {"HF_TOKEN": "hf_value"}},
        {"environment_names": ["A=hf_value", "A=hf_value"]},
        {"api_key_name": "hf_value/1"},
    ],
)
def test_a_secret_in_the_place_of_its_name_is_not_repeated(keys):
    engine = {"description": "an engine", "kind": "vllm", "launcher": "process"}
    check(engine, "engine", "engine.yaml")
    with pytest.raises(ConfigError, match="it may be a secret") as refused:
        check(engine | keys, "engine", "engine.yaml")
    assert "hf_value" not in str(refused.value)
    assert next(iter(keys)) in str(refused.value)
