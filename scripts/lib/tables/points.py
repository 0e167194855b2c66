"""The points table: one row per point, that is a cell without its repeat, over the repeats that count.

A point is VALID when at least one of its repeats is, and then only those count. Otherwise the mildest of what its
repeats have counts, so that figures are always shown and never mixed. Synthetic cells are points of their own.

    {metric}, _low, _high, _spread   median over the repeats that count; 95% interval of their mean; (max - min) / median
    speedup, _low, _high             geometric mean of the ratios to `none`, paired by repeat (statistics.py)
    baseline_validity                of that `none`: what it makes of the ratio; None where there is no ratio to one
    noise_floor                      spread of the baseline's own headline
    verdict, verdict_reason          statistics.VERDICTS; `no verdict` for what is not VALID or has no VALID baseline
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from scripts.lib import statistics
from scripts.lib.cell import BASELINE, COUNT_AXES, method_name
from scripts.lib.metrics import METRICS, NUMBERS, headline
from scripts.lib.statistics import NO_VERDICT, Comparison, compare, half_width
from scripts.lib.tables.compare import CONDITIONS, METHOD, headline_tps, in_reading_order, usable, usable_row
from scripts.lib.validity import SEVERITIES, VALID

POINT = (*CONDITIONS, *METHOD, "synthetic")
"""What names a point."""

_COMPARED = "speedup"
SUMMARIZED = tuple(m.name for m in METRICS.values() if m.kind != NUMBERS and m.name != _COMPARED)
LISTS = tuple(m.name for m in METRICS.values() if m.kind == NUMBERS)
_TEXTS = pl.List(pl.String)

POINTS_SCHEMA: dict[str, pl.DataType] = (
    {name: pl.Int64() if name in COUNT_AXES else pl.String() for name in (*CONDITIONS, *METHOD)}
    | {"synthetic": pl.Boolean(), "headline": pl.String()}
    | {"repeats_asked": pl.Int64(), "repeats_valid": pl.Int64()}
    | {"validity": pl.String(), "validity_reasons": _TEXTS, "statuses": _TEXTS}
    | {"repeats": pl.List(pl.Int64), "headline_tps": pl.List(pl.Float64)}
    | {f"{name}{part}": pl.Float64() for name in SUMMARIZED for part in ("", "_low", "_high", "_spread")}
    | {name: pl.List(pl.Float64) for name in LISTS}
    | {"acceptance_source": pl.String(), "max_num_seqs": pl.String()}
    | {f"{_COMPARED}{part}": pl.Float64() for part in ("", "_low", "_high")}
    | {"baseline_validity": pl.String(), "noise_floor": pl.Float64()}
    | {"verdict": pl.String(), "verdict_reason": pl.String()}
)
"""`repeats` and `headline_tps`: the repeats that count and the headline's value in each, for further comparisons."""

_OF_COMPARISON = (
    *("speedup", "speedup_low", "speedup_high"),
    *("baseline_validity", "noise_floor", "verdict", "verdict_reason"),
)


def points_table(cells: pl.DataFrame) -> pl.DataFrame:
    """POINTS_SCHEMA from the cells table: blocks together, `none` first in each, then methods by name, k and
    concurrency."""
    counting = _counting(usable(cells))
    points = (
        _described(counting)
        .join(_summarized(counting), on=POINT, how="left")
        .join(_positions(counting), on=POINT, how="left")
    )
    return _compared(in_reading_order(points)).select(
        pl.col(name).cast(kind) for name, kind in POINTS_SCHEMA.items()
    )


def counting_cells(cells: pl.DataFrame) -> pl.DataFrame:
    """Of every point the repeats that it is made of; all of one point have the same validity."""
    return _counting(usable(cells)).filter("_counts").select(cells.columns)


def _counting(cells: pl.DataFrame) -> pl.DataFrame:
    """The cells with `_counts`: whether the repeat is among those its point is made of."""
    rank = pl.col("validity").replace_strict(SEVERITIES, range(len(SEVERITIES)), return_dtype=pl.Int8)
    return cells.with_columns(_rank=rank).with_columns(
        _counts=pl.col("_rank") == pl.col("_rank").min().over(POINT), _headline=headline_tps()
    )


def _described(cells: pl.DataFrame) -> pl.DataFrame:
    measured = pl.col("_counts") & pl.col("_headline").is_not_null()
    return (
        cells.sort("repeat")
        .group_by(POINT, maintain_order=True)
        .agg(
            repeats_asked=pl.len(),
            repeats_valid=(pl.col("validity") == VALID).sum(),
            validity=pl.col("validity").sort_by("_rank", maintain_order=True).first(),
            validity_reasons=pl.col("validity_reasons")
            .list.explode()
            .drop_nulls()
            .unique(maintain_order=True),
            statuses=pl.col("status").unique(maintain_order=True),
            repeats=pl.col("repeat").filter(measured),
            headline_tps=pl.col("_headline").filter(measured),
            acceptance_source=_distinct("acceptance_source"),
            max_num_seqs=_distinct("max_num_seqs"),
        )
        .with_columns(
            headline=pl.when(pl.col("concurrency") == 1)
            .then(pl.lit(headline(1)))
            .otherwise(pl.lit(headline(2)))
        )
    )


