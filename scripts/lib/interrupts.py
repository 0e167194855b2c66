"""Ending a run ends its jobs: Snakemake alone would wait for running jobs on SIGTERM, hours with a server held."""

from __future__ import annotations

import os
import signal

from scripts.lib.guard import children


def forward_to_jobs() -> None:
    """On SIGTERM and SIGINT send SIGTERM to every job of this process first, then do what was done before.

    A terminal's Ctrl-C reaches the jobs anyway; `kill` of the main process alone does not.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        previous = signal.getsignal(number)
        if previous is signal.SIG_IGN:
            continue  # a run in the background of a shell script is not meant to hear the terminal

        def handler(number: int, frame: object, previous: object = previous) -> None:
            for pid in children().get(os.getpid(), []):
                try:
                    os.kill(pid, signal.SIGTERM)
                except ProcessLookupError:
                    continue
            if callable(previous):
                previous(number, frame)

        signal.signal(number, handler)
