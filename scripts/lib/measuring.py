"""The measuring job of one cell: wait for the turn and the server, warm up, measure, leave evidence.

Its outcome is always evidence in the store, of a measurement or of a failure, unless the run is being stopped: then the cell
stays pending. The pointer file that Snakemake owns only says where the evidence lies.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import platform
import time
import traceback
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from scripts.lib import deaths, device, probe, progress
from scripts.lib.cell import Cell
from scripts.lib.checkpoint import packaged_speculator
from scripts.lib.client import ClosedLoop, RequestRecord, Target
from scripts.lib.client_load import ClientLoad
from scripts.lib.endpoint import (
    FAILED,
    NEVER_READY,
    RESTART_REQUEST,
    Endpoint,
    Failure,
    ServerLost,
    await_settled,
)
from scripts.lib.measuring_spec import MeasureSpec
from scripts.lib.prompt_fit import CannotFit, ScenarioFit, TokenCounter, fit_scenario, off_target
from scripts.lib.provenance import versions, workflow_commit
from scripts.lib.scenario import Phase, Request, Scenario, load_scenario
from scripts.lib.store import MANIFEST, CellStore, StoreError

FORMAT = 1
_WATCH_S = 0.2
_LOG_SLACK_S = 0.3
_MAX_STARTS = 3
_DEATH_NOTICE_S = 60.0
_LAST_BREATH_S = 2.0
_PROBE_S = 10.0
_TELL_EVERY_S = 15.0
_FITS = "prompt-fits.json"


@dataclass
class Measurement:
    """What came out of a try: requests so far, the window and what ended it."""

    records: list[RequestRecord]
    window: dict[str, float | int | None]
    metrics_before: bytes | None = None
    metrics_after: bytes | None = None
    failure: Failure | None = None
    client: ClientLoad | None = None
    fit: ScenarioFit | None = None


class Measurer:
    """Measures one cell on the boot `boot_id` that `endpoint_path` describes."""

    def __init__(self, spec: MeasureSpec, endpoint_path: Path, boot_id: str):
        self.spec = spec
        self.cell = Cell.from_axes(spec.cell)
        self.store = CellStore(Path(spec.store))
        self.endpoint_path = endpoint_path
        self.boot_id = boot_id
        self.salt = spec.salt
        self.traits: dict[str, object] = {}
        counts = progress.current()
        self.number = f" {min(len(counts.cell_seconds) + 1, counts.cells)}/{counts.cells}" if counts else ""
        self.api_key = (os.environ.get(spec.api_key_name) if spec.api_key_name else None) or "none"

    def run(self) -> None:
        """Measure, or record why not. Call it with the boot's turn held.

        Raises ServerLost when the run is being stopped and StoreError when evidence cannot be written.
        """
        began = time.monotonic()
        started_at = time.time()
        scenario = self._scenario()
        self.traits = scenario.traits
        endpoint = self._server_for_this_cell()
        if endpoint.state == FAILED:
            outcome = Measurement([], _window(), failure=self._inherited(endpoint))
        else:
            outcome = self._try_and_tell(endpoint, scenario)
        self._write(outcome, endpoint, started_at)
        counts = progress.record("cell", self.cell.path, time.monotonic() - began)
        self._say(f"{_words(outcome)}{progress.time_left(counts)}")

    def _scenario(self) -> Scenario:
        """The planned scenario. Raises ServerLost when its file changed meanwhile: the evidence would carry the wrong key."""
        scenario = load_scenario(Path(self.spec.scenario_file))
        if scenario.sha256 != self.spec.scenario_sha256:
            raise ServerLost(f"{self.spec.scenario_file} changed while the run was under way; run again")
        return scenario

    def _server_for_this_cell(self) -> Endpoint:
        """A ready server, or a failed one that no new start would help this cell with."""
        endpoint = self._settled()
        while endpoint.state == FAILED and self._worth_a_restart(endpoint):
            (endpoint.meeting(self.endpoint_path) / RESTART_REQUEST).touch()
            start = endpoint.start
            while endpoint.start == start:
                time.sleep(_WATCH_S)
                endpoint = self._settled()
        return endpoint

    def _settled(self) -> Endpoint:
        return await_settled(self.endpoint_path, self.boot_id)

    def _worth_a_restart(self, endpoint: Endpoint) -> bool:
        """A server that died under another cell may well serve this one, unless that was a lack of memory at no more load."""
        if endpoint.failure.phase in NEVER_READY or endpoint.start >= _MAX_STARTS:
            return False
        return self._too_much_for(endpoint) is None

    def _too_much_for(self, endpoint: Endpoint) -> int | None:
        return deaths.too_much_for(endpoint.meeting(self.endpoint_path), self.cell)

    def _inherited(self, endpoint: Endpoint) -> Failure:
        """The server's failure as this cell's: it was not measured, and says because of what."""
        failure = endpoint.failure
        if failure.phase in NEVER_READY:
            return failure
        load = self._too_much_for(endpoint)
        if load is not None:
            return replace(
                failure, cause=f"skipped: at concurrency {load} the server died: {failure.cause}", retry=False
            )
        return replace(
            failure,
            cause=f"not measured: the server kept dying under other cells: {failure.cause}",
            retry=True,
        )

    def _try_and_tell(self, endpoint: Endpoint, scenario: Scenario) -> Measurement:
        """A fault of our own costs this cell and is tried again; it must not cost its siblings their results."""
        try:
            return self._try(endpoint, scenario)
        except (ServerLost, StoreError):
            raise
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            cause = f"the measuring job itself failed: {type(error).__name__}: {error}"
            return Measurement([], _window(), failure=Failure("unknown", cause, "measure", retry=True))

    def _try(self, endpoint: Endpoint, scenario: Scenario) -> Measurement:
        self._say(f"warming up with {self.spec.warmup_requests} requests, then {self.spec.requests} measured")
        target = Target(
            endpoint.base_url,
            endpoint.model,
            self.api_key,
            self.spec.request_timeout_s,
            self.spec.stall_timeout_s,
            self.spec.token_ids,
        )
        outcome = Measurement([], _window())
        # A server that runs on may have answered an earlier run's prompts: there every boot has its own.
        self.salt = self.spec.salt if "argv" in endpoint.facts else f"{self.spec.salt}/{endpoint.boot_id}"
        if scenario.input_tokens is not None:
            self._fit(scenario, endpoint, target, outcome)
        if outcome.failure is not None:
            return outcome
        sizes = outcome.fit.sizes if outcome.fit else None
        warmup = scenario.requests("warmup", self.spec.warmup_requests, self.salt, sizes)
        requests = scenario.requests("measure", self.spec.requests, self.salt, sizes)
        records, _ = self._phase(target, "warmup", warmup, outcome)
        outcome.records += records
        outcome.failure = outcome.failure or _wrong_length(outcome.fit, records)
        if outcome.failure is None:
            self._await_log(endpoint)
            self._measure(target, endpoint, requests, outcome)
        return outcome

    def _fit(self, scenario: Scenario, endpoint: Endpoint, target: Target, outcome: Measurement) -> None:
        """Find how much padding brings each prompt to the scenario's length on this server."""
        counts: dict[Phase, int] = {"warmup": self.spec.warmup_requests, "measure": self.spec.requests}
        counter = TokenCounter(endpoint.base_url, endpoint.model, self.api_key, scenario.chat_template_kwargs)
        kept = endpoint.meeting(self.endpoint_path) / _FITS
        try:
            outcome.fit = fit_scenario(scenario, counts, counter, kept)
        except CannotFit as error:
            outcome.failure = Failure("infeasible", str(error), "fit", retry=False)
        except probe.Unreachable as error:
            cause = f"no answer while prompts were fitted to input_tokens: {error}"
            outcome.failure = self._died_late(target, "fit") or Failure("transient", cause, "fit", retry=True)
            self._note_death(outcome.failure)

    def _measure(
        self, target: Target, endpoint: Endpoint, requests: tuple[Request, ...], outcome: Measurement
    ) -> None:
        outcome.metrics_before = probe.metrics_text(endpoint.base_url, api_key=self.api_key)
        outcome.window = _window(time.time(), _size(endpoint.log))
        records, outcome.client = self._phase(target, "measure", requests, outcome)
        outcome.records += records
        outcome.window |= outcome.client.window if outcome.client else {}
        if outcome.failure is None:
            outcome.metrics_after = probe.metrics_text(endpoint.base_url, api_key=self.api_key)
            self._await_log(endpoint)
        outcome.window["log_end"] = _size(endpoint.log)
        if outcome.failure is None and not any(record.error is None for record in records):
            outcome.failure = _all_failed(records)
        outcome.failure = outcome.failure or _wrong_length(outcome.fit, records)

    def _phase(
        self, target: Target, phase: str, requests: tuple[Request, ...], outcome: Measurement
    ) -> tuple[list[RequestRecord], ClientLoad | None]:
        """Run one phase; a server that dies meanwhile ends it at once, with nothing, and becomes the outcome's failure.

        Raises ServerLost when the serve job itself is stopped or gone.
        """

        loop = ClosedLoop(target, phase, requests, self.cell.concurrency)

        async def run() -> None:
            work = asyncio.create_task(loop.run())
            told = time.monotonic()
            while not (await asyncio.wait([work], timeout=_WATCH_S))[0]:
                # In a thread: a slow file system must not hold up the client's event loop.
                endpoint = await asyncio.to_thread(self._settled)
                if endpoint.state == FAILED and not work.done():
                    work.cancel()
                    await asyncio.wait([work])
                    outcome.failure = replace(endpoint.failure, phase=phase)
                    return
                if time.monotonic() - told > _TELL_EVERY_S:
                    told = time.monotonic()
                    self._say(f"{phase}: {loop.answered} of {len(requests)} requests answered")
            work.result()

        asyncio.run(run())
        records = loop.records()
        if outcome.failure is None and any(record.error for record in records):
            outcome.failure = self._died_late(target, phase)
        if outcome.failure:
            self._note_death(outcome.failure)
        return records, loop.load

    def _died_late(self, target: Target, phase: str) -> Failure | None:
        """Requests failed: wait until the server either answers again or is known to be dead, which takes as long as its
        processes need to go. Otherwise its death would be blamed on the next cell."""
        deadline = time.monotonic() + _DEATH_NOTICE_S
        while time.monotonic() < deadline:
            endpoint = self._settled()
            if endpoint.state == FAILED:
                return replace(endpoint.failure, phase=phase)
            if probe.answers(target.base_url, target.model, _PROBE_S, self.api_key):
                # Engines answer for a moment after the error that kills them.
                time.sleep(_LAST_BREATH_S)
                endpoint = self._settled()
                return replace(endpoint.failure, phase=phase) if endpoint.state == FAILED else None
            time.sleep(_WATCH_S)
        return None

    def _note_death(self, failure: Failure) -> None:
        meeting = Endpoint.read(self.endpoint_path).meeting(self.endpoint_path)
        deaths.note(meeting, self.cell, failure)

    def _await_log(self, endpoint: Endpoint) -> None:
        """Let the server print its periodic line, so that a phase's speculation metrics lie inside its own window."""
        if endpoint.log:
            time.sleep(endpoint.log_interval_s + _LOG_SLACK_S)

    def _write(self, outcome: Measurement, endpoint: Endpoint, started_at: float) -> None:
        with self.store.writing(self.cell, self.spec.key) as folder:
            manifest = self._manifest(outcome, endpoint, started_at)
            (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
            lines = (json.dumps(asdict(record), ensure_ascii=False) + "\n" for record in outcome.records)
            (folder / "requests.jsonl").write_text("".join(lines), encoding="utf-8")
            for name, text in (("before", outcome.metrics_before), ("after", outcome.metrics_after)):
                if text is not None:
                    (folder / f"metrics_{name}.prom").write_bytes(text)
            if endpoint.log and Path(endpoint.log).exists():
                log = Path(endpoint.log).read_bytes()[: outcome.window["log_end"]]
                (folder / "server.log.gz").write_bytes(gzip.compress(log, mtime=0))

    def _manifest(self, outcome: Measurement, endpoint: Endpoint, started_at: float) -> dict[str, object]:
        return {
            "format": FORMAT,
            "cell": self.cell.axes,
            "key": self.spec.key,
            "identity": self.spec.identity,
            "status": "failed" if outcome.failure else "measured",
            "retry": bool(outcome.failure and outcome.failure.retry) or _lossy(outcome),
            "failure": outcome.failure and outcome.failure.to_json(),
            "window": outcome.window,
            "client": outcome.client and asdict(outcome.client),
            "requests": self.spec.requests,
            "warmup_requests": self.spec.warmup_requests,
            "scenario": self.traits,
            "prompt_fit": outcome.fit and outcome.fit.to_json(),
            "checkpoint": packaged_speculator(
                self.spec.identity["model"], endpoint.facts.get("environment", {})
            ),
            "server": endpoint.facts,
            "boot": {
                "id": endpoint.boot_id,
                "start": endpoint.start,
                "model": endpoint.model,
                "log": endpoint.log,
            },
            "host": platform.node(),
            "device": device.describe(),
            "versions": versions(),
            "seeds": {"salt": self.salt},
            "workflow_commit": workflow_commit(),
            "started_at": started_at,
            "finished_at": time.time(),
        }

    def _say(self, text: str) -> None:
        label = f"{self.cell.server.label} {self.cell.scenario} c{self.cell.concurrency}"
        progress.say(f"cell{self.number}  {label}: {text}")


def _window(start_s: float | None = None, log_start: int | None = None) -> dict[str, float | int | None]:
    """Wall-clock bounds in epoch seconds, duration, and byte offsets in the server's log; None where there is none."""
    return {"start_s": start_s, "end_s": None, "wall_s": None, "log_start": log_start, "log_end": None}


def _size(log: str | None) -> int | None:
    return Path(log).stat().st_size if log and Path(log).exists() else None


def _wrong_length(fit: ScenarioFit | None, records: list[RequestRecord]) -> Failure | None:
    """A length that was fitted but not met fails the cell: its figures would be of another scenario."""
    wrong = off_target(fit, (record.prompt_tokens for record in records))
    return None if wrong is None else Failure("infeasible", wrong, records[0].phase, retry=False)


def _lossy(outcome: Measurement) -> bool:
    """Whether so many measured requests failed (over a tenth) that another try is worth its time."""
    measured = [record for record in outcome.records if record.phase == "measure"]
    return 10 * sum(record.error is not None for record in measured) > len(measured)


def _all_failed(records: list[RequestRecord]) -> Failure:
    first = next((record.error for record in records if record.error), {"message": "no request was sent"})
    cause = f"0 of {len(records)} requests completed; the first error: {first['message']}"
    return Failure("request", cause, "measure", retry=True, root_line=str(first["message"]))


def _words(outcome: Measurement) -> str:
    if outcome.failure:
        return f"FAILED ({outcome.failure.failure_class}, {outcome.failure.phase}): {outcome.failure.cause}"
    measured = [record for record in outcome.records if record.phase == "measure"]
    good = [record for record in measured if record.error is None]
    tokens = sum(record.completion_tokens or 0 for record in good)
    wall_s = outcome.window["wall_s"]
    failed = f", {len(measured) - len(good)} FAILED" if len(good) < len(measured) else ""
    return f"done, {len(good)} requests{failed} in {wall_s:.1f} s, {tokens / wall_s:.1f} tokens/s"
