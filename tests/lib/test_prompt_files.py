from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scripts.lib.config import ConfigError
from scripts.lib.prompt_files import UNRESOLVED, Prompt, find_beside, read_prompts

USER = {"role": "user", "content": "a question"}
ANSWER = {"role": "assistant", "content": "an answer"}


def file_of(tmp_path, *entries):
    path = tmp_path / "prompts.jsonl"
    lines = [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in entries]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def only(tmp_path, entry):
    (prompt,) = read_prompts(file_of(tmp_path, entry), None)
    return prompt


def refusal(tmp_path, *entries):
    with pytest.raises(ConfigError) as error:
        read_prompts(file_of(tmp_path, *entries), None)
    message = str(error.value)
    assert str(tmp_path / "prompts.jsonl") in message
    assert "\n" not in message
    return message


# --- layouts -----------------------------------------------------------------------------------------------------


def test_prompt_and_messages_with_an_optional_limit(tmp_path):
    path = file_of(
        tmp_path,
        {"prompt": "one", "max_tokens": 7},
        "",
        {"messages": [{"role": "system", "content": "be brief"}, USER]},
        {"prompt": "three", "output_tokens": 9, "anything": "else"},
    )
    assert read_prompts(path, None) == (
        Prompt("0001", "one", (), 7),
        Prompt("0002", "a question", (("system", "be brief"),)),
        Prompt("0003", "three", (), 9),
    )


def test_a_conversation_is_replayed_up_to_the_first_question_without_an_answer(tmp_path):
    again = {"role": "user", "content": "and then?"}
    assert only(tmp_path, {"messages": [USER, ANSWER, again]}) == Prompt(
        "0001", "and then?", (("user", "a question"), ("assistant", "an answer"))
    )
    assert only(tmp_path, {"messages": [USER, ANSWER]}) == Prompt("0001", "a question")
    assert only(tmp_path, {"messages": [USER, again]}) == Prompt("0001", "a question")


def test_parts_of_text_are_joined(tmp_path):
    parts = [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]
    assert only(tmp_path, {"messages": [{"role": "user", "content": parts}]}).text == "first\nsecond"


def test_speed_bench_as_published_and_as_its_script_writes_it(tmp_path):
    rest = {"question_id": "q1", "category": "coding", "sub_category": None, "multiturn": True}
    assert only(tmp_path, rest | {"turns": ["write it", "now test it"]}) == Prompt("0001", "write it")
    messages = [{"role": "user", "content": text} for text in ("write it", "now test it")]
    assert only(tmp_path, rest | {"messages": messages}) == Prompt("0001", "write it")


def test_a_speed_bench_placeholder_is_no_prompt(tmp_path):
    said = refusal(tmp_path, {"prompt": "fine"}, {"turns": [f"{UNRESOLVED} FROM THE SOURCE"]})
    assert "line 2: holds the placeholder" in said


def test_sharegpt_as_one_list(tmp_path):
    path = tmp_path / "share.json"
    entries = [
        {"id": "x", "conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi"}]},
        {"id": "y", "conversations": []},
        {"id": "z", "conversations": [{"from": "gpt", "value": "cut off"}]},
        {
            "id": "w",
            "conversations": [{"from": "system", "value": "sys"}, {"from": "human", "value": "again"}],
        },
    ]
    path.write_text(json.dumps(entries, indent=1))
    assert read_prompts(path, None) == (
        Prompt("0001", "hello"),
        Prompt("0002", "again", (("system", "sys"),)),
    )


def test_the_limit_counts_prompts_and_what_lies_beyond_is_not_looked_at(tmp_path):
    path = file_of(tmp_path, {"prompt": "one"}, {"prompt": "two"}, "not JSON at all")
    assert [prompt.text for prompt in read_prompts(path, 2)] == ["one", "two"]


def test_a_byte_order_mark_and_line_separators_inside_texts_do_no_harm(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({"prompt": "a\u2028b"}, ensure_ascii=False).encode() + b"\r\n"
    )
    assert read_prompts(path, None)[0].text == "a\u2028b"


