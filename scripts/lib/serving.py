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

from scripts.lib import device, diagnosis, guard, probe, progress
from scripts.lib.endpoint import FAILED, READY, RESTART_REQUEST, STARTING, STOPPED, Endpoint, Failure
from scripts.lib.launch import Launch
from scripts.lib.server_process import LogWatch, ServerProcess, image_identity, last_words

_POLL_S = 0.2
_TELL_EVERY_S = 15.0
_REFUSALS = 3
_STARTS_WHEN_TRANSIENT = 2


class Stopped(BaseException):
    """The run ends: asked by signal, or the process that started this one is gone."""


def stop_on_signals() -> None:
    """From now on raise Stopped, once, in the main thread on SIGTERM, SIGINT, SIGHUP or when the parent process dies."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def handler(number: int, frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped

    for number in numbers:
        signal.signal(number, handler)
    parent = os.getppid()

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, daemon=True).start()


class FirstCompletion:
    """One real completion asked for aside, so that a server dying meanwhile is noticed at once."""

    def __init__(self, base_url: str, timeout_s: float, api_key: str | None):
        self.model: str | None = None
        self.tokens: int | None = None
        self.error: Exception | None = None
        self._arguments = (base_url, timeout_s, api_key)
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        base_url, timeout_s, api_key = self._arguments
        try:
            self.model = probe.first_model(base_url, api_key)
            self.tokens = probe.complete_once(base_url, self.model, timeout_s, api_key)
        except (OSError, RuntimeError, ValueError) as error:
            self.error = error

    @property
    def pending(self) -> bool:
        return self._thread.is_alive()


class Supervisor:
    """Runs one boot. `boot` is its path, `label` its name for people, `cells` how many cells will come, `log` the first
    start's log, `root` the repository."""

    def __init__(
        self, launch: Launch, boot: str, label: str, cells: int, endpoint_path: Path, log: Path, root: Path
    ):
        self.launch = launch
        self.boot = boot
        self.label = label
        self.endpoint_path = endpoint_path
        self.first_log = log
        self.root = root
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
            stop_on_signals()
            self._forget_earlier_boots()
            self._publish(STARTING)
            if self.launch.launcher == "external":
                self._boot_until_stopped([])
            else:
                with device.exclusive(self.launch.device, self._waiting):
                    self._boot_until_stopped(device.gpu_memory_used_mib())
        except Stopped:
            pass
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def _forget_earlier_boots(self) -> None:
        for folder in self.endpoint_path.parent.iterdir():
            if folder.is_dir():
                shutil.rmtree(folder, ignore_errors=True)

    def _boot_until_stopped(self, memory_before: list[int | None]) -> None:
        try:
            while True:
                failure = self._start()
                if failure is None:
                    self._publish(READY)
                    failure = self._await_death()
                self._tell_failure(failure)
                self._publish(FAILED, failure=failure)
                self._stop_server(memory_before)
                self._await_restart_request()
        finally:
            # Told before the server goes, so that no cell takes its end for a crash.
            self._publish(STOPPED)
            self._stop_server(memory_before)

    def _start(self) -> Failure | None:
        """Start the server, once more when the cause was transient. None when it is ready."""
        for last in range(_STARTS_WHEN_TRANSIENT):
            failure = self._start_once()
            if failure is None or failure.failure_class != "transient" or last == _STARTS_WHEN_TRANSIENT - 1:
                return failure
            self._say(f"{failure.cause}: trying once more")
            self._stop_server([])
        return failure

    def _start_once(self) -> Failure | None:
        self.began = time.monotonic()
        self.endpoint = replace(self.endpoint, start=self.endpoint.start + 1, facts={})
        if self.launch.launcher == "external":
            base_url, log = self.launch.base_url, self.launch.log_file
            self._say(f"using the server at {base_url}")
        else:
            path = self._log_of_start(self.endpoint.start)
            self.server = ServerProcess.start(self.launch, path, self.scratch, self.root)
            base_url, log = self.server.base_url, str(path)
            self._say(f"starting on port {self.server.port}; log: {log}")
        self.watch = LogWatch(Path(log)) if log else None
        self._publish(STARTING, base_url=base_url, log=log)
        return self._await_ready()

    def _log_of_start(self, start: int) -> Path:
        """Each start has a log of its own, so that an earlier crash is never read as a later cell's."""
        return self.first_log if start == 1 else self.first_log.with_stem(f"{self.first_log.stem}-{start}")

    def _await_ready(self) -> Failure | None:
        """None when the process lives, health answers and one real completion came back."""
        completion, refusals, health_s, told = None, 0, None, time.monotonic()
        while True:
            if self._exit_status is not None:
                return diagnosis.died(self._log, self._exit_status, "startup")
            if health_s is None and probe.healthy(self.endpoint.base_url, self.api_key, timeout_s=1.0):
                health_s = self._elapsed
            if health_s is not None and completion is None:
                completion = FirstCompletion(
                    self.endpoint.base_url, self.launch.startup_limit_s, self.api_key
                )
            if completion and not completion.pending:
                if completion.tokens:
                    self._ready(completion.model, health_s)
                    return None
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

    def _ready(self, model: str | None, health_s: float) -> None:
        ready_s = self._elapsed
        facts = {
            "base_url": self.endpoint.base_url,
            "startup": {"health_s": round(health_s, 3), "ready_s": round(ready_s, 3)},
            "environment": self.launch.environment,
            "environment_names": [name for name in self.launch.environment_names if name in os.environ],
        }
        if self.server:
            facts["argv"] = list(self.server.command.argv)
            if self.server.container_id:
                facts |= {"container_id": self.server.container_id} | image_identity(self.server.container_id)
        self.endpoint = replace(self.endpoint, model=model, facts=facts)
        counts = progress.record("boot", self.boot, ready_s)
        self._say(f"ready after {progress.duration(ready_s)}{progress.time_left(counts)}")

    def _refused(self, completion: FirstCompletion) -> Failure:
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

    def _stop_server(self, memory_before: list[int | None]) -> None:
        if self.server is None:
            return
        self.server.stop(self.launch.stop_grace_s)
        if not device.await_memory_free(memory_before):
            self._say("stopped, but a minute later the device's memory is still in use by somebody")
        self.server = None

    def _publish(self, state: str, failure: Failure | None = None, **changes: object) -> None:
        self.endpoint = replace(self.endpoint, state=state, failure=failure, **changes)
        self.endpoint.write(self.endpoint_path)

    def _tell_failure(self, failure: Failure) -> None:
        self._say(f"FAILED ({failure.failure_class}): {failure.cause}")
        if failure.root_line:
            self._say(f"  root cause: {failure.root_line}")
        if failure.fix:
            self._say(f"  remedy: {failure.fix}")

    def _waiting(self, holder: str) -> None:
        self._say(f"waiting for the device {self.launch.device!r}, in use by {holder}")

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
        if self._elapsed < self.launch.startup_limit_s:
            return False
        return self.watch is None or self.watch.still_for() > self.launch.startup_stall_s

    def _timeout_words(self, health_s: float | None) -> str:
        seen = (
            "/health did not answer" if health_s is None else "/health answered but no completion came back"
        )
        still = f"; the log said nothing new for {self.watch.still_for():.0f} s" if self.watch else ""
        return (
            f"not ready after {progress.duration(self._elapsed)} ({seen}{still}); "
            "raise startup.limit_s or startup.stall_s if it needs longer"
        )
