"""Every real log parses to the report that was read and accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.lib.logs import parse_path
from tests.lib.logs import golden

LOGS = golden.logs()


def test_all_real_logs_are_here() -> None:
    assert len(LOGS) >= 49
    assert {golden.golden_path(log) for log in LOGS} == set(golden.DATA.glob("*.json"))


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.name)
def test_report_is_the_accepted_one(log: Path) -> None:
    now = golden.text(parse_path(log))
    assert now == golden.golden_path(log).read_text(encoding="utf-8"), (
        "the parser reads this log differently now; compare with the log, then accept with `python -m "
        "tests.lib.logs.golden --write`"
    )


def test_healthy_runs_have_no_failure() -> None:
    healthy = [log for log in LOGS if "fail" not in log.name and "crash" not in log.name]
    died = {"h200_dflash_k3", "h200_sgl_standalone"}
    for log in healthy:
        name = log.name.partition(".")[0]
        assert (parse_path(log).failure is not None) == (name in died), log.name
