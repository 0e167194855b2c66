from __future__ import annotations

import inspect
import json
import re

import pytest
import yaml
from openai.resources.chat.completions import AsyncCompletions

from scripts.lib.config import ConfigError, read_yaml
from scripts.lib.scenario import load_scenario
from scripts.lib.words import unit_ends
from tests.planning import CONFIG

SCENARIOS = sorted((CONFIG / "scenarios").glob("*.yaml"))
BASE = {
    "description": "two prompts",
    "prompts": {"a": "first prompt", "b": "second prompt"},
    "warmup_prompts": {"w": "warm up"},
    "output": {"max_tokens": 8},
    "sampling": {"temperature": 0.5, "top_p": 0.9, "seed": 7},
}


def scenario(tmp_path, **changes):
    path = tmp_path / "some.yaml"
    path.write_text(yaml.safe_dump(BASE | changes, sort_keys=False))
    return load_scenario(path)


def bare(**changes):
    """BASE without its prompts."""
    return {key: value for key, value in BASE.items() if "prompts" not in key} | changes


def saved(tmp_path, content):
    path = tmp_path / "some.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return load_scenario(path)


def from_file(tmp_path, lines, **changes):
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return saved(tmp_path, bare(file="lines.jsonl", warmup_entries=1, **changes))


def contents(requests):
    return [request.body["messages"][0]["content"] for request in requests]


def test_prompts_rotate_and_phases_have_their_own(tmp_path):
    requests = scenario(tmp_path, nonce=False).requests("measure", 5, "salt")
    assert [request.prompt_id for request in requests] == ["a", "b", "a", "b", "a"]
    assert [request.index for request in requests] == [0, 1, 2, 3, 4]
    assert contents(requests)[:2] == ["first prompt", "second prompt"]
    assert contents(scenario(tmp_path, nonce=False).requests("warmup", 2, "salt")) == ["warm up", "warm up"]


