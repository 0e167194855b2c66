"""Whether the answers are the same with and without speculation: one row per point, and a sample of what was said.

Only greedy answers (temperature 0) to equal requests are compared; sampled ones differ by design, and answers to made-up
acceptance are noise. The answers come from the evidence, the first ANSWERS of each cell.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from scripts.lib.cell import BASELINE, COUNT_AXES, method_name
from scripts.lib.evidence import DamagedEvidence, Request, read_answers
from scripts.lib.metrics import ABSENT
from scripts.lib.outputs import (
    NOT_COMPARED,
    TOKENS,
    UNUSUAL,
    USUAL_PER_1000,
    Agreement,
    Answers,
    agreement,
    answers_of,
    judge,
)
from scripts.lib.record import MEASURED
from scripts.lib.tables import markdown
from scripts.lib.tables.blocks import blocks_of
from scripts.lib.tables.compare import CELL_BLOCK, METHOD, in_reading_order

ANSWERS = 40
"""So many answers of each cell are looked at: every prompt comes in rotation."""

REPEATS, CONCURRENCIES = "repeats", "concurrencies"
"""Where the noise comes from: `none` of another boot, or (prompts without a nonce) `none` at other concurrencies."""

_SAMPLE, _SAMPLE_WIDTH = 400, 90
_AS_IS = {"drop_whitespace": False, "replace_whitespace": False}
_POINT = (*CELL_BLOCK, "concurrency", *METHOD, "synthetic")

OUTPUTS_SCHEMA: dict[str, pl.DataType] = (
    {name: pl.Int64() if name in COUNT_AXES else pl.String() for name in _POINT[:-1]}
    | {
        "synthetic": pl.Boolean(),
        "compared": pl.Int64(),
        "identical": pl.Int64(),
        "identical_share": pl.Float64(),
    }
    | {"first_difference": pl.Float64(), "first_differences": pl.List(pl.Int64), "per_1000": pl.Float64()}
    | {
        "unit": pl.String(),
        "noise_share": pl.Float64(),
        "noise_per_1000": pl.Float64(),
        "noise_from": pl.String(),
    }
    | {"verdict": pl.String(), "reason": pl.String(), "sample_prompt": pl.String(), "sample": pl.String()}
)
"""`first_difference`: median of `first_differences`, positions from 0 in `unit`; `per_1000`: differences per 1000 of it."""

_OTHER_PROMPTS = "no request was answered by both: other prompts, or measured by a version that did not tell"

Read = Callable[[Path, int], Sequence[Request]]
Cell = dict[str, object]


def outputs_table(cells: pl.DataFrame, read: Read = read_answers) -> pl.DataFrame:
    """OUTPUTS_SCHEMA from the cells table. `read` gives the answers behind a cell's `evidence`; a block at a time is in memory."""
    needed = in_reading_order(cells.select(*_POINT, "repeat", "status", "temperature", "evidence"))
    rows: list[list[object]] = []
    for _, block in needed.group_by(CELL_BLOCK, maintain_order=True):
        rows += _Block(block.to_dicts(), read).rows()
    return pl.DataFrame(rows, schema=OUTPUTS_SCHEMA, orient="row")


