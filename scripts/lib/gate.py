"""The gate before timing: a server whose answers are no language is not measured, however fast it is.

Three questions at temperature 0, a few tokens each; all three answers must be sane in form. Whether they are right is not
judged: a small model may say what it likes. The first question is the start-up's first completion.
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib import degenerate
from scripts.lib.words import words

QUESTIONS = (
    "Explain in one sentence what a bridge is for.",
    "Describe a rainy morning in one sentence.",
    "Say in one sentence why people use clocks.",
)
MAX_TOKENS = 12
MIN_DISTINCT_WORDS = 3

REMEDY = (
    "look at the checkpoint, its quantization and chat template, and at kernels or settings that the healthy methods do not "
    "use; then forget the cells (python -m scripts.forget) and run again. For random weights set gate: false"
)

_SENTENCE_WORDS = (
    "a an and are as at be because but by can do for from has have how i if in into is it its let like may more need not of "
    "on one or our people so sure take that the their there they this time to use user was we were what when which who why "
    "will with would you your class def import print return der die das und ist eine nicht les est une des que los por una "
    "che uma het een van och att det"
)
"""Of these, three answers in a Latin script have one at least: English first, since that is asked, and code."""


def objection(answer: str) -> str | None:
    """Why an answer to one of the QUESTIONS is not sane; None when it is."""
    said = words(answer)
    if not answer.strip():
        return "is empty"
    if degenerate.repeats(said) or degenerate.runs_on(answer, 0.5):
        return "repeats itself"
    if why := degenerate.unreadable(answer):
        return why
    if len(set(said)) < MIN_DISTINCT_WORDS:
        return f"has fewer than {MIN_DISTINCT_WORDS} different words"
    return None


def verdict(answers: Sequence[str]) -> str | None:
    """Why a server does not pass, with what it said; None when every answer is sane."""
    for question, answer in zip(QUESTIONS, answers, strict=False):
        if why := objection(answer):
            return f"the server answers nonsense: asked {question!r} it said {degenerate.excerpt(answer)}, which {why}"
    text = " ".join(answers)
    letters = [character for character in text if character.isalpha()]
    latin = sum(character < "\u0250" for character in letters) > len(letters) / 2
    if latin and not set(_SENTENCE_WORDS.split()) & set(words(text)):
        said = ", ".join(degenerate.excerpt(answer, 40) for answer in answers)
        return f"the server answers nonsense: no answer has a word that sentences are made of ({said})"
    return None
