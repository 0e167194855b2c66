"""The second server of a pair, seen from the measuring job: kept busy around a measurement, and what it did in the window."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from scripts.lib.beside_load import PATIENCE_S, LoadSpec
from scripts.lib.endpoint import Endpoint, Failure
from scripts.lib.measuring_spec import MeasureSpec

_ENDS_WITHIN_S = PATIENCE_S + 10.0


class CannotKeepBusy(RuntimeError):
    """The load on the second server did not begin; the message says why."""


class Company:
    """Enter it before the warm-up; after the exit `told` says what the second server did. Does nothing where there is none or it
    is to be idle. Raises CannotKeepBusy at the entry."""

    def __init__(self, spec: MeasureSpec, endpoint: Endpoint, salt: str, fits: Path):
        self._wanted = spec.beside
        self._answers: list[dict[str, object]] = []
        self._process: subprocess.Popen | None = None
        if spec.beside and spec.beside["concurrency"]:
            self._load = LoadSpec(
                base_url=endpoint.beside["base_url"],
                model=endpoint.beside["model"],
                scenario_file=spec.beside["scenario_file"],
                concurrency=spec.beside["concurrency"],
                salt=salt,
                timeout_s=spec.request_timeout_s,
                fits=str(fits),
            )

    def __enter__(self) -> Company:
        if self._wanted and self._wanted["concurrency"]:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scripts.keep_busy", "--spec", self._load.to_json()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            if self._process.stdout.readline() != "busy\n":
                self._process.wait()
                raise CannotKeepBusy(f"its load ended with status {self._process.returncode} before it began")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        try:
            text, _ = self._process.communicate(timeout=_ENDS_WITHIN_S)
            self._answers = [json.loads(line) for line in text.splitlines()]
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def told(self, window: Mapping[str, float | int | None]) -> dict[str, object] | None:
        """What the manifest keeps of the second server; None without one.

        An answer counts for the window with the share of its time that lies within it, and so do its tokens. `tps`: their sum
        by the window's length; None for an idle server and without a window.
        """
        if self._wanted is None:
            return None
        told = {name: self._wanted[name] for name in ("label", "method", "concurrency")}
        start_s, wall_s = window.get("start_s"), window.get("wall_s")
        if not told["concurrency"] or start_s is None or not wall_s:
            return told | {"tps": None, "answers": None, "failed": None, "first_error": None}
        return told | in_window(self._answers, start_s, start_s + wall_s)


def in_window(answers: list[dict[str, object]], start_s: float, end_s: float) -> dict[str, object]:
    """tps, answers (that touched the window), failed (of those) and the first error."""
    touched = [one for one in answers if one["start_s"] < end_s and one["end_s"] > start_s]
    errors = [one["error"] for one in touched if one["error"]]
    tokens = 0.0
    for one in touched:
        within = min(one["end_s"], end_s) - max(one["start_s"], start_s)
        tokens += (one["tokens"] or 0) * within / max(one["end_s"] - one["start_s"], 1e-9)
    return {
        "tps": tokens / (end_s - start_s),
        "answers": len(touched),
        "failed": len(errors),
        "first_error": errors[0] if errors else None,
    }


def failure_of(told: Mapping[str, object] | None) -> Failure | None:
    """The failure of a cell whose second server did not do what it was there for: its figures would be of an idle neighbour."""
    if not told or not told["concurrency"] or told["answers"] is None:
        return None
    if told["answers"] and not told["failed"]:
        return None
    words = f"{told['failed']} of {told['answers']} answers failed; the first error: {told['first_error']}"
    cause = words if told["answers"] else "it answered nothing in the window; give the cell more requests"
    return Failure("request", f"the server beside it was not kept busy: {cause}", "measure", retry=True)


def cannot(error: CannotKeepBusy) -> Failure:
    """The failure of a cell whose second server could not be kept busy at all."""
    failure = Failure("request", f"the server beside it was not kept busy: {error}", "warmup", retry=True)
    return replace(failure, fix="look at the cell's own log: the load says there why it ended")