class _Block:
    """The cells that share everything but concurrency, method, k and repeat."""

    def __init__(self, cells: Sequence[Cell], read: Read):
        self._cells, self._read = sorted(cells, key=lambda cell: cell["repeat"]), read
        self._answers: dict[str, Answers] = {}
        self._damage: dict[str, str] = {}
        self._known_noise: dict[int, tuple[Agreement, str | None]] = {}
        self._baselines: dict[int, list[Cell]] = {}
        for cell in self._cells:
            if cell["method"] == BASELINE and cell["status"] == MEASURED and not cell["synthetic"]:
                self._baselines.setdefault(cell["concurrency"], []).append(cell)
        self._points: dict[tuple[object, ...], list[Cell]] = {}
        for cell in cells:
            self._points.setdefault(tuple(cell[name] for name in _POINT), []).append(cell)

    def rows(self) -> list[list[object]]:
        return [self._row(repeats) for repeats in self._points.values()]

    def _row(self, repeats: Sequence[Cell]) -> list[object]:
        point = repeats[0]
        answered = [cell for cell in repeats if cell["status"] == MEASURED]
        values = self._sample(answered)
        refused = _refused(point, answered, [cell["status"] for cell in repeats])
        values |= {"verdict": NOT_COMPARED, "reason": refused} if refused else self._judged(point, answered)
        return [(point | values).get(name) for name in OUTPUTS_SCHEMA]

    def _judged(self, point: Cell, answered: Sequence[Cell]) -> dict[str, object]:
        noise, source = self._noise(point["concurrency"])
        if point["method"] == BASELINE:
            found, reason = noise, _of_baseline(source)
        else:
            found = self._against_baseline(point["concurrency"], answered)
            reason = None if found.compared else self._nothing_in_common(point["concurrency"], answered)
        verdict = judge(found, noise)
        if verdict == UNUSUAL:
            reason = _warning(found, noise)
        return _figures(found) | {
            "noise_share": noise.share,
            "noise_per_1000": noise.per_1000,
            "noise_from": source,
            "verdict": verdict,
            "reason": reason,
        }

    def _against_baseline(self, concurrency: int, answered: Sequence[Cell]) -> Agreement:
        """Each repeat against the baseline's of the same number, or the first where that one has no result."""
        baselines = self._baselines.get(concurrency, [])
        total = Agreement()
        for cell in answered:
            other = next((other for other in baselines if other["repeat"] == cell["repeat"]), None)
            if other or baselines:
                total += agreement(self._of(cell), self._of(other or baselines[0]))
        return total

    def _noise(self, concurrency: int) -> tuple[Agreement, str | None]:
        if concurrency not in self._known_noise:
            self._known_noise[concurrency] = self._of_itself(concurrency)
        return self._known_noise[concurrency]

    def _of_itself(self, concurrency: int) -> tuple[Agreement, str | None]:
        """`none` against itself: every further boot against the first, else this concurrency against the others."""
        first, *others = self._baselines.get(concurrency) or [None]
        total = Agreement()
        for other in others:
            total += agreement(self._of(other), self._of(first))
        if total.compared or first is None:
            return total, REPEATS if total.compared else None
        for level, baselines in self._baselines.items():
            if level != concurrency:
                total += agreement(self._of(first), self._of(baselines[0]))
        return total, CONCURRENCIES if total.compared else None

    def _nothing_in_common(self, concurrency: int, answered: Sequence[Cell]) -> str:
        baselines = self._baselines.get(concurrency)
        if not baselines:
            return "`none` has no result under the same conditions"
        damaged = (self._damage.get(cell["evidence"]) for cell in (*answered, *baselines))
        return next(filter(None, damaged), _OTHER_PROMPTS)

    def _of(self, cell: Cell) -> Answers:
        folder = cell["evidence"]
        if folder not in self._answers:
            try:
                self._answers[folder] = answers_of(self._read(Path(folder), ANSWERS))
            except DamagedEvidence as error:
                self._answers[folder], self._damage[folder] = {}, f"{folder}: {error}"
        return self._answers[folder]

    def _sample(self, answered: Sequence[Cell]) -> dict[str, object]:
        answers = next(filter(None, map(self._of, answered)), None)
        if not answers:
            return {}
        request = answers[min(answers)]
        return {"sample_prompt": request.prompt_id, "sample": _shortened(request.output)}


def _shortened(text: str) -> str:
    return text if len(text) <= _SAMPLE else text[: _SAMPLE - 4] + " ..."


def _of_baseline(source: str | None) -> str:
    if source is None:
        return "a single run: how far it differs from itself is not known (give repeats: 2)"
    return f"against itself, other {source}"


def _refused(point: Cell, answered: Sequence[Cell], statuses: Sequence[str]) -> str | None:
    """Why the answers of a point are not to be compared; None when they are."""
    if point["synthetic"]:
        return "acceptance was made up by the engine, and so were the answers"
    if not answered:
        return f"no result ({', '.join(dict.fromkeys(statuses))})"
    temperature = answered[0]["temperature"]
    if temperature is None:
        return "measured by a version that did not tell the temperature"
    if temperature > 0:
        return f"sampled at temperature {temperature:g}: answers differ by design"
    return None


def _figures(found: Agreement) -> dict[str, object]:
    return {
        "compared": found.compared,
        "identical": found.identical,
        "identical_share": found.share,
        "first_difference": found.first_median,
        "first_differences": list(found.firsts),
        "per_1000": found.per_1000,
        "unit": found.unit if found.compared else None,
    }


