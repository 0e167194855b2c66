"""Each published figure beside the point of this run that comes nearest to its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import polars as pl

from scripts.lib.cell import BASELINE, Server
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.published.data import CONDITIONS, OF_A_FIGURE, SPREAD, Figure, Study
from scripts.lib.tables import markdown
from scripts.lib.validity import VALID

_OF_LOAD = ("scenario", "concurrency", "requests")
"""What says how a server was used, and nothing about the server."""

FlagsOf = Callable[[Server], Mapping[str, object] | None]
"""The flags a server was started with; None where they are not known."""

SCHEMA: dict[str, pl.DataType] = {
    "study": pl.String(),
    "method": pl.String(),
    "k": pl.Int64(),
    "concurrency": pl.Int64(),
    "metric": pl.String(),
    "published": pl.Float64(),
    "measured": pl.Float64(),
    "ratio": pl.Float64(),
    "validity": pl.String(),
    "differs": pl.List(pl.String),
}
"""`ratio`: measured / published. `differs`: conditions of this run that are not the study's, or why there is no figure."""


def published_table(studies: Iterable[Study], points: pl.DataFrame, flags_of: FlagsOf) -> pl.DataFrame:
    """SCHEMA, one row per published figure, in the order of the file."""
    rows = points.filter(~pl.col("synthetic")).to_dicts()
    found = [_row(figure, rows, flags_of) for study in studies for figure in study.figures]
    return pl.DataFrame([[row.get(name) for name in SCHEMA] for row in found], schema=SCHEMA, orient="row")


def _row(figure: Figure, points: Sequence[Mapping[str, object]], flags_of: FlagsOf) -> dict[str, object]:
    row: dict[str, object] = {
        "study": figure.study,
        "metric": figure.metric,
        "published": figure.value,
        **figure.of,
    }
    like = [point for point in points if all(point[axis] == value for axis, value in figure.of.items())]
    known = [point for point in like if point.get(figure.metric) is not None]
    if not known:
        what = _of_words(figure.of)
        unknown = f"{figure.metric} of {'' if 'method' in figure.of else 'a '}{what} is not known here"
        return row | {"differs": [unknown if like else f"no {what} in this run"]}
    # Of equally near points a valid one; max() keeps the first of what is still equal.
    nearest = max(known, key=lambda point: (-len(_axes(figure, point)), point["validity"] == VALID))
    measured = float(nearest[figure.metric])
    return row | {
        **{axis: nearest[axis] for axis in OF_A_FIGURE},
        "measured": measured,
        "ratio": measured / figure.value if figure.value else None,
        "validity": _validity(figure, nearest),
        "differs": [
            *_axes(figure, nearest),
            *_not_stated(figure, nearest),
            *_flags(figure, nearest, flags_of),
        ],
    }


def _validity(figure: Figure, point: Mapping[str, object]) -> object:
    """Of the point; of a ratio to `none` also that of the `none`."""
    below = point["baseline_validity"] if figure.metric.startswith("speedup") else None
    return below if point["validity"] == VALID and below is not None else point["validity"]


def _of_words(of: Mapping[str, object]) -> str:
    words = [str(of.get("method", "point"))]
    words += [f"k{of['k']}"] if of.get("k") else []
    words += [f"at concurrency {of['concurrency']}"] if "concurrency" in of else []
    return " ".join(words)


def _axes(figure: Figure, point: Mapping[str, object]) -> list[str]:
    names = [name for name in CONDITIONS if not (name in _OF_LOAD and _is_of_server(figure))]
    return [
        f"{name} {_plain(point[name])}, not {' or '.join(map(str, wanted))}"
        for name in names
        if (wanted := figure.conditions.get(name)) and point[name] not in wanted
    ]


