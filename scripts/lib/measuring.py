"""The measuring job of one cell: wait for the turn and the server, warm up, measure, leave evidence.

Its outcome is always evidence in the store, of a measurement or of a failure, unless the run is being stopped: then the cell
stays pending. The pointer file that Snakemake owns only says where the evidence lies.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from scripts.lib import deaths, probe, progress
from scripts.lib.cell import Cell
from scripts.lib.client import ClosedLoop, Target
from scripts.lib.client_answers import RequestRecord
from scripts.lib.client_load import ClientLoad
from scripts.lib.company import CannotKeepBusy, Company, cannot, failure_of
from scripts.lib.endpoint import (
    FAILED,
    NEVER_READY,
    RESTART_REQUEST,
    Endpoint,
    Failure,
    ServerLost,
    await_settled,
)
from scripts.lib.evidence_writer import write_evidence
from scripts.lib.measurement import Measurement, all_failed, window, wrong_length
from scripts.lib.measuring_spec import MeasureSpec
from scripts.lib.prompt_fit import CannotFit, TokenCounter, fit_scenario
from scripts.lib.scenario import Phase, Request, Scenario, load_scenario
from scripts.lib.store import CellStore, StoreError
from scripts.lib.surroundings import Surroundings

_WATCH_S = 0.2
_LOG_SLACK_S = 0.3
_MAX_STARTS = 3
_DEATH_NOTICE_S = 60.0
_LAST_BREATH_S = 2.0
_PROBE_S = 10.0
_TELL_EVERY_S = 15.0
_FITS = "prompt-fits.json"


class Measurer:
    """Measures one cell on the boot `boot_id` that `endpoint_path` describes."""

    def __init__(self, spec: MeasureSpec, endpoint_path: Path, boot_id: str):
        self.spec = spec
        self.cell = Cell.from_axes(spec.cell)
        self.store = CellStore(Path(spec.store))
        self.endpoint_path = endpoint_path
        self.boot_id = boot_id
        self.salt = spec.salt
        self.number = progress.number("cell", self.cell.path)
        self.api_key = (os.environ.get(spec.api_key_name) if spec.api_key_name else None) or "none"

    def run(self) -> None:
        """Measure, or record why not. Call it with the boot's turn held.

        Raises ServerLost when the run is being stopped and StoreError when evidence cannot be written.
        """
        began = time.monotonic()
        started_at = time.time()
        scenario = self._scenario()
        endpoint = self._server_for_this_cell()
        failed = self._inherited(endpoint) if endpoint.state == FAILED else None
        outcome = Measurement.nothing(failed) if failed else self._try_and_tell(endpoint, scenario)
        outcome.traits, outcome.salt = scenario.traits, self.salt
        write_evidence(self.store, self.spec, outcome, endpoint, started_at)
        counts = progress.record("cell", self.cell.path, time.monotonic() - began)
        self._say(f"{outcome.words}{progress.time_left(counts)}")

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
            return Measurement.nothing(Failure("unknown", cause, "measure", retry=True))

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
        outcome = Measurement.nothing()
        # A server that runs on may have answered an earlier run's prompts: there every boot has its own.
        self.salt = self.spec.salt if "argv" in endpoint.facts else f"{self.spec.salt}/{endpoint.boot_id}"
        if scenario.input_tokens is not None:
            self._fit(scenario, endpoint, target, outcome)
        if outcome.failure is not None:
            return outcome
        sizes = outcome.fit.sizes if outcome.fit else None
        warmup = scenario.requests("warmup", self.spec.warmup_requests, self.salt, sizes)
        requests = scenario.requests("measure", self.spec.requests, self.salt, sizes)
        company = Company(
            self.spec, endpoint, self.salt, endpoint.meeting(self.endpoint_path) / f"beside-{_FITS}"
        )
        try:
            with company:
                self._warm_up_and_measure(target, endpoint, warmup, requests, outcome)
        except CannotKeepBusy as error:
            outcome.failure = cannot(error)
        outcome.beside = company.told(outcome.window)
        outcome.failure = outcome.failure or failure_of(outcome.beside)
        return outcome

    def _warm_up_and_measure(
        self,
        target: Target,
        endpoint: Endpoint,
        warmup: tuple[Request, ...],
        requests: tuple[Request, ...],
        outcome: Measurement,
    ) -> None:
        records, _ = self._phase(target, "warmup", warmup, outcome, nullcontext())
        outcome.records += records
        outcome.failure = outcome.failure or wrong_length(outcome.fit, records)
        if outcome.failure is None:
            self._await_log(endpoint)
            self._measure(target, endpoint, requests, outcome)

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
        outcome.window = window(time.time(), _size(endpoint.log))
        outcome.surroundings = Surroundings(endpoint)
        records, outcome.client = self._phase(target, "measure", requests, outcome, outcome.surroundings)
        outcome.records += records
        outcome.window |= outcome.client.window if outcome.client else {}
        if outcome.failure is None:
            outcome.metrics_after = probe.metrics_text(endpoint.base_url, api_key=self.api_key)
            self._await_log(endpoint)
        outcome.window["log_end"] = _size(endpoint.log)
        if outcome.failure is None and not any(record.error is None for record in records):
            outcome.failure = all_failed(records)
        outcome.failure = outcome.failure or wrong_length(outcome.fit, records)

    def _phase(
        self,
        target: Target,
        phase: str,
        requests: tuple[Request, ...],
        outcome: Measurement,
        watched: AbstractContextManager[object],
    ) -> tuple[list[RequestRecord], ClientLoad | None]:
        """Run one phase while it is `watched`; a server that dies meanwhile ends it at once, with nothing, and becomes the
        outcome's failure.

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

        with watched:
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

    def _say(self, text: str) -> None:
        label = f"{self.cell.server.label} {self.cell.scenario} c{self.cell.concurrency}"
        progress.say(f"cell{self.number}  {label}: {text}")


def _size(log: str | None) -> int | None:
    return Path(log).stat().st_size if log and Path(log).exists() else None
