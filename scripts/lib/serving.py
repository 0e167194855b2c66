"""The serve job: one boot of a server, from the device lock to the last process gone.

It stays until Snakemake ends it (SIGTERM, after the last cell), also when the server has failed: the cells read why from the
endpoint. After a crash a cell that was not at fault asks for a new start with a `restart` file beside the endpoint.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
import uuid
from dataclasses import replace
from pathlib import Path

from scripts.lib import admission, device, guard, launchers, progress
from scripts.lib.endpoint import FAILED, READY, RESTART_REQUEST, STARTING, STOPPED, Endpoint, Failure
from scripts.lib.launch import Launch
from scripts.lib.provenance import built_facts
from scripts.lib.readiness import Started
from scripts.lib.server_process import ServerProcess, leave_nothing

_POLL_S = 0.2
_STARTS_WHEN_TRANSIENT = 2
_BESIDE = "the server beside it: "


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
        self.servers: list[Started] = []
        self.scratch = Path(device.scratch_folder())
        self.number = progress.number("boot", boot)
        self.endpoint = Endpoint(
            STARTING, uuid.uuid4().hex, cells=cells, log_interval_s=launch.log_interval_s
        ).of_this_process()

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
        named = self.launch.container and self.launch.container.devices
        usable = device.usable_gpus(named) if self.launch.device.gpus else []
        failure = admission.of_devices(self.launch.device, usable)
        if failure is not None:
            self._fail(failure)
            while True:  # until the run ends this job; its cells have read why
                time.sleep(_POLL_S)
        fit = admission.fitting(self.launch.device, usable)
        with device.claim(self.launch.device, fit, self._waiting) as self.claim:
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
        failure = admission.of_memory(self.launch.device, *device.host_memory_gib())
        if failure is not None:
            return failure
        start = self.endpoint.start + 1
        facts = {"built": built_facts(self.launch.needs), "gpus": self.claim.described}
        facts |= self._begin(self.launch, self._log_of_start(self.first_log, start))
        server = self.servers[0]
        self.endpoint = replace(self.endpoint, start=start, facts=facts)
        self._publish(STARTING, base_url=server.base_url, log=server.log and str(server.log))
        outcome = server.await_ready()
        if isinstance(outcome, Failure):
            return outcome
        self.endpoint = replace(self.endpoint, model=outcome.model, facts=facts | outcome.facts)
        failure = outcome.refused or self._start_beside(start)
        if failure is None:
            ready_s = time.monotonic() - self.began
            counts = progress.record("boot", self.boot, ready_s)
            self._say(f"ready after {progress.duration(ready_s)}{progress.time_left(counts)}")
        return failure

    def _start_beside(self, start: int) -> Failure | None:
        """Start the second server on the same device, once the first has taken its memory."""
        if self.launch.beside is None:
            return None
        self._say("now the server beside it")
        facts = self._begin(
            self.launch.beside, self._log_of_start(self.first_log.with_stem("beside"), start), "beside: "
        )
        server = self.servers[1]
        outcome = server.await_ready()
        failure = outcome if isinstance(outcome, Failure) else outcome.refused
        if failure is not None:
            return replace(failure, cause=_BESIDE + failure.cause)
        told = facts | outcome.facts | {"model": outcome.model, "log": server.log and str(server.log)}
        self.endpoint = replace(self.endpoint, beside=told)
        return None

    def _begin(self, launch: Launch, log: Path, who: str = "") -> dict[str, object]:
        """Start one server (or find it running) and keep it in `servers`; what is known of it so far."""

        def say(text: str) -> None:
            self._say(who + text)

        api_key = os.environ.get(launch.api_key_name) if launch.api_key_name else None
        facts: dict[str, object] = {
            "environment": dict(launch.environment),
            "environment_names": [name for name in launch.environment_names if name in os.environ],
        }
        if launch.launcher == "external":
            say(f"using the server at {launch.base_url}")
            theirs = Path(launch.log_file) if launch.log_file else None
            self.servers.append(Started(launch, launch.base_url, theirs, None, api_key, say))
            return facts
        process = ServerProcess.start(launch, log, self.scratch, self.root, self.claim.visible_devices)
        say(f"starting on port {process.port}; log: {log}")
        self.servers.append(Started(launch, process.base_url, log, process, api_key, say))
        # Whoever watches the server's GPUs reads there which they are.
        facts["environment"] |= launchers.visible_environment(self.claim.visible_devices)
        return facts | {"argv": list(process.command.argv)}

    @staticmethod
    def _log_of_start(first: Path, start: int) -> Path:
        """Each start has a log of its own, so that an earlier crash is never read as a later cell's."""
        return first if start == 1 else first.with_stem(f"{first.stem}-{start}")

    def _await_death(self) -> Failure:
        while True:
            for number, server in enumerate(self.servers):
                failure = server.death("measure")
                if failure is not None:
                    return replace(failure, cause=_BESIDE + failure.cause) if number else failure
            time.sleep(_POLL_S)

    def _await_restart_request(self) -> None:
        request = self.endpoint.meeting(self.endpoint_path) / RESTART_REQUEST
        while not request.exists():
            time.sleep(_POLL_S)
        request.unlink(missing_ok=True)
        self._say("starting again for the cells that were not at fault")

    def _stop_server(self) -> None:
        processes = [server.process for server in self.servers if server.process]
        for process in reversed(processes):
            process.stop(self.launch.stop_grace_s)
        self.servers.clear()
        if processes:
            leave_nothing()
            if not device.await_memory_free(self.claim.gpus):
                self._say("stopped, but a minute later the device's memory is still in use by somebody")

    def _publish(self, state: str, failure: Failure | None = None, **changes: object) -> None:
        self.endpoint = replace(self.endpoint, state=state, failure=failure, **changes)
        self.endpoint.write(self.endpoint_path)

    def _fail(self, failure: Failure) -> None:
        self._tell_failure(failure)
        self._publish(FAILED, failure=failure)

    def _tell_failure(self, failure: Failure) -> None:
        progress.record("boot", self.boot, time.monotonic() - self.began)
        self._say(f"FAILED ({failure.failure_class}): {failure.cause}")
        if failure.root_line:
            self._say(f"  root cause: {failure.root_line}")
        if failure.fix:
            self._say(f"  remedy: {failure.fix}")

    def _waiting(self, holder: str) -> None:
        self._say(f"waiting for the device, in use by {holder}")

    def _say(self, text: str) -> None:
        progress.say(f"boot{self.number}  {self.label}: {text}")
