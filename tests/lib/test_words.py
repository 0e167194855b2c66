from __future__ import annotations

from scripts.lib.words import unit_ends, words


def test_words_are_lower_case_without_punctuation_and_cjk_counts_by_character():
    assert words("The cat, the CAT_2!") == ["the", "cat", "the", "cat", "2"]
    assert words("橋はABCです。") == ["橋", "は", "abc", "で", "す"]
    assert words("...") == []


def test_a_text_can_be_cut_after_each_word_and_each_cjk_character():
    text = "one,  two\n橋x y"
    assert [text[:end] for end in unit_ends(text)] == [
        "one,",
        "one,  two",
        "one,  two\n橋",
        "one,  two\n橋x",
        "one,  two\n橋x y",
    ]
    assert unit_ends(" \n") == ()