def _is_of_server(figure: Figure) -> bool:
    """Memory and start-up are facts of a server, whatever is asked of it."""
    return METRICS[figure.metric.removesuffix(SPREAD)].subject in ("memory", "startup")


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _not_stated(figure: Figure, point: Mapping[str, object]) -> list[str]:
    """Axes that the study leaves open."""
    open_axes = [
        axis
        for axis in OF_A_FIGURE
        if axis not in figure.of and not (axis in _OF_LOAD and _is_of_server(figure))
    ]
    return [
        f"{axis} {point[axis]}, not stated in the study"
        for axis in open_axes
        if not (axis == "k" and point["method"] == BASELINE)
    ]


def _flags(figure: Figure, point: Mapping[str, object], flags_of: FlagsOf) -> list[str]:
    if not figure.flags:
        return []
    own = flags_of(Server.from_axes(point))
    if own is None:
        return ["flags are not known"]
    return [
        f"{name} {own.get(name, 'not given')}, not {wanted}"
        for name, wanted in figure.flags.items()
        if str(own.get(name)) != str(wanted)
    ]


def published_text(studies: Iterable[Study], table: pl.DataFrame) -> list[str]:
    """The table as lines of markdown, one section per study."""
    lines = markdown.paragraph(
        """Ratio: measured here / published. It means something only as far as the conditions are the same; those that differ
        stand below each table, with a number where they concern some of its rows. Ratios between methods (speedup) carry
        over to other machines better than tokens per second."""
    )
    for study in studies:
        rows = table.filter(pl.col("study") == study.name).to_dicts()
        lines += ["", f"## {study.title}", "", *_study(rows)]
    return lines


def _study(rows: Sequence[Mapping[str, object]]) -> list[str]:
    shown = [row for row in rows if row["measured"] is not None]
    missing = [row for row in rows if row["measured"] is None]
    lines = []
    if shown:
        headers = ["method", "k", "c", "metric", "published", "measured", "ratio"]
        shared, numbers = _differences(shown)
        body = [_cells(row) for row in shown]
        if numbers:
            headers.append("differs")
            body = [[*cells, _numbers(row, numbers)] for cells, row in zip(body, shown, strict=True)]
        lines = [*markdown.table(headers, body, fixed=3), "", *_notes(shown, shared, numbers)]
    if missing:
        reasons = dict.fromkeys(reason for row in missing for reason in row["differs"])
        lines += ["", f"Not compared ({len(missing)} of {len(rows)}): {'; '.join(reasons)}."]
    return lines


def _cells(row: Mapping[str, object]) -> list[str]:
    name = str(row["metric"])
    metric = METRICS[name.removesuffix(SPREAD)]
    label = f"spread of {metric.label}" if name.endswith(SPREAD) else metric.header
    text = (lambda value: f"{100 * value:.1f}%") if name.endswith(SPREAD) else metric.text
    mark = "" if row["validity"] == VALID else " !"
    k = markdown.k_text(row["k"])
    values = (
        text(row["published"]),
        text(row["measured"]) + mark,
        _ratio(row["ratio"]),
    )
    return [str(row["method"]), k, str(row["concurrency"]), label, *values]


def _ratio(value: float | None) -> str:
    if value is None:
        return ABSENT
    return f"{value:.2f}x" if value >= 0.1 else f"{value:.1g}x"


def _differences(rows: Sequence[Mapping[str, object]]) -> tuple[list[str], dict[str, int]]:
    """What differs for every row, and what for some, with a number by which they refer to it."""
    counts = Counter(words for row in rows for words in row["differs"])
    shared = [words for words, count in counts.items() if count == len(rows)]
    return shared, {words: 1 + index for index, words in enumerate(w for w in counts if w not in shared)}


def _numbers(row: Mapping[str, object], numbers: Mapping[str, int]) -> str:
    return " ".join(str(numbers[words]) for words in row["differs"] if words in numbers)


def _notes(
    rows: Sequence[Mapping[str, object]], shared: Sequence[str], numbers: Mapping[str, int]
) -> Iterator[str]:
    if any(row["validity"] != VALID for row in rows):
        yield "- ! not valid here: see validity.md"
    if not shared and not numbers:
        yield "All conditions that are known are the study's."
    yield from (f"- {words}" for words in shared)
    yield from (f"- differs {number}: {words}" for words, number in numbers.items())
