"""Records of several runs in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from scripts.lib.cell import AXES
from scripts.lib.tables.cells import RECORDS_SCHEMA

_FROM = "from {folder}"
_TWICE = "measured in {folder} as well; that row is left out"


def with_others(own: pl.DataFrame, tables: Sequence[Path]) -> pl.DataFrame:
    """`own` with the rows of other records tables. Of a cell that several have, the first in order is kept (own before
    others) and says so in its notes.

    Columns that another version of the workflow did not have are null there; those it had and this one has not are
    dropped. Raises ValueError for a table that is none of ours.
    """
    frame = own
    for path in tables:
        folder = str(path.parent.parent)
        other = _read(path)
        note = pl.lit([_FROM.format(folder=folder)])
        other = other.with_columns(notes=note.list.concat(pl.col("notes").fill_null([])))
        twice = pl.lit([_TWICE.format(folder=folder)])
        known = frame.join(
            other.select(*AXES, _known=pl.lit(True)), on=AXES, how="left", maintain_order="left"
        )
        notes = pl.col("notes").fill_null([])
        frame = known.with_columns(
            notes=pl.when(pl.col("_known")).then(notes.list.concat(twice)).otherwise(notes)
        ).select(*RECORDS_SCHEMA)
        frame = pl.concat([frame, other.join(frame, on=AXES, how="anti")])
    return frame.sort(AXES)


def _read(path: Path) -> pl.DataFrame:
    frame = pl.read_parquet(path)
    lacking = [axis for axis in AXES if axis not in frame.columns]
    if lacking:
        raise ValueError(f"{path} is no table of records: it has no column {', '.join(lacking)}")
    return frame.select(
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in RECORDS_SCHEMA.items()
    )