def _warning(found: Agreement, noise: Agreement) -> str:
    usual = (
        f"`none` from itself {noise.per_1000:.1f}"
        if noise.compared
        else f"rounding alone up to about {USUAL_PER_1000:g}"
    )
    return (
        f"{len(found.firsts)} of {found.compared} answers differ from `none`, {found.per_1000:.0f} times per 1000 "
        f"{found.unit} ({usual}): this is more than rounding does; the method may change what the model says"
    )


def warnings(table: pl.DataFrame) -> list[str]:
    """One line per point whose answers differ unusually."""
    return [
        f"{row['model']} {row['method']} k{row['k']}, {row['scenario']} at concurrency {row['concurrency']} "
        f"(max_model_len {row['max_model_len']}, {row['engine']}, {row['hardware']}): {row['reason']}"
        for row in table.filter(pl.col("verdict") == UNUSUAL).iter_rows(named=True)
    ]


_CAPTION = f"""Answers at temperature 0 against those of `none` to the same requests. Rounding makes some differ, anywhere in an
answer: what counts is how often per 1000 tokens, and how often `none` differs from itself. A verdict of {UNUSUAL} means
more than that and more than {USUAL_PER_1000:g} per 1000, in three answers at least."""


def outputs_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown: warnings, one pipe table per block, then one answer of each method."""
    if table.is_empty():
        return ["There are no cells."]
    lines = markdown.paragraph(_CAPTION)
    found = warnings(table)
    for warning in found:
        lines += ["", *markdown.paragraph(f"WARNING: {warning}")]
    for block, rows in blocks_of(table, CELL_BLOCK):
        lines += ["", markdown.heading(block), "", *_block(rows), "", *_samples(rows)]
    return lines


def _block(rows: pl.DataFrame) -> list[str]:
    compared = rows.filter(pl.col("compared") > 0)
    lines = []
    if not compared.is_empty():
        headers = ["method", "k", "c", "same answers", "first other", "per 1000", "`none` itself", "verdict"]
        lines = markdown.table(headers, [_line(row) for row in compared.iter_rows(named=True)], fixed=3)
        if (compared["unit"] != TOKENS).any():
            lines += ["", "The server tells no tokens: positions are counted in words."]
    left = rows.filter(pl.col("compared").fill_null(0) == 0)
    for (reason,), of_reason in left.group_by("reason", maintain_order=True):
        names = ", ".join(dict.fromkeys(_name(row) for row in of_reason.iter_rows(named=True)))
        lines += ["", *markdown.paragraph(f"Not compared: {names}: {reason}.")]
    return lines


def _line(row: Mapping[str, object]) -> list[str]:
    first = ABSENT if row["first_difference"] is None else f"{row['first_difference']:.0f}"
    noise = ABSENT if row["noise_per_1000"] is None else f"{row['noise_per_1000']:.1f}"
    same = f"{row['identical']} of {row['compared']}"
    verdict = row["verdict"] if row["method"] != BASELINE else "baseline"
    return [
        row["method"],
        markdown.k_text(row["k"]),
        str(row["concurrency"]),
        same,
        first,
        f"{row['per_1000']:.1f}",
        noise,
        verdict,
    ]


def _name(row: Mapping[str, object]) -> str:
    return f"{method_name(row['method'], row['k'])} c{row['concurrency']}" + (
        " (synthetic)" if row["synthetic"] else ""
    )


def _samples(rows: pl.DataFrame) -> list[str]:
    """The first answer of each method at its lowest concurrency, verbatim."""
    lines = ["One answer of each method:", ""]
    said = rows.drop_nulls("sample").unique((*METHOD, "synthetic"), keep="first", maintain_order=True)
    for row in said.iter_rows(named=True):
        lines += [f"- {_name(row)}, prompt {row['sample_prompt']}:", "", *_verbatim(row["sample"]), ""]
    return lines[:-1] if len(said) else ["No answers were kept."]


def _verbatim(text: str) -> list[str]:
    """Indented, so that markdown leaves it alone; what cannot be printed as escapes."""
    shown = "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    lines = [
        part for line in shown.splitlines() for part in textwrap.wrap(line, _SAMPLE_WIDTH, **_AS_IS) or [""]
    ]
    return [f"      {line}".rstrip() for line in lines] if shown.strip() else ["      (empty)"]
