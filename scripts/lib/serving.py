"""The serve job: one boot of a server, from the device lock to the last process gone.

It stays until Snakemake ends it (SIGTERM, after the last cell), also when the server has failed: the cells read why from the
endpoint. After a crash a cell that was not at fault asks for a new start with a `restart` file beside the endpoint.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

from scripts.lib import admission, device, diagnosis, gate, guard, launchers, probe, progress
from scripts.lib.endpoint import FAILED, READY, RESTART_REQUEST, STARTING, STOPPED, Endpoint, Failure
from scripts.lib.first_answers import FirstAnswers
from scripts.lib.launch import Launch
from scripts.lib.provenance import built_facts
from scripts.lib.server_process import LogWatch, ServerProcess, image_identity, last_words, pulled_identity

_POLL_S = 0.2
_TELL_EVERY_S = 15.0
_REFUSALS = 3
_HEALTH_S = 3.0
"""SGLang's /health generates a token and answers after a second at the soonest. A server that dies meanwhile closes the
connection, so its end is noticed all the same."""
_DEATH_NOTICE_S = 1.0
_STARTS_WHEN_TRANSIENT = 2


class Stopped(BaseException):
    """The run ends: asked by signal, or the process that started this one is gone."""


def stop_on_signals(parent: int) -> None:
    """From now on raise Stopped, once, in the main thread on SIGTERM, SIGINT, SIGHUP or when the process `parent` is not the
    parent (any more): it is told by whoever starts this one, since it may be gone before this looks."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    told = False

    def handler(number: int, frame: object) -> None:
        nonlocal told
        if not told:
            told = True
            raise Stopped

    for number in numbers:
        signal.signal(number, handler)

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, daemon=True).start()


