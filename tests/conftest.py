from tests.no_skips import pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401 - pytest looks for hooks here
