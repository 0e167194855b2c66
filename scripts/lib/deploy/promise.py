"""Whether a schedule does as well as the K curve it was derived from says it should.

At each concurrency it is set against the fixed k that it imitates there (its promise), against the best single k over all
concurrencies, and against the baseline. Those were measured by the sweep, each on boots of its own: what the machine did
otherwise between then and now is in the ratios.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars as pl

from scripts.lib.cell import BASELINE, COUNT_AXES, Server
from scripts.lib.deploy.scheduled import Scheduled
from scripts.lib.metrics import ABSENT, METRICS
from scripts.lib.recommend.candidates import POINT_AXES
from scripts.lib.statistics import FASTER, NO_VERDICT, SINGLE_RUN, SLOWER, UNRESOLVED, Comparison
from scripts.lib.tables import markdown
from scripts.lib.tables.points import compare_points

KEPT, BROKEN = "kept", "broken"
_AGAINST = ("promised", "fixed", "none")
_NUMBER = pl.Float64()

SCHEMA: dict[str, pl.DataType] = (
    {axis: pl.Int64() if axis in COUNT_AXES else pl.String() for axis in POINT_AXES}
    | {"method": pl.String(), "verdict": pl.String(), "reason": pl.String()}
    | {"headline": pl.String(), "value": _NUMBER, "promised_k": pl.Int64(), "fixed_k": pl.Int64()}
    | {f"{name}_value": _NUMBER for name in _AGAINST}
    | {f"{name}_ratio{part}": _NUMBER for name in _AGAINST for part in ("", "_low", "_high")}
)
"""`promised`: the fixed k that the schedule takes at this concurrency; `fixed`: the best single k over all of them; ratios
are the schedule's throughput to theirs."""


def promise_table(points: pl.DataFrame, schedules: Iterable[Scheduled], tolerance: float) -> pl.DataFrame:
    """SCHEMA: one row per schedule, scenario and concurrency. `points` holds the schedules' points and those of the sweep.

    kept: faster than promised, or not told from it and at most `tolerance` (relative) below; broken: shown to be slower;
    unresolved: below by more, but repeats do not show it.
    """
    found = {_key(row): row for row in points.iter_rows(named=True) if not row["synthetic"]}
    rows = [row for schedule in schedules for row in _rows(schedule, found, tolerance)]
    return pl.DataFrame([[row.get(name) for name in SCHEMA] for row in rows], schema=SCHEMA, orient="row")


def _key(row: Mapping[str, object]) -> tuple:
    return (Server.from_axes(row), row["scenario"], row["concurrency"])


def _rows(
    schedule: Scheduled, points: Mapping[tuple, Mapping[str, object]], tolerance: float
) -> Iterator[dict[str, object]]:
    for scenario in schedule.scenarios:
        for concurrency, k in schedule.best_k.items():
            own = points.get((schedule.scheduled_server, scenario, concurrency))
            others = {
                "promised": points.get((_server(schedule, k), scenario, concurrency)),
                "fixed": points.get((_server(schedule, schedule.fixed_k), scenario, concurrency)),
                "none": points.get((_server(schedule, 0), scenario, concurrency)),
            }
            axes = vars(schedule.server) | {"scenario": scenario, "concurrency": concurrency}
            row: dict[str, object] = {axis: axes[axis] for axis in POINT_AXES}
            row |= {"method": schedule.name, "promised_k": k, "fixed_k": schedule.fixed_k}
            yield row | _figures(own, others, tolerance)


def _server(schedule: Scheduled, k: int) -> Server:
    own = vars(schedule.server)
    return Server(**own | ({"k": k} if k else {"k": 0, "method": BASELINE}))


