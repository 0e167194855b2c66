"""Degenerate output by its form: loops, nothing, one word, unreadable. What a weak model says in earnest must pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.degenerate import excerpt, judge, loop_share, objection, repeats, unreadable, variety
from scripts.lib.words import words

SANE = [
    # What SmolLM2-135M really says: silly, cut off by a limit of 24 tokens, and language all the same.
    "A bridge is a physical or metaphorical structure that connects two distinct",
    "A sunny, sunny morning with a drizzle of rain on",
    "In one sentence, people use clocks to keep track of time",
    "```python\nclass LRUCache:\n    def __init__(self, capacity):\n        self.cache = {}",
    "```python\ndef binary_search(arr, target):\n    return binary_search_helper(arr, target,",
    "```python\ndef most_frequent_words(text):\n    return max(text.count(max(text",
    '```python\ndef parse_log_line(log_line):\n    return {\n        "type": "string",',
    "橋は、川や谷の両岸を結び、人や車が安全に渡るための構造物です。",
    "プログラムは文章を読み、TokyoやOsakaのような英語の名前もそのまま残します。",
    "Мост соединяет два берега реки, чтобы люди могли пройти.",
    "다리는 강을 건너기 위해 만든 구조물입니다.",
    "Le pont relie les deux rives, où l'on passe à pied.",
    "1. Wake up\n2. Wash\n3. Eat\n4. Work\n5. Eat again\n6. Sleep",
    "Yes, because it is.",
    "x = 42",
    "The capital is Paris. 🎉",
    "x = 1000000000",
    "He had had a very, very long day, and that that he said was true.",
    "Orang-orang berjalan-jalan di pagi hari dan anak-anak bermain-main di taman kota.",
    "妈妈天天带弟弟妹妹去公园，大家都玩得很高兴。",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "สะพานใช้สำหรับข้ามแม่น้ำและเชื่อมสองฝั่ง",
    "पुल नदी के दोनों किनारों को जोड़ता है।",
    "الجسر يربط بين ضفتي النهر.",
    "# Bridges\n" + "=" * 40 + "\nA bridge carries people and goods over a river, a valley or a road.",
]


@pytest.mark.parametrize("text", SANE)
@pytest.mark.parametrize("forced", [False, True])
def test_what_may_be_an_answer_passes(text, forced):
    assert objection(text, forced) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("The", "one word"),
        ("Yes.", "one word"),
        ("the the the the the the the", "a repetition"),
        ("It is a bridge. " * 20, "a repetition"),
        ("I see. " + "橋は川です。" * 10, "a repetition"),
        ("!!!!!", "wordless"),
        ("😀", "wordless"),
        ("```\n```", "wordless"),
        ("!" * 64, "a repetition"),
        ("A bridge is" + "!" * 64, "a repetition"),
        ("." * 30, "a repetition"),
        ("<unk>" * 12, "a repetition"),
        ("| | " * 20, "a repetition"),
        ("A bridge bridge is is for for crossing crossing a a river river", "a repetition"),
        ("I I I am am am a a a bridge bridge bridge", "a repetition"),
        ("good \ufffd\ufffd bad \ufffd\ufffd\ufffd and \ufffd more", "unreadable"),
        ("word \x00\x01\x02 another \x00\x07 third", "unreadable"),
        ("мир the 橋 ธ bridge שלום ab это", "unreadable"),
        ("㐁㐂 㐃㐄㐅 㐆㐇 㐈㐉", "unreadable"),
    ],
)
def test_what_is_no_answer_is_named(text, kind):
    assert objection(text, False) == kind


def test_a_limit_on_tokens_may_cut_the_last_character():
    assert unreadable("富士山は日本で一番高い山です\ufffd") is None
    assert unreadable("富士山\ufffd\ufffd\ufffd\ufffdは日本で") is not None


def test_an_answer_of_forced_length_may_run_into_a_loop_after_its_end():
    answer = (
        "A bridge carries people and cars from one bank of a river to the other side. " + "The end. " * 15
    )
    assert objection(answer, forced_length=False) == "a repetition"
    assert objection(answer, forced_length=True) is None
    assert objection("So. " + "The end. " * 40, forced_length=True) == "a repetition"


def test_a_loop_that_counts_its_rounds_is_a_repetition():
    text = " ".join(f"Step {n}: open the file and read the next line of it." for n in range(40))
    assert loop_share(words(text)) < 0.5
    assert variety(words(text)) < 0.4
    assert objection(text, False) == "a repetition"


def test_a_list_of_short_lines_is_no_repetition():
    names = [
        "Oslo",
        "Rome",
        "Bern",
        "Lima",
        "Cairo",
        "Delhi",
        "Paris",
        "Tokyo",
        "Quito",
        "Hanoi",
        "Accra",
        "Dakar",
        "Sofia",
        "Minsk",
        "Vienna",
        "Athens",
    ]
    assert objection("\n".join(f"- {name} is a city" for name in names), False) is None


def test_a_few_words_are_too_few_to_tell():
    assert not repeats(words("no no no no"))
    assert repeats(words("no no no no no"))


@pytest.mark.parametrize(("rounds", "share"), [(1, 0.0), (2, 0.0), (3, 1.0), (7, 1.0)])
def test_three_rounds_make_a_loop(rounds, share):
    assert loop_share(["alpha", "beta", "gamma"] * rounds) == share


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=10), st.integers(3, 9), st.integers(0, 30))
def test_the_share_of_a_loop_is_known(period, rounds, head):
    said = [str(number) for number in range(head)] + period * rounds
    assert loop_share(said) >= len(period) * rounds / len(said) - 1e-9
    assert 0 <= loop_share(said) <= 1


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_judged_without_an_error(text, forced):
    objection(text, forced)
    assert "\n" not in excerpt(text)


def test_a_tenth_of_the_answers_may_be_degenerate():
    sane = ["A bridge joins two banks of a river."] * 9
    assert judge([*sane, "the " * 20], False) == []
    (said,) = judge([*sane[:8], "the " * 20, "no " * 20], False)
    assert said.startswith("2 of 10 answers are a repetition, e.g. 'the the the")


def test_kinds_are_counted_apart():
    assert judge(["", "", "The", "A bridge joins two banks."], False) == [
        "2 of 4 answers are empty",
        "1 of 4 answers are one word, e.g. 'The'",
    ]


def test_no_outputs_have_nothing_against_them():
    assert judge([], False) == []


def test_an_excerpt_is_one_short_line_with_escapes():
    assert excerpt("one\n  two\x00") == r"'one two\x00'"
    assert len(excerpt("word " * 100, 40)) == 42
