"""Output that is no answer: empty, wordless, one word, one passage over and over, unreadable. Form only, never whether it is
right.

Speculation makes such output fast (a repetition is easily guessed), so its speed says nothing about real answers.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from scripts.lib.words import words

MIN_WORDS = 5
"""Shorter answers are too short to tell a repetition from an enumeration."""

STUTTER = 0.4
"""From this share on, words that repeat the one before are no language: reduplication stays far below, each word said twice
(a draft kept and verified again) makes half."""

_LOOP_WORDS = 40
_LOOP_CHARACTERS = 20
_LOOP_ROUNDS = 3
_LONG = 60
_BROKEN = "\ufffd"
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"})


def loop_share(said: Sequence[str]) -> float:
    """Share of the words that lie in a loop at the end: one passage of up to 40 words, three times or more in a row."""
    best = 0
    for period in range(1, min(_LOOP_WORDS, len(said) // _LOOP_ROUNDS) + 1):
        at = len(said) - 1
        while at >= period and said[at] == said[at - period]:
            at -= 1
        length = len(said) - 1 - at + period
        if length >= _LOOP_ROUNDS * period:
            best = max(best, length)
    return best / len(said) if said else 0.0


def variety(said: Sequence[str]) -> float:
    """Share of different ones among all sequences of four words. Prose lies near 1, code above 0.5; a loop that counts its
    rounds below 0.4.
    """
    fours = [tuple(said[index : index + 4]) for index in range(len(said) - 3)]
    return len(set(fours)) / len(fours) if fours else 1.0


def stutter(said: Sequence[str]) -> float:
    """Share of the words that are the same as the word before."""
    return sum(a == b for a, b in pairwise(said)) / len(said) if said else 0.0


def runs_on(text: str, share: float) -> bool:
    """Whether `share` of a text is a loop of characters, spaces aside: `!!!!!!`, what a model says whose numbers have become NaN.
    Punctuation is no word, so that the other measures do not see it.
    """
    characters = "".join(text.split())
    looping = loop_share(characters)
    return looping >= share and looping * len(characters) >= _LOOP_CHARACTERS


def repeats(said: Sequence[str], share: float = 0.5) -> bool:
    """Whether `share` (at least half) of an answer is a loop at its end, or one word, or variations of one passage, or whether
    it stutters.
    """
    if len(said) < MIN_WORDS:
        return False
    if (
        loop_share(said) >= share
        or max(Counter(said).values()) > share * len(said)
        or stutter(said) >= STUTTER
    ):
        return True
    return len(said) >= _LONG and variety(said) < 0.8 * (1 - share)


def unreadable(text: str) -> str | None:
    """Why a text can hardly have been written in any language; None for what may have been."""
    # A limit on tokens may cut the last character short.
    whole = text.rstrip(_BROKEN)
    text = (whole if len(text) - len(whole) <= 3 else text).strip()
    broken = sum(character == _BROKEN or _is_control(character) for character in text)
    if broken > 0.02 * len(text):
        return f"has {broken} broken or control characters in {len(text)}"
    scripts = Counter(_script(character) for character in text if character.isalpha())
    letters = sum(scripts.values())
    if not letters:
        return None
    if scripts["rare"] > 0.1 * letters:
        return "consists of characters that hardly any text uses"
    main, _ = max(scripts.items(), key=lambda item: (item[0] != "LATIN", item[1]))
    if letters - scripts[main] - scripts["LATIN"] > 0.2 * letters:
        return f"mixes scripts ({', '.join(name.lower() for name, _ in scripts.most_common(4))})"
    return None


@cache
def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Co", "Cn", "Cs") and character not in "\n\r\t"


@cache
def _script(character: str) -> str:
    """LATIN, CJK (all of East Asia, whose scripts stand together), another script's name, or rare."""
    if "\u3400" <= character <= "\u4dbf" or character >= "\U00020000":
        return "rare"
    name = unicodedata.name(character, "rare").split(" ")[0].split("-")[0]
    return "CJK" if name in _EAST_ASIAN or name == "FULLWIDTH" else name


def objection(text: str, forced_length: bool) -> str | None:
    """What is degenerate about one output, in a word; None for one that may be an answer.

    An answer of forced length goes on after its natural end, where models often fall into a loop: there the loop must make
    up nearly all of it.
    """
    said = words(text)
    if not text.strip():
        return "empty"
    share = 0.8 if forced_length else 0.5
    if repeats(said, share) or runs_on(text, share):
        return "a repetition"
    if not said:
        return "wordless"
    if len(said) == 1 and len(text.split()) == 1:
        return "one word"
    return "unreadable" if unreadable(text) else None


def by_kind(outputs: Sequence[str], forced_length: bool) -> dict[str, list[str]]:
    """The degenerate ones among a cell's outputs, by what is wrong with them."""
    found: dict[str, list[str]] = {}
    for text in outputs:
        if kind := objection(text, forced_length):
            found.setdefault(kind, []).append(text)
    return found


def judge(outputs: Sequence[str], forced_length: bool, tolerated_share: float = 0.1) -> list[str]:
    """Reasons against a cell's outputs: each kind of degenerate output of which there is more than `tolerated_share`.

    Say `forced_length` for answers whose end the client did not leave to the model (ignore_eos, min_tokens).
    """
    return [
        in_words(kind, texts, len(outputs))
        for kind, texts in sorted(by_kind(outputs, forced_length).items())
        if len(texts) > tolerated_share * len(outputs)
    ]


def in_words(kind: str, texts: Sequence[str], count: int) -> str:
    """`3 of 8 answers are a repetition, e.g. '...'`; `count`: how many there are in all."""
    example = f", e.g. {excerpt(texts[0])}" if texts[0].strip() else ""
    return f"{len(texts)} of {count} answers are {kind}{example}"


def excerpt(text: str, width: int = 80) -> str:
    """The start of a text on one line, quoted, with what cannot be printed as escapes."""
    shown = " ".join(text.split())
    return repr(shown if len(shown) <= width else shown[: width - 3] + "...")
