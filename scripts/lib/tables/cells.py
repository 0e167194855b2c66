"""The tidy table: one row per cell, the single interface between collecting and everything that reads
results.

Columns: the nine axes, status and reasons, what failed, one column per metric of the registry, how the server ran,
provenance.
The columns and their types are the same for an empty table and for one in which everything failed. A null has
its reason in `absent`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from scripts.lib.cell import AXES, COUNT_AXES
from scripts.lib.metrics import INTEGER, METRICS, NUMBERS
from scripts.lib.record import FAILURE_FIELDS, PROVENANCE_FIELDS
from scripts.lib.server_config import CONFIG_FIELDS
from scripts.lib.tables.compare import with_kv_cache_change, with_speedup

_METRIC_TYPES = {INTEGER: pl.Int64, NUMBERS: pl.List(pl.Float64)}
_CONFIG_TYPES = {int: pl.Int64(), bool: pl.Boolean(), str: pl.String()}
TEXTS = pl.List(pl.String)

SCHEMA: dict[str, pl.DataType] = (
    {axis: pl.Int64() if axis in COUNT_AXES else pl.String() for axis in AXES}
    | {"status": pl.String(), "reasons": TEXTS}
    | {name: pl.String() for name in FAILURE_FIELDS}
    | {name: _METRIC_TYPES.get(metric.kind, pl.Float64) for name, metric in METRICS.items()}
    | {name: _CONFIG_TYPES[kind] for name, kind in CONFIG_FIELDS.items()}
    | {"absent": TEXTS, "notes": TEXTS}
    | {name: pl.String() for name in PROVENANCE_FIELDS}
)


def cells_table(records: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """One row per record in the order of the axes, compared with `none`; SCHEMA whatever the records hold.

    Raises TypeError or polars.exceptions.PolarsError for a value of the wrong type: records come from
    record.py."""
    rows = [[record.get(name) for name in SCHEMA] for record in records]
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row").sort(AXES)
    return with_kv_cache_change(with_speedup(frame))


def write_cells(cells: pl.DataFrame, parquet: Path, csv: Path) -> None:
    """Write the table twice: lossless as parquet, and as csv with list columns joined by ';'."""
    cells.write_parquet(parquet)
    flat(cells).write_csv(csv)


def read_cells(parquet: Path) -> pl.DataFrame:
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
