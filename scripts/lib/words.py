"""Texts by their words, where every CJK character (ideograph, kana, hangul) is a word of its own."""

from __future__ import annotations

import re
from functools import lru_cache

_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_UNIT = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")


def words(text: str) -> list[str]:
    """Words in lower case; punctuation and symbols are none."""
    return [word.lower() for word in _WORD.findall(text)]


def units(text: str) -> list[str]:
    """Runs without spaces, and CJK characters: punctuation included, white space left out."""
    return _UNIT.findall(text)


@lru_cache(maxsize=64)
def unit_ends(text: str) -> tuple[int, ...]:
    """Where a text can be cut: the end of each run without spaces, and of each CJK character."""
    return tuple(match.end() for match in _UNIT.finditer(text))