def test_the_body_is_what_the_openai_client_accepts(tmp_path):
    made = scenario(
        tmp_path,
        output={"max_tokens": 8, "min_tokens": 8, "ignore_eos": True},
        chat_template_kwargs={"enable_thinking": False},
    )
    body = made.requests("measure", 1, "s")[0].body
    assert body.keys() <= inspect.signature(AsyncCompletions.create).parameters.keys()
    assert not {"model", "stream"} & body.keys()
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (8, 0.5, 0.9)
    assert body["extra_body"] == {
        "min_tokens": 8,
        "ignore_eos": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_without_engine_extensions_the_body_is_plain_openai(tmp_path):
    assert "extra_body" not in scenario(tmp_path).requests("measure", 1, "s")[0].body


def test_nonces_differ_by_request_phase_and_salt_and_stand_first(tmp_path):
    made = scenario(tmp_path, warmup_prompts={"w": "other"})
    texts = [
        text.split(" ")[0]
        for phase in ("measure", "warmup")
        for salt in ("one", "two")
        for text in contents(made.requests(phase, 20, salt))
    ]
    assert len(set(texts)) == 80
    # Digits alone, always as many: mixed with letters, nonces would have other numbers of tokens.
    assert all(re.fullmatch(r"\[[0-9]{12}\]", text) for text in texts)


def test_a_nonce_stands_before_everything_else_that_is_said(tmp_path):
    lines = [
        {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": word}]}
        for word in "abc"
    ]
    body = from_file(tmp_path, lines).requests("measure", 1, "s")[0].body
    assert re.fullmatch(r"\[[0-9]{12}\] be brief", body["messages"][0]["content"])
    assert body["messages"][1] == {"role": "user", "content": "a"}


def test_without_a_nonce_prompts_are_sent_as_they_are(tmp_path):
    made = scenario(tmp_path, nonce=False)
    assert contents(made.requests("measure", 2, "one")) == contents(made.requests("measure", 2, "two"))


def test_the_same_arguments_give_the_same_requests(tmp_path):
    made = scenario(tmp_path)
    assert made.requests("measure", 4, "s") == made.requests("measure", 4, "s")
    assert made.requests("measure", 8, "s")[:4] == made.requests("measure", 4, "s")


def test_seeds_count_up_so_that_repetitions_of_a_prompt_differ(tmp_path):
    seeds = [request.body["seed"] for request in scenario(tmp_path).requests("measure", 3, "s")]
    assert seeds == [7, 8, 9]
    assert "seed" not in scenario(tmp_path, sampling={}).requests("measure", 1, "s")[0].body


# --- prompts out of a file ---------------------------------------------------------------------------------------


def test_the_last_prompts_of_a_file_warm_up_and_are_not_measured(tmp_path):
    lines = [{"prompt": word} for word in ("one", "two", "three", "four")]
    made = from_file(tmp_path, lines, nonce=False)
    assert contents(made.requests("measure", 4, "s")) == ["one", "two", "three", "one"]
    assert contents(made.requests("warmup", 2, "s")) == ["four", "four"]
    by_default = saved(tmp_path, bare(file="lines.jsonl"))
    assert [prompt.text for prompt in by_default.warmup_prompts] == ["three", "four"]
    few = saved(tmp_path, bare(file="lines.jsonl", limit=3))
    assert [prompt.text for prompt in few.prompts] == ["one"]
    own = saved(tmp_path, bare(file="lines.jsonl", warmup_prompts={"w": "other"}))
    assert len(own.prompts) == 4


def test_a_line_s_limit_replaces_the_scenario_s_and_forced_answers_stay_forced(tmp_path):
    lines = [{"prompt": "short", "max_tokens": 3}, {"prompt": "as usual"}, {"prompt": "warm"}]
    forced = {"max_tokens": 8, "min_tokens": 8, "ignore_eos": True}
    first, second = from_file(tmp_path, lines, output=forced).requests("measure", 2, "s")
    assert (first.body["max_tokens"], first.body["extra_body"]["min_tokens"]) == (3, 3)
    assert (second.body["max_tokens"], second.body["extra_body"]["min_tokens"]) == (8, 8)


def test_the_digest_covers_what_the_file_says_and_not_how(tmp_path):
    lines = [{"prompt": "one"}, {"prompt": "two"}, {"prompt": "three"}]
    digest = from_file(tmp_path, lines).sha256
    assert from_file(tmp_path, [*lines[:2], {"prompt": "3"}]).sha256 != digest
    assert from_file(tmp_path, [*lines, {"prompt": "four"}]).sha256 != digest
    assert from_file(tmp_path, [lines[0] | {"max_tokens": 5}, *lines[1:]]).sha256 != digest
    assert from_file(tmp_path, [lines[0] | {"category": "new"}, *lines[1:]]).sha256 == digest
    # Beyond the limit nothing is used.
    limited = from_file(tmp_path, lines, limit=2).sha256
    assert from_file(tmp_path, [*lines, {"prompt": "four"}], limit=2).sha256 == limited
    text = "\n\n" + "\n".join(json.dumps(line, indent=None, separators=(",", ":")) for line in lines)
    (tmp_path / "other.jsonl").write_text(text)
    assert saved(tmp_path, bare(file="other.jsonl", warmup_entries=1)).sha256 == digest


# --- prompts of a wanted length ----------------------------------------------------------------------------------


def sized(tmp_path, **changes):
    (tmp_path / "pad.txt").write_text("one two three\n\nfour five six\n\nseven eight nine\n")
    return saved(tmp_path, BASE | {"input_tokens": 40, "padding": "pad.txt", "nonce": False} | changes)


def test_prompts_get_so_much_padding_as_they_are_told(tmp_path):
    made = sized(tmp_path)
    sizes = {("measure", "a"): 2, ("measure", "b"): 4, ("warmup", "w"): 0}
    assert contents(made.requests("measure", 2, "s", sizes)) == [
        "first prompt\n\none two",
        "second prompt\n\nfour five six\n\nseven",
    ]
    assert contents(made.requests("warmup", 1, "s", sizes)) == ["warm up"]
    with pytest.raises(KeyError):
        made.requests("measure", 2, "s", {("measure", "a"): 2})


def test_the_digest_covers_padding_and_target(tmp_path):
    digest = sized(tmp_path).sha256
    assert sized(tmp_path, input_tokens=41).sha256 != digest
    (tmp_path / "pad.txt").write_text("one two three\n\nfour five six\n\nseven eight ten\n")
    assert saved(tmp_path, BASE | {"input_tokens": 40, "padding": "pad.txt", "nonce": False}).sha256 != digest
    (tmp_path / "again.txt").write_text("one two\nthree\n\n\nfour five six\n\nseven eight nine")
    assert (
        saved(tmp_path, BASE | {"input_tokens": 40, "padding": "again.txt", "nonce": False}).sha256 == digest
    )


def test_random_prompts_are_padding_alone_and_differ(tmp_path):
    made = saved(tmp_path, bare(random={"prompts": 3, "seed": 1}, input_tokens=64, nonce=False))
    sizes = {
        (phase, prompt.id): 20 for phase in ("measure", "warmup") for prompt in made.in_rotation(phase, 9)
    }
    texts = contents(made.requests("measure", 3, "s", sizes)) + contents(
        made.requests("warmup", 2, "s", sizes)
    )
    assert len(set(texts)) == 5
    assert all(len(unit_ends(text)) == 20 for text in texts)
    assert (
        saved(tmp_path, bare(random={"prompts": 3, "seed": 2}, input_tokens=64, nonce=False)).sha256
        != made.sha256
    )


def test_the_digest_ignores_comments_and_description(tmp_path):
    first = scenario(tmp_path).sha256
    path = tmp_path / "some.yaml"
    path.write_text("# a comment\n" + yaml.safe_dump(BASE | {"description": "other"}, sort_keys=False))
    assert load_scenario(path).sha256 == first
    path.rename(tmp_path / "renamed.yaml")
    assert load_scenario(tmp_path / "renamed.yaml").sha256 == first


@pytest.mark.parametrize(
    "change",
    [
        {"prompts": {"b": "second prompt", "a": "first prompt"}},
        {"prompts": {"a": "first prompt!", "b": "second prompt"}},
        {"warmup_prompts": {"w": "else"}},
        {"output": {"max_tokens": 9}},
        {"output": {"max_tokens": 8, "ignore_eos": True}},
        {"sampling": {"temperature": 0.5, "top_p": 0.9, "seed": 8}},
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"nonce": False},
    ],
)
def test_the_digest_sees_whatever_changes_a_request(tmp_path, change):
    assert scenario(tmp_path, **change).sha256 != scenario(tmp_path).sha256


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"output": {"max_tokens": 4, "min_tokens": 5}}, "output.min_tokens: 5 is more than max_tokens, 4"),
        ({"output": {}}, "output: the key 'max_tokens' is missing"),
        ({"prompts": {}}, "prompts: is empty"),
        ({"prompts": {"a": "  "}}, "prompts.a: '  ' does not have the right form"),
        ({"prompts": ["a"]}, "prompts: ['a'] is a list, where a mapping is needed"),
        ({"prompts": {"a/b": "x"}}, "the name 'a/b' has characters"),
        ({"warmup_prompts": {"w": "first prompt"}}, "a measured prompt is among them"),
        ({"sampling": {"temprature": 1}}, "did you mean 'temperature'?"),
        ({"sampling": {"top_p": 0}}, "sampling.top_p: 0 is not above 0"),
        ({"nonce": "no"}, "nonce: 'no' is text, where true or false is needed"),
    ],
)
def test_a_wrong_scenario_names_file_and_key(tmp_path, change, said):
    with pytest.raises(ConfigError) as error:
        scenario(tmp_path, **change)
    assert str(tmp_path / "some.yaml") in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bare(), "the key 'prompts' is missing; give prompts, or a file of prompts, or random prompts"),
        (bare(prompts={"a": "x"}), "the key 'warmup_prompts' is missing"),
        (BASE | {"file": "x.jsonl"}, "file: there is prompts as well; leave one of them"),
        (BASE | {"limit": 3}, "limit: is about a file of prompts, and no file is given"),
        (BASE | {"warmup_entries": 3}, "warmup_entries: is about a file of prompts"),
        (bare(file="missing.jsonl"), "file: there is no file"),
        (
            bare(file="lines.jsonl", warmup_entries=4),
            "lines.jsonl: has 4 usable prompts, of which the last 4 warm up",
        ),
        (
            bare(file="lines.jsonl", warmup_entries=1, warmup_prompts={"w": "x"}),
            "there are warmup_prompts as well",
        ),
        (bare(file="same.jsonl", warmup_entries=1), "a measured prompt is among them (0002: 'x')"),
        (
            bare(prompts={"a": "x"}, warmup_prompts={"v": "y", "w": "y"}),
            "a prompt is among them twice (w: 'y')",
        ),
        (bare(random={}), "the key 'input_tokens' is missing; it says how long random prompts are"),
        (
            bare(random={}, input_tokens=9, warmup_prompts={"w": "x"}),
            "random prompts warm up with random prompts",
        ),
        (bare(random={}, input_tokens=9, padding="x.txt"), "padding: random prompts have their own"),
        (BASE | {"padding": "x.txt"}, "padding: input_tokens is not given"),
        (BASE | {"input_tokens": 9, "padding": "x.txt"}, "padding: there is no file"),
        (BASE | {"prompts": {"a": "read {padding}"}}, "prompt a: {padding} is filled up to input_tokens"),
        (BASE | {"prompts": {"a": "x" * 900}, "input_tokens": 99}, "prompt a alone has at least 112 tokens"),
        (BASE | {"input_tokens": 0}, "input_tokens: 0 is less than 1"),
        (BASE | {"output": {"max_tokens": 0}}, "output.max_tokens: 0 is less than 1"),
    ],
)
def test_a_scenario_that_contradicts_itself_is_refused(tmp_path, content, said):
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps({"prompt": word}) + "\n" for word in "abcd"))
    (tmp_path / "same.jsonl").write_text('{"prompt": "x"}\n{"prompt": "x", "max_tokens": 4}\n')
    with pytest.raises(ConfigError) as error:
        saved(tmp_path, content)
    assert said in str(error.value)
    assert str(tmp_path) in str(error.value)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenarios_load_and_warm_up_in_the_same_shape(path):
    made = load_scenario(path)
    longest = max(len(prompt.text) for prompt in made.prompts)
    shortest = min(len(prompt.text) for prompt in made.prompts)
    assert all(0.6 * shortest <= len(prompt.text) <= 1.4 * longest for prompt in made.warmup_prompts)
    if made.random_seed is None:
        assert not {p.text for p in made.prompts} & {p.text for p in made.warmup_prompts}


def test_study_a_samples_as_the_study_did():
    body = load_scenario(CONFIG / "scenarios" / "code.yaml").requests("measure", 1, "s")[0].body
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (2048, 1.0, 0.95)
    assert body["extra_body"] == {"chat_template_kwargs": {"enable_thinking": False}}
    assert len(read_yaml(CONFIG / "scenarios" / "code.yaml")["prompts"]) == 4
