"""The recommendation as a table: one row per operating point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from scripts.lib.cell import BASELINE, COUNT_AXES, method_name
from scripts.lib.metrics import ABSENT, METRICS, headline
from scripts.lib.recommend.candidates import POINT_AXES
from scripts.lib.recommend.choice import NO_CANDIDATE, Choice
from scripts.lib.tables import markdown

_TEXT, _NUMBER = pl.String(), pl.Float64()
SCHEMA: dict[str, pl.DataType] = (
    {axis: pl.Int64() if axis in COUNT_AXES else _TEXT for axis in POINT_AXES}
    | {"verdict": _TEXT, "method": _TEXT, "k": pl.Int64(), "headline": _TEXT, "value": _NUMBER}
    | dict.fromkeys(("speedup", "speedup_low", "speedup_high"), _NUMBER)
    | {"runner_up": _TEXT, **dict.fromkeys(("margin", "margin_low", "margin_high"), _NUMBER)}
    | {"tied": pl.List(pl.String), "excluded": pl.List(pl.String)}
)
"""`margin` is the ratio of the chosen configuration's headline to the runner-up's; `excluded` has `label: why`."""


def recommendation_table(choices: Iterable[Choice]) -> pl.DataFrame:
    """SCHEMA, in the order of `choices`, also when there are none."""
    rows = [[row.get(name) for name in SCHEMA] for row in map(choice_row, choices)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def choice_row(choice: Choice) -> dict[str, object]:
    """The values of one row; names without a value are left out."""
    row: dict[str, object] = {
        **choice.point.axes,
        "verdict": choice.verdict,
        "headline": headline(int(choice.point.axes["concurrency"])),
        "tied": [candidate.label for candidate in choice.tied] if len(choice.tied) > 1 else [],
        "excluded": [f"{name}: {why}" for name, why in choice.excluded.items()],
    }
    if choice.chosen:
        figures = choice.chosen.figures
        row |= {
            "method": choice.chosen.server.method,
            "k": choice.chosen.server.k,
            "value": choice.chosen.value,
        }
        row |= {name: figures[name] for name in ("speedup", "speedup_low", "speedup_high")}
    if choice.runner_up and choice.margin:
        margin = choice.margin
        row |= {"runner_up": choice.runner_up.label, "margin": margin.ratio}
        row |= {"margin_low": margin.low, "margin_high": margin.high}
    return row


_CAPTION = f"""The best method and number of speculative tokens under each condition, by one request's tokens per second at
concurrency 1 and by those of all requests above. In brackets: ratio to `{BASELINE}`. Margin: lead over the next best. No
clear winner: repeats cannot tell the best ones apart, and the smallest k of them is named. Only valid measurements compete."""

_SIDE_BY_SIDE = "- Machines and engines side by side, and what was not alike: hardware.md"


def recommendation_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown, one pipe table per hardware, engine and model."""
    if table.is_empty():
        return ["Nothing was measured, so nothing can be recommended."]
    lines = markdown.paragraph(_CAPTION)
    for block, rows in table.group_by(POINT_AXES[:3], maintain_order=True):
        named = dict(zip(POINT_AXES[:3], block, strict=True))
        lines += ["", markdown.heading(named), "", *_block(list(rows.iter_rows(named=True)))]
        lines += _left_out(list(rows.iter_rows(named=True)))
    return [*lines, "", _SIDE_BY_SIDE] if table.select(POINT_AXES[2:]).is_duplicated().any() else lines


def _block(rows: Sequence[Mapping[str, object]]) -> list[str]:
    headers = ["scenario", "length", "c", "best", "tok/s", "margin", "verdict"]
    body = [
        [
            str(row["scenario"]),
            str(row["max_model_len"]),
            str(row["concurrency"]),
            _best(row),
            _figure(row),
            _margin(row),
            str(row["verdict"]),
        ]
        for row in rows
    ]
    return markdown.table(headers, body, fixed=3)


def _best(row: Mapping[str, object]) -> str:
    if row["method"] is None:
        return ABSENT
    return method_name(row["method"], row["k"])


def _figure(row: Mapping[str, object]) -> str:
    if row["value"] is None:
        return ABSENT
    text = METRICS[str(row["headline"])].text(row["value"])
    if row["method"] == BASELINE or row["speedup"] is None:
        return text
    return f"{text} ({METRICS['speedup'].text(row['speedup'])}x)"


def _margin(row: Mapping[str, object]) -> str:
    if row["margin"] is None:
        return ABSENT
    return f"{100 * (row['margin'] - 1):+.1f}% on {row['runner_up']}"


def _left_out(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """What was not allowed to compete, each sentence once with the conditions it holds for."""
    found: dict[str, list[str]] = {}
    for row in rows:
        place = f"{row['scenario']} length {row['max_model_len']} c{row['concurrency']}"
        if row["verdict"] == NO_CANDIDATE and not row["excluded"]:
            found.setdefault("nothing was measured", []).append(place)
        for words in row["excluded"]:
            found.setdefault(words, []).append(place)
        if row["tied"]:
            found.setdefault(f"as good as each other: {', '.join(row['tied'])}", []).append(place)
    if not found:
        return []
    return ["", *(f"- {words} ({'; '.join(places)})" for words, places in found.items())]
