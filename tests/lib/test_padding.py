from __future__ import annotations

import pytest

from scripts.lib import padding
from scripts.lib.config import ConfigError
from scripts.lib.scenario import PROSE
from scripts.lib.words import unit_ends, words
from tests.planning import CONFIG


def repeated_share(text, length=4):
    """Share of word sequences of this length that were there before: what ngram and suffix could copy."""
    said = words(text)
    sequences = [tuple(said[index : index + length]) for index in range(len(said) - length + 1)]
    return 1 - len(set(sequences)) / len(sequences)


def test_paragraphs_are_parted_by_blank_lines_and_unwrapped(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\ntwo\n\n  \nthree\n")
    assert padding.read_paragraphs(path) == ("one two", "three")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a b\n\nc\n\na\nb\n", "line 5: the paragraph of line 1 again"),
        (b" \n\n", "has no text to pad prompts with"),
        (b"fine\n\n\xff", "line 3: not UTF-8 text"),
    ],
)
def test_padding_that_would_repeat_or_cannot_be_read_is_refused(tmp_path, content, said):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        padding.read_paragraphs(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_each_prompt_starts_elsewhere_and_uses_every_paragraph_once():
    paragraphs = [str(number) for number in range(10)]
    made = [padding.rotated(paragraphs, place, 4) for place in range(4)]
    assert [text.split()[0] for text in made] == ["0", "2", "5", "7"]
    assert all(sorted(text.split()) == paragraphs for text in made)


def test_filling_cuts_between_words_and_puts_the_text_where_it_belongs():
    assert padding.fill("ask", "one two three", 0) == "ask"
    assert padding.fill("ask", "one two three", 2) == "ask\n\none two"
    assert padding.fill("read {padding} then ask", "one two three", 3) == "read one two three then ask"
    assert padding.fill("read {padding} then ask", "one two three", 0) == "read  then ask"


def test_random_words_are_the_same_for_a_key_and_hold_nothing_to_copy():
    text = padding.random_words("key", 500)
    assert text == padding.random_words("key", 500)
    assert text.split()[:100] == padding.random_words("key", 100).split()
    assert len(text.split()) == 500
    assert all(2 <= len(word) <= 9 and word.isalpha() for word in text.split())
    assert repeated_share(text, 2) == 0
    assert padding.random_words("other", 5) != padding.random_words("key", 5)


def test_the_shipped_prose_is_long_enough_and_does_not_repeat_itself():
    """16k tokens even for a tokenizer that makes a token of every word; hardly four words ever come twice."""
    paragraphs = padding.read_paragraphs(PROSE)
    text = padding.rotated(paragraphs, 0, 1)
    assert len(unit_ends(text)) >= 16_384
    assert repeated_share(text, 4) < 0.005
    assert repeated_share(text, 6) == 0


@pytest.mark.parametrize(
    "path", sorted((CONFIG / "scenarios" / "padding").glob("*.txt")), ids=lambda path: path.stem
)
def test_every_shipped_padding_text_varies(path):
    assert repeated_share(padding.rotated(padding.read_paragraphs(path), 0, 1), 4) < 0.02
