"""What every shell job of the workflow does around its work: keep a traceback in its log, say one line on the console."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path


def run_job(work: Callable[[], int | None], log: Path) -> int:
    """Run `work` and return its exit status (None counts as 0).

    An unexpected exception becomes 1, with the traceback in `log` and one line on the console.
    """
    try:
        return work() or 0
    except Exception as error:  # noqa: BLE001 - the last resort of a process: nothing may end in 80 lines on the console
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        print(f"{type(error).__name__}: {error} (traceback: {log})", file=sys.stderr)
        return 1
