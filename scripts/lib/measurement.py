"""What came out of one try to measure a cell, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scripts.lib.client_answers import RequestRecord
from scripts.lib.client_load import ClientLoad
from scripts.lib.endpoint import Failure
from scripts.lib.prompt_fit import ScenarioFit, off_target
from scripts.lib.surroundings import Surroundings

Window = dict[str, float | int | None]


def window(start_s: float | None = None, log_start: int | None = None) -> Window:
    """Wall-clock bounds in epoch seconds, duration, and byte offsets in the server's log; None where there is none."""
    return {"start_s": start_s, "end_s": None, "wall_s": None, "log_start": log_start, "log_end": None}


@dataclass
class Measurement:
    """Requests so far, the window and what ended it. `traits` of the scenario; `surroundings` watched the window, None before it
    began."""

    records: list[RequestRecord]
    window: Window
    metrics_before: bytes | None = None
    metrics_after: bytes | None = None
    failure: Failure | None = None
    client: ClientLoad | None = None
    fit: ScenarioFit | None = None
    traits: dict[str, object] | None = None
    salt: str | None = None
    surroundings: Surroundings | None = None
    beside: dict[str, object] | None = None
    """What a second server on the device did in the window (company.py)."""

    @classmethod
    def nothing(cls, failure: Failure | None = None) -> Measurement:
        """Before the first request, or of a cell that never sent one."""
        return cls([], window(), failure=failure)

    @property
    def measured(self) -> list[RequestRecord]:
        """Those of the measured phase."""
        return [record for record in self.records if record.phase == "measure"]

    @property
    def lossy(self) -> bool:
        """Whether so many measured requests failed (over a tenth) that another try is worth its time."""
        return 10 * sum(record.error is not None for record in self.measured) > len(self.measured)

    @property
    def words(self) -> str:
        """One line for the console."""
        if self.failure:
            return f"FAILED ({self.failure.failure_class}, {self.failure.phase}): {self.failure.cause}"
        good = [record for record in self.measured if record.error is None]
        tokens = sum(record.completion_tokens or 0 for record in good)
        wall_s = self.window["wall_s"]
        lost = len(self.measured) - len(good)
        failed = f", {lost} FAILED" if lost else ""
        return f"done, {len(good)} requests{failed} in {wall_s:.1f} s, {tokens / wall_s:.1f} tokens/s"


def wrong_length(fit: ScenarioFit | None, records: Sequence[RequestRecord]) -> Failure | None:
    """A length that was fitted but not met fails the cell: its figures would be of another scenario."""
    wrong = off_target(fit, (record.prompt_tokens for record in records))
    return None if wrong is None else Failure("infeasible", wrong, records[0].phase, retry=False)


def all_failed(records: Sequence[RequestRecord]) -> Failure:
    """The failure of a window in which nothing completed."""
    first = next((record.error for record in records if record.error), {"message": "no request was sent"})
    cause = f"0 of {len(records)} requests completed; the first error: {first['message']}"
    return Failure("request", cause, "measure", retry=True, root_line=str(first["message"]))
