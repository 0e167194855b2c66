"""Pinned requirement files: what they name, and a digest that changes only when that does."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

_PINNED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;]+)(?:\s*;.*)?")


def requirement_lines(text: str) -> list[str]:
    """The lines of a requirement file without comments and blank lines, in order."""
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def pinned_version(path: Path, package: str) -> str:
    """The version that the requirement file `path` pins `package` to. Raises ValueError where it does not."""
    for line in requirement_lines(path.read_text(encoding="utf-8")):
        match = _PINNED.fullmatch(line)
        if match and match["name"].lower() == package.lower():
            return match["version"]
    raise ValueError(f"{path} does not pin {package}: add a line `{package}==VERSION`")


def without(text: str, package: str) -> str:
    """The requirements of `text` but the one for `package`, one a line."""
    kept = [
        line
        for line in requirement_lines(text)
        if not ((match := _PINNED.fullmatch(line)) and match["name"].lower() == package.lower())
    ]
    return "\n".join(kept) + "\n"


def digest(parts: Iterable[str]) -> str:
    """SHA-256 over strings, told apart from their concatenation."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode()
        state.update(f"{len(data)}:".encode() + data)
    return state.hexdigest()


def requirements_digest(path: Path) -> str:
    """Changes when a requirement does, not when a comment does."""
    return digest(requirement_lines(path.read_text(encoding="utf-8")))
