"""May a cell be believed, and compared? One verdict per cell with named reasons, from its row and its baseline's.

VALID     nothing speaks against it
UNFAIR    measured well, but not under the conditions of its baseline
INVALID   the figures are not what the row says they are, or there are none

Limits are the config's key `validity`. Nothing is read but rows, so another limit costs no measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from scripts.lib.cell import BASELINE
from scripts.lib.config import load_schema
from scripts.lib.validity_case import INVALID, UNFAIR, Case, Row
from scripts.lib.validity_checks import CHECKS

VALID = "VALID"
SEVERITIES = (VALID, UNFAIR, INVALID)
"""The mildest first."""

_SERVER = ("hardware", "engine", "model", "max_model_len")
_CONDITIONS = (*_SERVER, "scenario", "concurrency")
_MEASURED = "measured"
_ANY = 0
"""In place of a repeat, which count from 1."""
_FAILED = ("failed", "mislabelled", "damaged", "infeasible")
"""Statuses of rows without a usable result; each is the name of its own reason."""

Limits = Mapping[str, object]


@cache
def default_limits() -> Limits:
    """The limits of a config that does not set any."""
    keys = load_schema("config")["properties"]["validity"]["properties"]
    return {name: key["default"] for name, key in keys.items()}


def judge(row: Row, baseline: Row | None, settings: Row | None, limits: Limits) -> tuple[str, list[str]]:
    """(validity, reasons as `name: words`) of one row.

    `baseline`: the `none` row under the same conditions; `settings`: a row that shows how its server ran. None where
    there is none: what needs it is not checked then.
    """
    if row["status"] != _MEASURED:
        return INVALID, [_without_result(row)]
    case = Case(row, baseline, settings, limits)
    found = [(check.severity, f"{check.name}: {words}") for check in CHECKS if (words := check.find(case))]
    worst = max((SEVERITIES.index(severity) for severity, _ in found), default=0)
    return SEVERITIES[worst], [text for _, text in found]


def _without_result(row: Row) -> str:
    name = row["status"] if row["status"] in _FAILED else "failed"
    return f"{name}: {'; '.join(row['reasons'] or ()) or 'there is no result'}"


def judge_all(rows: Sequence[Row], limits: Limits) -> list[tuple[str, list[str]]]:
    """judge() for every row of a table, each against the `none` row of its own repeat, else of another repeat; one that is
    VALID before one that is not, since a disturbed baseline would make every method look too fast."""
    baselines = _Baselines(rows, limits)
    return [judge(row, baselines.of(row), baselines.server_of(row), limits) for row in rows]


class _Baselines:
    """Finds the measured `none` row of a row."""

    def __init__(self, rows: Iterable[Row], limits: Limits):
        measured = [
            row
            for row in rows
            if row["method"] == BASELINE and row["status"] == _MEASURED and not row["synthetic"]
        ]
        self._server: dict[tuple, Row] = {}
        for row in measured:
            self._server.setdefault((*self._key(row, _SERVER), row["repeat"]), row)
            self._server.setdefault(self._key(row, _SERVER), row)
        self._found: dict[tuple, Row] = {}
        for row in measured:
            trusted = judge(row, None, self.server_of(row), limits)[0] == VALID
            for repeat in (row["repeat"], _ANY):
                self._found.setdefault((trusted, repeat, *self._key(row, _CONDITIONS)), row)

    @staticmethod
    def _key(row: Row, names: Sequence[str]) -> tuple:
        return tuple(row[name] for name in names)

    def of(self, row: Row) -> Row | None:
        """Same conditions; VALID where there is one, and of those the one of the same repeat."""
        conditions = self._key(row, _CONDITIONS)
        places = (
            (trusted, repeat, *conditions) for trusted in (True, False) for repeat in (row["repeat"], _ANY)
        )
        return next((self._found[place] for place in places if place in self._found), None)

    def server_of(self, row: Row) -> Row | None:
        """Any cell of the baseline's server: settings belong to the boot, not to the cell."""
        server = self._key(row, _SERVER)
        return self._server.get((*server, row["repeat"])) or self._server.get(server)
