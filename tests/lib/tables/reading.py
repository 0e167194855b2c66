"""Reading printed tables back in tests."""

from __future__ import annotations


def body(lines: list[str]) -> list[list[str]]:
    """The cells of all pipe tables' rows, without header and rule, of tables that all have one header line."""
    rows = [line for line in lines if line.startswith("|")]
    return [[part.strip() for part in row.strip("|").split("|")] for row in rows[2:]]


def header(lines: list[str]) -> list[str]:
    """The header of the first pipe table."""
    first = next(line for line in lines if line.startswith("|"))
    return [part.strip() for part in first.strip("|").split("|")]
