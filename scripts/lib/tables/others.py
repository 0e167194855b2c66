"""Records of several runs in one table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from scripts.lib.cell import AXES
from scripts.lib.tables.cells import RECORDS_SCHEMA

_FROM = "from {folder}"
_OTHERWISE = "scenario {scenario} has other contents there than here, so it is another one: {renamed}"
_TWICE = "measured in {folder} as well; that row is left out"


def with_others(own: pl.DataFrame, tables: Sequence[Path]) -> pl.DataFrame:
    """`own` with the rows of other records tables. Of a cell that several have, the first in order is kept (own before
    others) and says so in its notes. A scenario that has the name of an earlier table's but other contents gets a name of its own:
    prompts and sampling decide a figure as much as the server does.

    Columns that another version of the workflow did not have are null there; those it had and this one has not are
    dropped. Raises ValueError for a table that is none of ours.
    """
    frame = own
    for path in tables:
        folder = str(path.parent.parent)
        note = pl.lit([_FROM.format(folder=folder)])
        other = _read(path).with_columns(notes=note.list.concat(pl.col("notes").fill_null([])))
        other = _told_apart(other, frame)
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


def _told_apart(other: pl.DataFrame, frame: pl.DataFrame) -> pl.DataFrame:
    """`other` with new names for scenarios that `frame` knows by other contents; what a table does not tell is taken for the
    same."""
    contents = ("scenario", "scenario_sha256")
    known = frame.select(contents).drop_nulls().unique()
    foreign = other.select(contents).drop_nulls().unique().join(known, on=contents, how="anti")
    renamed = foreign.join(known, on="scenario", how="semi").with_columns(
        _renamed=pl.format("{}-{}", "scenario", pl.col("scenario_sha256").str.head(8))
    )
    if renamed.is_empty():
        return other
    new = pl.col("_renamed")
    words = pl.format(_OTHERWISE.format(scenario="{}", renamed="{}"), "scenario", new)
    return (
        other.join(renamed, on=contents, how="left", maintain_order="left")
        .with_columns(
            notes=pl.when(new.is_not_null())
            .then(pl.col("notes").list.concat(words))
            .otherwise(pl.col("notes"))
        )
        .with_columns(scenario=pl.coalesce(new, "scenario"))
        .drop("_renamed")
    )


def _read(path: Path) -> pl.DataFrame:
    frame = pl.read_parquet(path)
    lacking = [axis for axis in AXES if axis not in frame.columns]
    if lacking:
        raise ValueError(f"{path} is no table of records: it has no column {', '.join(lacking)}")
    return frame.select(
        pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in RECORDS_SCHEMA.items()
    )
