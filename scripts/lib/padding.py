"""Text that fills a prompt up to a wanted length, cut after any number of its units (words, or single CJK characters).

Within a prompt no passage comes twice: a drafter that looks its guesses up in the prompt (ngram, suffix) would find them in
repeated padding, and only there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from scripts.lib.config import ConfigError
from scripts.lib.prompt_files import read_text
from scripts.lib.words import unit_ends

PLACE = "{padding}"
"""Where in a prompt its padding goes; without it, after the prompt."""


def read_paragraphs(path: Path) -> tuple[str, ...]:
    """Paragraphs of a text file, which blank lines part. Raises ConfigError for a file without any, or with one twice."""
    text = read_text(path)
    paragraphs, seen, line = [], {}, 1
    for part in re.split(r"(\n[ \t\r]*(?:\n[ \t\r]*)+)", text):
        words = " ".join(part.split())
        if words in seen:
            raise ConfigError(
                f"{path}, line {line}: the paragraph of line {seen[words]} again; repeated padding flatters drafters that look "
                "their guesses up in the prompt"
            )
        if words:
            seen[words] = line
            paragraphs.append(words)
        line += part.count("\n")
    if not paragraphs:
        raise ConfigError(f"{path}: has no text to pad prompts with")
    return tuple(paragraphs)


def rotated(paragraphs: Sequence[str], place: int, of: int) -> str:
    """Every paragraph once, in order, starting at the `place`-th of `of` evenly spaced ones."""
    start = place * len(paragraphs) // of
    return "\n\n".join((*paragraphs[start:], *paragraphs[:start]))


def random_words(key: str, count: int) -> str:
    """`count` made-up words of two to nine random letters; the same key gives the same words, another one others."""
    digests = (hashlib.sha256(f"{key}/{index}".encode()).digest() for index in range(count))
    return " ".join(
        "".join(chr(ord("a") + byte % 26) for byte in digest[1 : 3 + digest[0] % 8]) for digest in digests
    )


def fill(prompt: str, text: str, count: int) -> str:
    """`prompt` with the first `count` units of `text` at its PLACE, or after it."""
    cut = text[: unit_ends(text)[count - 1]] if count else ""
    if PLACE in prompt:
        return prompt.replace(PLACE, cut)
    return f"{prompt}\n\n{cut}" if cut else prompt
