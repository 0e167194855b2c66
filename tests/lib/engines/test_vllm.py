from __future__ import annotations

import json
import shlex

import pytest

from scripts.lib.config import REPOSITORY, read_yaml
from scripts.lib.engines.vllm import argv
from scripts.lib.launch import PORT, Container
from scripts.lib.sweep import load_sweep
from tests.planning import engine, hardware, model, resolved, study

STUDIES = REPOSITORY / "tests/data/studies"


def flags_of(words):
    """Each flag with its values; a JSON value parsed, so that spacing and key order do not matter."""
    flags, current = {}, None
    for word in words:
        if word.startswith("--"):
            current = word
            assert current not in flags, f"{current} is given twice"
            flags[current] = []
        else:
            flags[current].append(json.loads(word) if word.startswith("{") else word)
    return flags


def speculative(words):
    return json.loads(words[words.index("--speculative-config") + 1])


def test_study_a_flag_for_flag():
    lines = (STUDIES / "a.txt").read_text().splitlines()
    published = [shlex.split(line) for line in lines]
    sweep = study("a")
    planned = [shlex.split(sweep.launch(server).command_line(port=8000)) for server in sweep.servers]
    assert [server.method for server in sweep.servers] == ["none", "mtp", "dflash", "dspark"]
    assert len(published) == len(planned) == 4
    for expected, words in zip(published, planned, strict=True):
        assert words[:3] == expected[:3]
        own = {"--host": ["127.0.0.1"], "--port": ["8000"]}
        assert flags_of(words[3:]) == flags_of(expected[3:]) | own


@pytest.mark.parametrize("machine", ["h100", "h200"])
def test_the_cookbook_s_flags_by_method(machine):
    published = [shlex.split(line) for line in (STUDIES / "cookbook-h100.txt").read_text().splitlines()]
    config = read_yaml(REPOSITORY / "config/studies/a.yaml") | {"hardware": [machine], "overrides": []}
    config["method"] = [{"name": "none"}, {"name": "dspark", "k": [3]}]
    sweep = load_sweep(config, [REPOSITORY / "config"])
    planned = [shlex.split(sweep.launch(server).command_line(port=8000)) for server in sweep.servers]
    for expected, words in zip(published, planned, strict=True):
        own = {"--host": ["127.0.0.1"], "--port": ["8000"]}
        assert flags_of(words[3:]) == flags_of(expected[3:]) | own


def test_the_baseline_has_no_speculative_config():
    assert "--speculative-config" not in argv(resolved("none", 0))


def test_the_order_of_flags_in_a_file_does_not_matter():
    assert argv(resolved(flags={"b": 1, "a": 2})) == argv(resolved(flags={"a": 2, "b": 1}))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--x"]),
        (3, ["--x", "3"]),
        (0.91, ["--x", "0.91"]),
        (0, ["--x", "0"]),
        ("a b", ["--x", "a b"]),
        ("", ["--x", ""]),
        ([1, "b"], ["--x", "1", "b"]),
        ([{"a": 1}], ["--x", '{"a":1}']),
        ({"a": [1, None, True], "b": "é"}, ["--x", '{"a":[1,null,true],"b":"é"}']),
    ],
)
def test_each_kind_of_value(value, words):
    built = list(argv(resolved("none", 0, flags={"x": value})))
    at = built.index("--x")
    assert built[at : built.index("--host")] == words


def test_drafters_come_from_the_model_file():
    assert speculative(argv(resolved("eagle", 2))) == {
        "method": "eagle",
        "model": "org/eagle",
        "num_speculative_tokens": 2,
    }


def test_a_drafter_may_be_named_by_the_method():
    keys = speculative(
        argv(resolved("eagle", 2, speculative_config={"model": "other", "quantization": "fp8"}))
    )
    assert keys["model"] == "other"
    assert keys["quantization"] == "fp8"


def test_mtp_on_marlin_gets_a_backend_of_its_own_unless_one_is_given():
    assert speculative(argv(resolved("mtp", flags={"moe-backend": "marlin"})))["moe_backend"] == "triton"
    own = {"moe_backend": "aiter"}
    words = argv(resolved("mtp", flags={"moe-backend": "marlin"}, speculative_config=own))
    assert speculative(words)["moe_backend"] == "aiter"
    assert "moe_backend" not in speculative(argv(resolved("mtp", flags={"moe-backend": "humming"})))
    assert "moe_backend" not in speculative(argv(resolved("dspark", flags={"moe-backend": "marlin"})))


def test_the_head_of_a_pinned_target_is_of_the_same_revision():
    assert speculative(argv(resolved("mtp", 3, target=model(revision="abc"))))["revision"] == "abc"
    folder = model(target="resources/models/x", revision="1")
    assert "revision" not in speculative(argv(resolved("mtp", 3, target=folder)))
    assert "revision" not in speculative(argv(resolved("ngram", 3, target=model(revision="abc"))))


def test_revisions_are_asked_of_the_hub_only():
    assert "--revision" in argv(resolved("none", 0, target=model(revision="abc")))
    assert "--revision" not in argv(
        resolved("none", 0, target=model(target="resources/models/x", revision="1"))
    )


def test_a_server_listens_on_this_host_only():
    words = argv(resolved())
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[words.index("--port") + 1] == PORT


def test_in_a_bridged_container_it_listens_on_the_published_port():
    bridged = engine(launcher="docker", container=Container("image", port=8123))
    words = argv(resolved(build=bridged))
    assert words[words.index("--host") + 1] == "0.0.0.0"
    assert words[words.index("--port") + 1] == "8123"
    hosted = engine(launcher="docker", container=Container("image", network="host"))
    assert argv(resolved(build=hosted)) == argv(resolved())


def test_levels_merge_in_the_documented_order():
    """hardware < model < engine < method < override; a level's own overrides follow its flags."""
    parts = {
        "machine": hardware(
            flags={"a": "hardware", "b": "hardware", "c": "hardware", "d": "hardware", "e": "hardware"},
            overrides=({"when": {"method": "mtp"}, "flags": {"a": "hardware override", "f": 1}},),
        ),
        "target": model(flags={"b": "model", "c": "model", "d": "model", "e": "model"}),
        "build": engine(
            flags={"c": "engine", "d": "engine", "e": "engine"},
            overrides=({"when": {"engine_kind": "sglang"}, "flags": {"e": "never"}},),
        ),
        "flags": {"d": "method", "e": "method"},
    }
    merged = resolved("mtp", **parts).flags
    assert merged == {
        "a": "hardware override",
        "b": "model",
        "c": "engine",
        "d": "method",
        "e": "method",
        "f": 1,
    }


def test_speculative_keys_merge_with_those_of_lower_levels():
    machine = hardware(flags={"speculative-config": {"moe_backend": "triton", "quantization": "fp8"}})
    keys = resolved("eagle", 2, machine=machine, speculative_config={"quantization": None}).speculative
    assert keys == {
        "method": "eagle",
        "model": "org/eagle",
        "moe_backend": "triton",
        "num_speculative_tokens": 2,
    }
    assert resolved("none", 0, machine=machine).speculative is None
