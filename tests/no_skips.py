"""A pytest plugin: with SPECDEC_NO_SKIPS in the environment a test that is skipped has failed.

CI installs everything that tests need, so there a skip hides that something was not tested. Elsewhere skips stay skips.
"""

from __future__ import annotations

import os

import pytest

VARIABLE = "SPECDEC_NO_SKIPS"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    return _failed_if_skipped(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return _failed_if_skipped(report)


def _failed_if_skipped(report):
    if report.skipped and os.environ.get(VARIABLE) and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason} (and {VARIABLE} is set: nothing may be skipped here)"
    return report
