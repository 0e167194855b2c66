from __future__ import annotations

import inspect

import pytest
import yaml
from openai.resources.chat.completions import AsyncCompletions

from scripts.lib.config import ConfigError, read_yaml
from scripts.lib.scenario import load_scenario
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
    assert all(text.startswith("[") and text.endswith("]") for text in texts)


def test_the_same_arguments_give_the_same_requests(tmp_path):
    made = scenario(tmp_path)
    assert made.requests("measure", 4, "s") == made.requests("measure", 4, "s")
    assert made.requests("measure", 8, "s")[:4] == made.requests("measure", 4, "s")


def test_seeds_count_up_so_that_repetitions_of_a_prompt_differ(tmp_path):
    seeds = [request.body["seed"] for request in scenario(tmp_path).requests("measure", 3, "s")]
    assert seeds == [7, 8, 9]
    assert "seed" not in scenario(tmp_path, sampling={}).requests("measure", 1, "s")[0].body


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


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_shipped_scenarios_load_and_warm_up_in_the_same_shape(path):
    made = load_scenario(path)
    longest = max(len(prompt.text) for prompt in made.prompts)
    shortest = min(len(prompt.text) for prompt in made.prompts)
    assert all(0.6 * shortest <= len(prompt.text) <= 1.4 * longest for prompt in made.warmup_prompts)
    assert not {p.text for p in made.prompts} & {p.text for p in made.warmup_prompts}


def test_study_a_samples_as_the_study_did():
    body = load_scenario(CONFIG / "scenarios" / "code.yaml").requests("measure", 1, "s")[0].body
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (2048, 1.0, 0.95)
    assert body["extra_body"] == {"chat_template_kwargs": {"enable_thinking": False}}
    assert len(read_yaml(CONFIG / "scenarios" / "code.yaml")["prompts"]) == 4