# --- what is wrong with a file --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{'prompt': 1}", "line 2: no JSON"),
        ('{"prompt": "cut', "line 2: no JSON"),
        ("42", "line 2: an object with messages or prompt is needed, not integer"),
        ({}, "line 2: has neither messages nor prompt"),
        ({"prompt": None}, "line 2: has neither messages nor prompt"),
        ({"promt": "x"}, "line 2: unknown key 'promt'; did you mean 'prompt'?"),
        ({"prompt": "x", "max_token": 5}, "did you mean 'max_tokens'?"),
        ({"prompt": "x", "max_tokens": 0}, "line 2: max_tokens: 0 is no number of tokens"),
        ({"prompt": "x", "max_tokens": True}, "max_tokens: True is no number of tokens"),
        ({"prompt": "x", "max_tokens": "9"}, "max_tokens: '9' is no number of tokens"),
        ({"prompt": "  "}, "line 2: prompt: is empty"),
        ({"prompt": ["x"]}, "line 2: prompt: only text can be sent, not list"),
        ({"prompt": "\ud800"}, "half of a surrogate pair"),
        ({"messages": []}, "line 2: messages: give a list"),
        ({"messages": "hi"}, "line 2: messages: give a list"),
        ({"messages": [ANSWER]}, "line 2: messages: none of them is a user's"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages: none of them is a user's"),
        ({"messages": [USER | {"role": "human"}]}, "line 2: messages[0].role: 'human' is not known"),
        (
            {"messages": [USER | {"content": None}]},
            "line 2: messages[0].content: only text can be sent, not null",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content: only text can be sent, not list",
        ),
        ({"messages": ["hi"]}, "line 2: messages[0]: give an object with role and content"),
        ({"turns": []}, "line 2: turns: give a list of texts"),
        ({"conversations": ["hi"]}, "line 2: conversations: give a list of objects with from and value"),
    ],
)
def test_a_bad_line_is_named(tmp_path, entry, said):
    if isinstance(entry, dict):
        entry = json.dumps(entry)
    assert said in refusal(tmp_path, {"prompt": "fine"}, entry)


def test_a_file_without_prompts_is_refused(tmp_path):
    assert "has no prompt" in refusal(tmp_path, "", " ")
    assert "has no prompt" in refusal(tmp_path, "[]")
    assert "has no prompt" in refusal(tmp_path, {"conversations": []})


def test_text_that_is_not_utf8_is_named_by_its_line(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_bytes(b'{"prompt": "a"}\n{"prompt": "caf\xe9"}\n')
    with pytest.raises(ConfigError, match="line 2: not UTF-8 text"):
        read_prompts(path, None)


def test_a_broken_list_is_named_by_its_line(tmp_path):
    assert "line 3: no JSON" in refusal(tmp_path, '[\n {"prompt": "x"},\n {"prompt" "y"}]')
    assert "entry 2: has neither" in refusal(tmp_path, '[{"prompt": "x"}, {}]')


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["messages", "prompt", "turns", "conversations", "max_tokens", "role", "x"]),
        st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.just(USER)),
            lambda inner: st.one_of(
                st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=3,
    )
)
def test_whatever_stands_in_a_line_is_read_or_explained(tmp_path, entry):
    path, message = file_of(tmp_path, {"prompt": "fine"}, json.dumps(entry)), "line 2"
    try:
        read_prompts(path, None)
    except ConfigError as error:
        message = str(error)
    assert "line 2" in message


# --- where files lie ---------------------------------------------------------------------------------------------------


def test_a_file_is_looked_for_beside_the_scenario_first_and_then_in_the_working_directory(
    tmp_path, monkeypatch
):
    scenario = tmp_path / "config" / "scenarios" / "mine.yaml"
    scenario.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.jsonl").touch()
    assert find_beside(scenario, "p.jsonl", "file").samefile(tmp_path / "p.jsonl")
    (scenario.parent / "p.jsonl").touch()
    assert find_beside(scenario, "p.jsonl", "file").samefile(scenario.parent / "p.jsonl")
    assert find_beside(scenario, str(tmp_path / "p.jsonl"), "file").samefile(tmp_path / "p.jsonl")


@pytest.mark.parametrize("name", ["missing.jsonl", "x" * 5000, "."])
def test_a_missing_file_is_told_with_the_places(tmp_path, name):
    with pytest.raises(ConfigError) as error:
        find_beside(tmp_path / "mine.yaml", name, "file")
    assert f"{tmp_path / 'mine.yaml'}: file: there is no file {tmp_path}" in str(error.value)
