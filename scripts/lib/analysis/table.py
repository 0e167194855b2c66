"""The analysis as a table: one row per point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

import polars as pl

from scripts.lib.analysis.roofline import Facts, roof
from scripts.lib.analysis.step_cost import split
from scripts.lib.cell import BASELINE, COUNT_AXES, Server
from scripts.lib.metrics import ABSENT
from scripts.lib.recommend.candidates import POINT_AXES
from scripts.lib.tables import markdown
from scripts.lib.validity import VALID

_NUMBER = pl.Float64()
_BLOCK = POINT_AXES[:5]
_SHOWN = ("speedup", "tokens_per_step", "step_cost", "rest", "break_even_length")
SCHEMA: dict[str, pl.DataType] = (
    {name: pl.Int64() if name in COUNT_AXES else pl.String() for name in (*POINT_AXES, "method", "k")}
    | {
        "validity": pl.String(),
        "baseline_validity": pl.String(),
        "headline": pl.String(),
        "value": _NUMBER,
        "speedup": _NUMBER,
    }
    | dict.fromkeys(("tokens_per_step", "step_cost", "decode_speedup", "rest"), _NUMBER)
    | dict.fromkeys(("break_even_length", "break_even_rate"), _NUMBER)
    | dict.fromkeys(("step_gb", "kv_gb", "limit_tps", "limit_share"), _NUMBER)
    | {"above_limit": pl.Boolean(), "absent": pl.List(pl.String)}
)
"""Formulas: step_cost.py and roofline.py. `limit_share`: total throughput / limit_tps. `absent` says why a figure is null."""


def analysis_table(points: pl.DataFrame, facts_of: Callable[[Server], Facts]) -> pl.DataFrame:
    """SCHEMA, one row per point that is not synthetic, in the order of the points table."""
    real = points.filter(~pl.col("synthetic")).to_dicts()
    baselines = {_conditions(row): row for row in real if row["method"] == BASELINE}
    rows = [
        [made.get(name) for name in SCHEMA]
        for row in real
        for made in [_row(row, baselines.get(_conditions(row)), facts_of(Server.from_axes(row)))]
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _conditions(row: Mapping[str, object]) -> tuple:
    return tuple(row[axis] for axis in POINT_AXES)


def _row(
    point: Mapping[str, object], baseline: Mapping[str, object] | None, known: Facts
) -> dict[str, object]:
    parts = split(point, baseline)
    limit = roof(known, point, baseline and baseline["weights_gib"], parts.tokens_per_step)
    total = point["aggregate_tps"]
    share = total / limit.limit_tps if total is not None and limit.limit_tps else None
    names = (*POINT_AXES, "method", "k", "validity", "baseline_validity", "headline", "speedup")
    return {
        **{name: point[name] for name in names},
        **asdict(parts),
        **asdict(limit),
        "value": point[point["headline"]],
        "limit_share": share,
        "above_limit": None if share is None else share > 1,
        "absent": [
            *([f"step_cost: {parts.reason}"] if parts.reason else []),
            *([f"limit_tps: {limit.reason}"] if limit.reason else []),
            *(
                ["kv_gb: KV bytes per token or context are not known"]
                if limit.limit_tps and limit.kv_gb is None
                else []
            ),
        ],
    }


_CAPTION = """Speed-up = tokens per step / step cost x rest; step cost: time of a step relative to one of
`none`; rest: prefill, waiting, answers of another length. Break-even: tokens per step below which the method would be
slower than `none`. Of limit: total throughput as a share of what memory bandwidth allows for the tokens per step reached."""


def analysis_text(table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown."""
    if table.is_empty():
        return ["Nothing was measured, so there is nothing to explain."]
    lines = markdown.paragraph(_CAPTION)
    for values, rows in table.group_by(_BLOCK, maintain_order=True):
        named = dict(zip(_BLOCK, values, strict=True))
        lines += ["", markdown.heading(named), "", *_block(rows)]
    return [*lines, *_remarks(table)]


def _block(rows: pl.DataFrame) -> list[str]:
    headers = ["method", "k", "c", "speedup", "tokens/step", "step cost", "rest", "break-even", "of limit"]
    body = [
        [
            f"{row['method']}{' !' if _doubtful(row) else ''}",
            markdown.k_text(row["k"]),
            str(row["concurrency"]),
            *(_ratio(row[name], "x" if name == "speedup" else "") for name in _SHOWN),
            _share(row),
        ]
        for row in rows.iter_rows(named=True)
    ]
    return markdown.table(headers, body, fixed=3)


def _doubtful(row: Mapping[str, object]) -> bool:
    return row["validity"] != VALID or row["baseline_validity"] not in (VALID, None)


def _ratio(value: float | None, unit: str) -> str:
    return ABSENT if value is None else f"{value:.2f}{unit}"


def _share(row: Mapping[str, object]) -> str:
    if row["limit_share"] is None:
        return ABSENT
    return f"{100 * row['limit_share']:.0f}%" + (" ABOVE" if row["above_limit"] else "")


def _remarks(table: pl.DataFrame) -> Iterator[str]:
    """What is missing and why, each once; what cannot be."""
    if any(map(_doubtful, table.iter_rows(named=True))):
        yield from ("", *markdown.paragraph("! not valid, or its `none` is not: see validity.md."))
    above = table.filter("above_limit")
    if len(above):
        words = f"""{len(above)} of {len(table)} points are above what memory bandwidth allows. Bandwidth or weights in the hardware
        or model file are wrong, or the measurement is."""
        yield from ("", *markdown.paragraph(words))
    counts = table["absent"].explode().drop_nulls().value_counts(sort=True)
    if len(counts):
        yield ""
        for reason, count in counts.iter_rows():
            yield f"- {reason} ({count} of {len(table)} points)"