def _distinct(name: str) -> pl.Expr:
    """The different values of the repeats that count, joined; None where there are none."""
    return (
        pl.col(name)
        .filter(pl.col("_counts") & usable_row())
        .drop_nulls()
        .unique()
        .sort()
        .str.join(", ")
        .replace("", None)
    )


def _summarized(cells: pl.DataFrame) -> pl.DataFrame:
    parts = {
        "": pl.Expr.median,
        "_mean": pl.Expr.mean,
        "_std": pl.Expr.std,
        "_count": pl.Expr.count,
        "_range": lambda column: column.max() - column.min(),
    }
    found = (
        cells.filter("_counts")
        .group_by(POINT)
        .agg(
            make(pl.col(name)).cast(pl.Float64).alias(f"{name}{part}")
            for name in SUMMARIZED
            for part, make in parts.items()
        )
    )
    most = cells.select(pl.len().over(POINT)).max().item() or 0
    widths = {count: half_width(count) for count in range(2, most + 1)}
    return found.select(*POINT, *(column for name in SUMMARIZED for column in _interval(name, widths)))


def _interval(name: str, widths: Mapping[int, float]) -> tuple[pl.Expr, ...]:
    """The metric's four columns from its parts; statistics.mean_interval and spread, as expressions."""
    mean, deviation, count = (pl.col(f"{name}_{part}") for part in ("mean", "std", "count"))
    several = count >= 2
    width = deviation * count.replace_strict(widths, default=None, return_dtype=pl.Float64)
    return (
        pl.col(name),
        pl.when(several).then(mean - width).alias(f"{name}_low"),
        pl.when(several).then(mean + width).alias(f"{name}_high"),
        pl.when(several & (pl.col(name) != 0))
        .then(pl.col(f"{name}_range") / pl.col(name).abs())
        .alias(f"{name}_spread"),
    )


def _positions(cells: pl.DataFrame) -> pl.DataFrame:
    """Medians position by position; a list that is absent in every repeat stays absent."""
    points = cells.select(POINT).unique(maintain_order=True)
    for name in LISTS:
        rows = (
            cells.filter(pl.col("_counts") & (pl.col(name).list.len() > 0))
            .select(*POINT, name, position=pl.int_ranges(0, pl.col(name).list.len()))
            .explode(name, "position")
            .group_by(*POINT, "position")
            .agg(pl.col(name).median())
            .sort("position")
            .group_by(POINT)
            .agg(name)
        )
        points = points.join(rows, on=POINT, how="left")
    return points


def _compared(points: pl.DataFrame) -> pl.DataFrame:
    """Add the comparison with `none` under the same conditions. Synthetic acceptance needs no baseline of its own:
    `none` accepts nothing."""
    names = (*POINT, "validity", "validity_reasons", "statuses", "repeats", "headline_tps")
    rows = points.select(names).to_dicts()
    baselines = {_conditions(row): row for row in rows if row["method"] == BASELINE and not row["synthetic"]}
    added = [_comparison(row, baselines.get(_conditions(row))) for row in rows]
    kinds = {name: POINTS_SCHEMA[name] for name in _OF_COMPARISON}
    return pl.concat([points, pl.DataFrame(added, schema=kinds, orient="row")], how="horizontal")


def _conditions(row: Mapping[str, object]) -> tuple:
    return tuple(row[name] for name in CONDITIONS)


def values_by_repeat(row: Mapping[str, object]) -> dict[int, float]:
    """The headline of a point in each repeat that counts, for statistics.compare."""
    return dict(zip(row["repeats"], row["headline_tps"], strict=True))


def compare_points(row: Mapping[str, object], other: Mapping[str, object]) -> Comparison:
    """How fast a point is relative to another under the same conditions; both rows of the points table.

    `no verdict` unless both are VALID and both or neither synthetic; the ratio is given nevertheless."""
    found = compare(values_by_repeat(row), values_by_repeat(other))
    why = _not_comparable(row) or _not_comparable(other)
    if not why and row["synthetic"] != other["synthetic"] and other["method"] != BASELINE:
        why = "acceptance is synthetic on one side"
    return Comparison(found.ratio, found.low, found.high, NO_VERDICT, why, found.pairs) if why else found


def _not_comparable(row: Mapping[str, object]) -> str:
    if row["validity"] == VALID:
        return ""
    name = method_name(row["method"], row["k"])
    reasons = dict.fromkeys(reason.partition(":")[0] for reason in row["validity_reasons"])
    return f"{name} is {row['validity']} ({', '.join(reasons)})"


def _comparison(row: Mapping[str, object], baseline: Mapping[str, object] | None) -> tuple:
    """The values of _OF_COMPARISON."""
    if baseline is None:
        why = f"there is no `{BASELINE}` under the same conditions"
        return (None, None, None, None, None, NO_VERDICT, why)
    noise = statistics.spread(baseline["headline_tps"])
    found = compare_points(row, baseline)
    if row["method"] == BASELINE and not row["synthetic"]:
        valid = row["validity"] == VALID
        verdict = (statistics.BASELINE, "") if valid else (NO_VERDICT, found.reason)
        return (found.ratio, None, None, None, noise, *verdict)
    under = None if found.ratio is None else baseline["validity"]
    return (found.ratio, found.low, found.high, under, noise, found.verdict, found.reason)
