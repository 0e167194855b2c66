"""Tables that read well both as markdown and as plain text in a terminal of 100 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from scripts.lib.metrics import ABSENT

WIDTH = 100


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], fixed: int) -> list[str]:
    """A padded pipe table: the first column left-aligned, the others right-aligned.

    Where it would be wider than WIDTH it is cut into several, each repeating the first `fixed` columns; one
    column beside the fixed ones is printed whatever its width. Returns lines."""
    headers, *rows = [[text.replace("|", "\\|") for text in row] for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines: list[str] = []
    for columns in _blocks(widths, fixed):
        lines += [""] if lines else []
        lines += _one_table(
            [[row[i] for i in columns] for row in (headers, *rows)], [widths[i] for i in columns]
        )
    return lines


def k_text(k: int) -> str:
    """A number of speculative tokens as tables show it: none without speculation, whatever the method is called."""
    return str(k) if k else ABSENT


def _blocks(widths: Sequence[int], fixed: int) -> list[list[int]]:
    base = sum(width + 3 for width in widths[:fixed]) + 1
    blocks, room = [list(range(fixed))], WIDTH - base
    for column in range(fixed, len(widths)):
        need = widths[column] + 3
        if need > room and len(blocks[-1]) > fixed:
            blocks.append(list(range(fixed)))
            room = WIDTH - base
        blocks[-1].append(column)
        room -= need
    return blocks


def _one_table(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    def line(row: Sequence[str]) -> str:
        cells = [
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        return "| " + " | ".join(cells) + " |"

    rule = (
        "|" + "|".join(("-" * (w + 2)) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    )
    return [line(rows[0]), rule, *map(line, rows[1:])]


def paragraph(text: str) -> list[str]:
    """`text` wrapped at WIDTH."""
    return textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def heading(block: Mapping[str, object]) -> str:
    """A second-level heading that says what all rows below it share, e.g. `## cpu, vllm, smollm2,
    max_model_len 1024`."""
    named = ("max_model_len", "scenario")
    values = {name: value for name, value in block.items() if name != "synthetic"}
    parts = [f"{name} {value}" if name in named else str(value) for name, value in values.items()]
    return "## " + ", ".join([*parts, *(["synthetic acceptance"] if block.get("synthetic") else [])])