class Supervisor:
    """Runs one boot. `boot` is its path, `label` its name for people, `cells` how many cells will come, `log` the first
    start's log, `root` the repository, `parent` the process that this one ends with."""

    def __init__(
        self,
        launch: Launch,
        boot: str,
        label: str,
        cells: int,
        endpoint_path: Path,
        log: Path,
        root: Path,
        parent: int,
    ):
        self.launch = launch
        self.boot = boot
        self.label = label
        self.endpoint_path = endpoint_path
        self.first_log = log
        self.root = root
        self.parent = parent
        self.claim = device.Claim()
        self.began = time.monotonic()
        self.server: ServerProcess | None = None
        self.watch: LogWatch | None = None
        self.scratch = Path(device.scratch_folder())
        counts = progress.current()
        self.number = f" {min(len(counts.boot_seconds) + 1, counts.boots)}/{counts.boots}" if counts else ""
        self.endpoint = Endpoint(
            STARTING, uuid.uuid4().hex, cells=cells, log_interval_s=launch.log_interval_s
        ).of_this_process()
        self.api_key = os.environ.get(launch.api_key_name) if launch.api_key_name else None

    def run(self) -> None:
        """Serve until stopped. Raises OSError only for what no run could survive (unwritable folders)."""
        guard.prctl(guard.PR_SET_CHILD_SUBREAPER, 1)
        try:
            stop_on_signals(self.parent)
            self._forget_earlier_boots()
            self._publish(STARTING)
            if self.launch.launcher == "external":
                # A device too: two sweeps must not measure on it at the same time.
                with device.exclusive([f"external {self.launch.base_url}"], 1, self._waiting):
                    self._boot_until_stopped()
            else:
                self._serve_on_this_machine()
        except Stopped:
            pass
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _serve_on_this_machine(self) -> None:
        usable = device.usable_gpus() if self.launch.device.gpus else []
        failure = admission.of_devices(self.launch.device, usable)
        if failure is not None:
            self._fail(failure)
            while True:  # until the run ends this job; its cells have read why
                time.sleep(_POLL_S)
        with device.claim(self.launch.device, usable, self._waiting) as self.claim:
            self._boot_until_stopped()

    def _forget_earlier_boots(self) -> None:
        for folder in self.endpoint_path.parent.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)

    def _boot_until_stopped(self) -> None:
        try:
            while True:
                failure = self._start()
                if failure is None:
                    self._publish(READY)
                    failure = self._await_death()
                self._fail(failure)
                self._stop_server()
                self._await_restart_request()
        finally:
            try:
                # Told before the server goes, so that no cell takes its end for a crash.
                self._publish(STOPPED)
            finally:
                self._stop_server()

    def _start(self) -> Failure | None:
        """Start the server, once more when the cause was transient. None when it is ready."""
        for last in range(_STARTS_WHEN_TRANSIENT):
            failure = self._start_once()
            if failure is None or failure.failure_class != "transient" or last == _STARTS_WHEN_TRANSIENT - 1:
                return failure
            self._say(f"{failure.cause}: trying once more")
            self._stop_server()
        return failure

    def _start_once(self) -> Failure | None:
        self.began = time.monotonic()
        facts = {
            "environment": dict(self.launch.environment),
            "environment_names": [name for name in self.launch.environment_names if name in os.environ],
            "built": built_facts(self.launch.needs),
        }
        if self.launch.launcher == "external":
            base_url, log = self.launch.base_url, self.launch.log_file
            self._say(f"using the server at {base_url}")
            self.endpoint = replace(self.endpoint, start=self.endpoint.start + 1, facts=facts)
        else:
            failure = admission.of_memory(self.launch.device, *device.host_memory_gib())
            if failure is not None:
                return failure
            path = self._log_of_start(self.endpoint.start + 1)
            self.server = ServerProcess.start(
                self.launch, path, self.scratch, self.root, self.claim.visible_devices
            )
            # Whoever watches the server's GPUs reads there which they are.
            facts["environment"] |= launchers.visible_environment(self.claim.visible_devices)
            facts["gpus"] = [
                {"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name} for gpu in self.claim.gpus
            ]
            base_url, log = self.server.base_url, str(path)
            facts["argv"] = list(self.server.command.argv)
            self.endpoint = replace(self.endpoint, start=self.endpoint.start + 1, facts=facts)
            self._say(f"starting on port {self.server.port}; log: {log}")
        self.watch = LogWatch(Path(log)) if log else None
        self._publish(STARTING, base_url=base_url, log=log)
        return self._await_ready()

    def _log_of_start(self, start: int) -> Path:
        """Each start has a log of its own, so that an earlier crash is never read as a later cell's."""
        return self.first_log if start == 1 else self.first_log.with_stem(f"{self.first_log.stem}-{start}")

    def _await_ready(self) -> Failure | None:
        """None when the process lives, health answers, one real completion came back and the gate lets the server through."""
        completion, refusals, health_s, told = None, 0, None, time.monotonic()
        while True:
            if self._exit_status is not None:
                return diagnosis.died(self._log, self._exit_status, "startup")
            if health_s is None and probe.healthy(self.endpoint.base_url, self.api_key, _HEALTH_S):
                health_s = self._elapsed
            if health_s is not None and completion is None:
                completion = FirstAnswers(
                    self.endpoint.base_url, self.launch.startup_limit_s, self.api_key, self.launch.gate
                )
            if completion and not completion.pending:
                if completion.tokens:
                    return self._served(completion, health_s)
                refusals += 1
                if refusals == _REFUSALS or (
                    isinstance(completion.error, probe.Refused) and completion.error.status < 500
                ):
                    return self._refused(completion)
                completion = None
                time.sleep(1.0)
            if self._out_of_time:
                return diagnosis.stuck(self._log, self._timeout_words(health_s), "startup")
            if time.monotonic() - told > _TELL_EVERY_S:
                told = time.monotonic()
                self._say(
                    f"starting, {progress.duration(self._elapsed)}: {last_words(self._log) if self._log else ''}"
                )
            time.sleep(_POLL_S)

    def _served(self, first: FirstAnswers, health_s: float) -> Failure | None:
        """Note what is known of the server now; None when the gate lets it through as well."""
        ready_s = first.answered_s - self.began
        facts = self.endpoint.facts | {
            "base_url": self.endpoint.base_url,
            "version": probe.engine_version(self.endpoint.base_url, self.api_key),
            "startup": {"health_s": round(health_s, 3), "ready_s": round(ready_s, 3)},
            "gate": dict(zip(gate.QUESTIONS, first.answers, strict=False)) if self.launch.gate else None,
        }
        if self.server and self.server.container_id:
            facts |= {"container_id": self.server.container_id} | image_identity(self.server.container_id)
        if self.launch.image_file:
            facts |= pulled_identity(self.launch.image_file)
        self.endpoint = replace(self.endpoint, model=first.model, facts=facts)
        failure = self._gate(first)
        if failure is None:
            counts = progress.record("boot", self.boot, ready_s)
            self._say(f"ready after {progress.duration(ready_s)}{progress.time_left(counts)}")
        return failure

    def _gate(self, first: FirstAnswers) -> Failure | None:
        """Why a server that serves must not be timed; None when it may."""
        if not self.launch.gate:
            return None
        if first.error is not None:
            time.sleep(_DEATH_NOTICE_S)
            if self._exit_status is not None:
                return diagnosis.died(self._log, self._exit_status, "gate")
            words = f"the first completion came back, a later one did not: {first.error}"
            return diagnosis.stuck(self._log, words, "gate")
        nonsense = gate.verdict(first.answers)
        if nonsense is None:
            return None
        # Not `mislabelled`: it is the server that was asked for, and it cannot be used as it is. The same launch would say
        # the same again; of a server that others run, nothing tells when it has changed.
        external = self.launch.launcher == "external"
        return Failure("infeasible", nonsense, "gate", retry=external, fix=gate.REMEDY)

    def _refused(self, completion: FirstAnswers) -> Failure:
        if self._exit_status is not None:
            return diagnosis.died(self._log, self._exit_status, "startup")
        words = f"/health answers but the first completion failed: {completion.error}"
        return diagnosis.stuck(self._log, words, "startup")

    def _await_death(self) -> Failure:
        while self._exit_status is None:
            time.sleep(_POLL_S)
        return diagnosis.died(self._log, self._exit_status, "measure")

    def _await_restart_request(self) -> None:
        request = self.endpoint.meeting(self.endpoint_path) / RESTART_REQUEST
        while not request.exists():
            time.sleep(_POLL_S)
        request.unlink(missing_ok=True)
        self._say("starting again for the cells that were not at fault")

    def _stop_server(self) -> None:
        if self.server is None:
            return
        self.server.stop(self.launch.stop_grace_s)
        if not device.await_memory_free(self.claim.gpus):
            self._say("stopped, but a minute later the device's memory is still in use by somebody")
        self.server = None

    def _publish(self, state: str, failure: Failure | None = None, **changes: object) -> None:
        self.endpoint = replace(self.endpoint, state=state, failure=failure, **changes)
        self.endpoint.write(self.endpoint_path)

    def _fail(self, failure: Failure) -> None:
        self._tell_failure(failure)
        self._publish(FAILED, failure=failure)

    def _tell_failure(self, failure: Failure) -> None:
        progress.record("boot", self.boot, self._elapsed)
        self._say(f"FAILED ({failure.failure_class}): {failure.cause}")
        if failure.root_line:
            self._say(f"  root cause: {failure.root_line}")
        if failure.fix:
            self._say(f"  remedy: {failure.fix}")

    def _waiting(self, holder: str) -> None:
        self._say(f"waiting for the device, in use by {holder}")

    def _say(self, text: str) -> None:
        progress.say(f"boot{self.number}  {self.label}: {text}")

    @property
    def _log(self) -> Path | None:
        return Path(self.endpoint.log) if self.endpoint.log else None

    @property
    def _exit_status(self) -> int | None:
        return self.server.exit_status if self.server else None

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self.began

    @property
    def _out_of_time(self) -> bool:
        still_s = (
            self.watch.still_for() if self.watch else math.inf
        )  # looked at each time: it tells what is new since
        return self._elapsed > self.launch.startup_limit_s and still_s > self.launch.startup_stall_s

    def _timeout_words(self, health_s: float | None) -> str:
        seen = (
            "/health did not answer" if health_s is None else "/health answered but no completion came back"
        )
        still = f"; the log said nothing new for {self.watch.still_for():.0f} s" if self.watch else ""
        return (
            f"not ready after {progress.duration(self._elapsed)} ({seen}{still}); "
            "raise startup.limit_s or startup.stall_s if it needs longer"
        )
