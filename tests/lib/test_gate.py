"""The gate's verdict over three answers: form alone, and never against a weak but sane model."""

from __future__ import annotations

import pytest

from scripts.lib.gate import QUESTIONS, objection, verdict

SMOLLM2 = [
    "A bridge is a physical or metaphorical structure that connects two distinct",
    "A sunny, sunny morning with a drizzle of rain on",
    "In one sentence, people use clocks to keep track of time",
]
SANE = {
    "a weak model": SMOLLM2,
    "a model that thinks aloud": [
        "Okay, the user asks what a bridge is for. Let",
        "Okay, so I need to describe a rainy morning.",
        "Hmm, why do people use clocks? To know",
    ],
    "a model that answers in Japanese": [
        "橋は川や谷を越えて人や車を渡すためのものです。",
        "雨の朝、窓を静かに雨粒が叩いている。",
        "人々は時間を知るために時計を使います。",
    ],
    "a model that only writes code": [
        "```python\ndef bridge():\n    return 'crossing'",
        "```python\nimport rain\nprint(rain.morning())",
        "def clock(time):\n    return time.now()",
    ],
    "a model that refuses": [
        "I'm sorry, but I can't help with that.",
        "I'm sorry, but I can't do that.",
        "As an AI I have no opinion.",
    ],
    "a model that speaks Russian": [
        "Мост соединяет два берега реки.",
        "Утро выдалось дождливым и тихим.",
        "Часы показывают людям точное время.",
    ],
    "a model that is short": ["To cross a river.", "Grey, wet and cold.", "To know the time."],
}


@pytest.mark.parametrize("answers", SANE.values(), ids=SANE)
def test_sane_answers_pass(answers):
    assert verdict(answers) is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("The", "has fewer than 3 different words"),
        ("Yes yes", "has fewer than 3 different words"),
        ("the the the the the the", "repeats itself"),
        ("a bridge a bridge a bridge a bridge", "repeats itself"),
        ("橋橋橋橋橋橋橋橋", "repeats itself"),
        ("!!!!!!!!!!!!", "has fewer than 3 different words"),
        ("A bridge is for" + "!" * 30, "repeats itself"),
        ("A bridge bridge is is for for crossing crossing", "repeats itself"),
        ("the bridge \ufffd\ufffd\ufffd is \ufffd for \ufffd", "broken or control characters"),
        ("㐁㐂㐃㐄 㐅㐆㐇", "hardly any text uses"),
        ("bridge мост 橋 สะพาน גשר يجري", "mixes scripts"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_insane_answer_is_enough_and_is_quoted(said, why, place):
    answers = [*SMOLLM2[:place], said, *SMOLLM2[place + 1 :]]
    words = verdict(answers)
    assert why in words
    assert repr(QUESTIONS[place]) in words


def test_words_without_a_sentence_fail_together():
    salad = ["Weber olas Griff tkz fluor mas", "Nim burst sedge ohm valve", "plinth eggs Zulu marrow"]
    assert all(objection(answer) is None for answer in salad)
    assert "no answer has a word that sentences are made of" in verdict(salad)


def test_one_sentence_among_three_is_enough():
    assert verdict(["Crossing water safely.", "Grey wet morning sky.", "They tell the time."]) is None
