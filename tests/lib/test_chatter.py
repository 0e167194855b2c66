"""What of Snakemake's own output reaches the console of a sweep."""

import logging

import pytest

from scripts.lib.chatter import worth_reading


def record(text, level=logging.INFO):
    return logging.LogRecord("snakemake.logging", level, "x.py", 1, text, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "Select jobs to execute...",
        "Execute 2 jobs...",
        "Waiting at most 30 seconds for missing files:\nresults/servers/x/endpoint.json (missing locally)",
        "Terminating service job 4 since all consuming jobs are finished.",
        "Service job 4 has been successfully terminated.",
    ],
)
def test_talk_of_the_scheduler_is_left_out_but_never_as_a_warning(text):
    assert not worth_reading(record(text))
    assert worth_reading(record(text, logging.WARNING))


@pytest.mark.parametrize(
    "text", ["Error in rule serve:", "Building DAG of jobs...", "Nothing to be done", ""]
)
def test_everything_else_is_shown(text):
    assert worth_reading(record(text))