def _figures(
    own: Mapping[str, object] | None, others: Mapping[str, Mapping[str, object] | None], tolerance: float
) -> dict[str, object]:
    if own is None:
        return {"verdict": NO_VERDICT, "reason": "the schedule was not measured here"}
    headline = str(own["headline"])
    row: dict[str, object] = {"headline": headline, "value": own[headline]}
    for name, other in others.items():
        if other is None:
            continue
        compared = compare_points(own, other)
        row |= {f"{name}_value": other[headline], f"{name}_ratio": compared.ratio}
        row |= {f"{name}_ratio_low": compared.low, f"{name}_ratio_high": compared.high}
    promised = others["promised"]
    if promised is None:
        return row | {"verdict": NO_VERDICT, "reason": "the fixed k it imitates was not measured here"}
    compared = compare_points(own, promised)
    return row | {"verdict": _verdict(compared, tolerance), "reason": compared.reason}


def _verdict(compared: Comparison, tolerance: float) -> str:
    if compared.verdict == SLOWER:
        return BROKEN
    if compared.verdict == FASTER or (compared.verdict == UNRESOLVED and compared.ratio >= 1 - tolerance):
        return KEPT
    return compared.verdict


def promise_text(table: pl.DataFrame, notes: Sequence[str]) -> list[str]:
    """The table as lines of markdown, the outcome first."""
    lines = ["# Does the schedule keep its promise?"]
    if notes:
        lines += ["", *(f"- {words}" for words in notes)]
    elif table.is_empty():
        lines += ["", "There is no schedule to verify."]
    for _, rows in table.group_by("method", maintain_order=True):
        lines += ["", *markdown.paragraph(outcome(rows.to_dicts())), "", *_block(rows.to_dicts())]
        reasons = [
            _reason(row) for row in rows.iter_rows(named=True) if row["verdict"] not in (KEPT, SINGLE_RUN)
        ]
        lines += ["", *reasons] if reasons else []
    return lines


def outcome(rows: Sequence[Mapping[str, object]]) -> str:
    """One schedule's rows in a few sentences."""
    method, total = rows[0]["method"], len(rows)
    places = {
        verdict: [row for row in rows if row["verdict"] == verdict]
        for verdict in {r["verdict"] for r in rows}
    }
    if len(places.get(KEPT, ())) == total:
        said = f"{method} kept its promise at every operating point ({total})."
    elif BROKEN in places:
        said = f"{method} broke its promise at {len(places[BROKEN])} of {total} operating points."
    else:
        open_points = total - len(places.get(KEPT, ()))
        said = f"{method}: whether it keeps its promise is open at {open_points} of {total} operating points."
        if SINGLE_RUN in places:
            said += " Single runs say nothing about noise: measure with repeats: 3 or more."
    return said + "".join(_gain(rows, name, words) for name, words in _GAINS.items())


_GAINS = {
    "promised": " On average over all points it reaches {} of the best fixed k at each,",
    "fixed": " {} of the best single k (k {k})",
    "none": f" and {{}} of `{BASELINE}`.",
}


def _gain(rows: Sequence[Mapping[str, object]], name: str, words: str) -> str:
    logs = [math.log(row[f"{name}_ratio"]) for row in rows if row[f"{name}_ratio"]]
    ratio = f"{math.exp(math.fsum(logs) / len(logs)):.2f}x" if logs else ABSENT
    return words.format(ratio, k=rows[0]["fixed_k"])


def _block(rows: Sequence[Mapping[str, object]]) -> list[str]:
    headers = ["scenario", "c", "k", "tok/s", "to best k", "to fixed k", f"to {BASELINE}", "verdict"]
    body = [
        [
            str(row["scenario"]),
            str(row["concurrency"]),
            str(row["promised_k"]),
            METRICS[str(row["headline"])].text(row["value"]) if row["headline"] else ABSENT,
            *(
                ABSENT if row[f"{name}_ratio"] is None else f"{row[f'{name}_ratio']:.2f}x"
                for name in _AGAINST
            ),
            str(row["verdict"]),
        ]
        for row in rows
    ]
    return markdown.table(headers, body, fixed=2)


def _reason(row: Mapping[str, object]) -> str:
    words = f"- {row['scenario']} at concurrency {row['concurrency']}: {row['verdict']}"
    return f"{words}, {row['reason']}" if row["reason"] else words
