"""The tidy tables with one row per cell: as collected (records), and judged and compared with the baseline (cells).

Columns: the nine axes, synthetic, status and reasons, validity, what failed, one column per metric of the registry, how
the server ran, how the window went, provenance. The cells table is the single interface between measuring and
everything that reads results. Columns and types are the same for an empty table and for one in which everything failed.
A null metric has its reason in `absent`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from scripts.lib.cell import AXES, COUNT_AXES
from scripts.lib.conduct import CONDUCT_FIELDS
from scripts.lib.metrics import INTEGER, METRICS, NUMBERS
from scripts.lib.neighbour import NEIGHBOUR_FIELDS
from scripts.lib.origin import PROVENANCE_FIELDS
from scripts.lib.record import FAILURE_FIELDS
from scripts.lib.server_config import CONFIG_FIELDS
from scripts.lib.tables.compare import with_memory_changes, with_speedup
from scripts.lib.validity import Limits, default_limits, judge_all

_METRIC_TYPES = {INTEGER: pl.Int64, NUMBERS: pl.List(pl.Float64)}
_TYPES = {int: pl.Int64(), float: pl.Float64(), bool: pl.Boolean(), str: pl.String()}
TEXTS = pl.List(pl.String)
JUDGED = {"validity": pl.String(), "validity_reasons": TEXTS}
"""What the cells table has and the records do not."""

SCHEMA: dict[str, pl.DataType] = (
    {axis: pl.Int64() if axis in COUNT_AXES else pl.String() for axis in AXES}
    | {"synthetic": pl.Boolean(), "status": pl.String(), "reasons": TEXTS}
    | JUDGED
    | {name: pl.String() for name in FAILURE_FIELDS}
    | {name: _METRIC_TYPES.get(metric.kind, pl.Float64) for name, metric in METRICS.items()}
    | {name: _TYPES[kind] for name, kind in CONFIG_FIELDS.items()}
    | {name: _TYPES[kind] for name, kind in CONDUCT_FIELDS.items()}
    | {name: _TYPES[kind] for name, kind in NEIGHBOUR_FIELDS.items()}
    | {"absent": TEXTS, "notes": TEXTS}
    | {name: pl.String() for name in PROVENANCE_FIELDS}
)


RECORDS_SCHEMA = {name: kind for name, kind in SCHEMA.items() if name not in JUDGED}


def records_table(records: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """One row per record in the order of the axes; RECORDS_SCHEMA whatever the records hold.

    Raises TypeError or polars.exceptions.PolarsError for a value of the wrong type: records come from
    record.py."""
    rows = [[record.get(name) for name in RECORDS_SCHEMA] for record in records]
    return pl.DataFrame(rows, schema=RECORDS_SCHEMA, orient="row").sort(AXES)


def judged(records: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The cells table from the records table: validity by `limits` (config key `validity`), speedup and KV cache
    against `none`."""
    # Records of other versions may not know it.
    records = records.with_columns(pl.col("synthetic").fill_null(value=False))
    verdicts = judge_all(records.to_dicts(), limits)
    columns = zip(*verdicts, strict=True) if verdicts else ((), ())
    added = pl.DataFrame(dict(zip(JUDGED, map(list, columns), strict=True)), schema=JUDGED)
    frame = pl.concat([records, added], how="horizontal").select(*SCHEMA)
    return with_memory_changes(with_speedup(frame))


def cells_table(records: Iterable[Mapping[str, object]], limits: Limits | None = None) -> pl.DataFrame:
    """Both steps: records to cells, by the default limits unless others are given."""
    return judged(records_table(records), default_limits() if limits is None else limits)


def write_table(frame: pl.DataFrame, parquet: Path, csv: Path) -> None:
    """Write a table twice: lossless as parquet, and as csv with list columns joined by ';'."""
    frame.write_parquet(parquet)
    flat(frame).write_csv(csv)


def read_table(parquet: Path) -> pl.DataFrame:
    return pl.read_parquet(parquet)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The same frame with list columns as text, items joined by ';'; an empty list is empty, a null stays
    null."""
    return frame.with_columns(
        pl.col(name).list.eval(_plain(pl.element(), kind)).list.join(";").alias(name)
        for name, kind in frame.schema.items()
        if isinstance(kind, pl.List)
    )


def _plain(element: pl.Expr, kind: pl.List) -> pl.Expr:
    text = element.cast(pl.String)
    return text.str.replace_all(";", ",", literal=True) if kind == TEXTS else text
