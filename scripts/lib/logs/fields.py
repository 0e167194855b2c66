"""Numbers and `key=value` dumps as engines print them.

Config dumps hold nested brackets, quoted strings with commas and parentheses, enum reprs in angle brackets; a
regular expression over them is wrong sooner or later, so they are tokenised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Bounded, since a corrupt log may hold thousands of digits and Python refuses to convert those.
INTEGER = r"-?\d{1,15}(?:,\d{3}){0,5}(?!\d)"
NUMBER = r"-?\d{1,15}(?:,\d{3}){0,5}(?!\d)(?:\.\d{1,15})?"
NUMBER_OR_NAN = rf"(?:{NUMBER}|nan)"

_OPEN = {"(": ")", "[": "]", "{": "}", "<": ">"}
_STRUCTURE = re.compile(r"[\\'\"()\[\]{}<>,]")


def number(text: str) -> float:
    """A printed number, thousands separators allowed. Raises ValueError if it is none."""
    return float(text.replace(",", ""))


def integer(text: str) -> int:
    """A printed whole number, thousands separators allowed. Raises ValueError if it is none."""
    return int(text.replace(",", ""))


def split_top_level(text: str) -> Iterator[str]:
    """The parts of text between commas that stand outside quotes and brackets; a cut-off last part is
    dropped.

    An angle bracket only opens a nesting when it starts a repr like `<Mode.FULL: 2>`; `->` and `a < b` do not
    nest.
    """
    closers: list[str] = []
    quote, start, skip = "", 0, -1
    for found in _STRUCTURE.finditer(text):
        i, char = found.start(), found[0]
        if i < skip:
            continue
        if char == "\\":
            skip = i + 2 if quote else skip
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = "" if _inside_word(text, i) else char
        elif char in _OPEN:
            if char != "<" or text[i + 1 : i + 2].isalpha():
                closers.append(_OPEN[char])
        elif closers and char == closers[-1]:
            closers.pop()
        elif not closers and char in ")]}":
            yield text[start:i]
            return
        elif char == "," and not closers:
            yield text[start:i]
            start = i + 1
    if not closers and not quote:
        yield text[start:]


def _inside_word(text: str, index: int) -> bool:
    """Whether the quote at index is an apostrophe (`model's`), not the start of a string (`b'..'` starts
    one)."""
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    return index > 1 and before.isalnum() and after.isalnum() and text[index - 2 : index - 1].isalnum()


def parse_fields(text: str) -> dict[str, str]:
    """`a=1, b=Thing(x='y, z'), c={...}` as {"a": "1", "b": "Thing(x='y, z')", ...}, values verbatim.

    Stops at the bracket that closes the surrounding call, so the text may run on behind it. Also reads the
    body of a printed dictionary (`'a': 1, 'b': ...`). Parts that are no assignment are skipped.
    """
    fields: dict[str, str] = {}
    for part in split_top_level(text):
        name, value = _assignment(part.strip())
        if name is not None:
            fields.setdefault(name, value)
    return fields


def _assignment(part: str) -> tuple[str | None, str]:
    if part.startswith(("'", '"')):
        end = part.find(part[0], 1)
        rest = part[end + 1 :].lstrip() if end > 0 else ""
        if not rest.startswith(":"):
            return None, ""
        return part[1:end], rest[1:].strip()
    name, equals, value = part.partition("=")
    if not equals or not name.strip().replace("_", "a").isalnum():
        return None, ""
    return name.strip(), value.strip()


def parse_call(text: str) -> tuple[str, dict[str, str]] | None:
    """`SpeculativeConfig(method='mtp', num_spec_tokens=3)` as ("SpeculativeConfig", {...}); None if it is
    no call."""
    name, paren, body = text.partition("(")
    if not paren or not name or not name.replace("_", "a").replace(".", "a").isalnum():
        return None
    return name, parse_fields(body)


def plain(value: str | None) -> str | int | float | bool | None:
    """A printed scalar as its Python value: quotes removed, None, True, numbers recognised, enums left as
    text."""
    if value is None or value == "None":
        return None
    if value in ("True", "False"):
        return value == "True"
    if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
        return value[1:-1]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
