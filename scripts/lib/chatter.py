"""Lines of Snakemake's scheduler that tell users of a sweep nothing: it prints its own about boots, cells and time left."""

from __future__ import annotations

import logging

_CHATTER = (
    "Select jobs to execute...",
    "Execute ",
    "Waiting at most ",  # for a file that a server's job is about to write; what stays missing is an error of its own
    "Terminating service job ",
    "Service job ",
)


def worth_reading(record: logging.LogRecord) -> bool:
    """A logging filter: whether to show what Snakemake says. Warnings and errors always are."""
    return record.levelno > logging.INFO or not record.getMessage().startswith(_CHATTER)
