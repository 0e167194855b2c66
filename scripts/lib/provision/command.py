"""Run a long command with its output in a log and a line on the console every few seconds, so that a user sees it live."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.lib import guard, progress
from scripts.lib.jobs import run_job

REPORT_EVERY_S = 10.0
_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1


class ProvisionError(RuntimeError):
    """Something cannot be built; the message says why and what the user can do."""


def provide(work: Callable[[], None], log: Path) -> int:
    """Run `work`, a rule's whole job, and return its exit status; a ProvisionError becomes one line on the console."""

    def told() -> int:
        try:
            work()
        except ProvisionError as error:
            progress.say(str(error))
            return 1
        return 0

    return run_job(told, log)


def run(
    command: Sequence[str],
    log: Path,
    label: str,
    status: Callable[[str], str],
    environment: Mapping[str, str] | None = None,
    report_every_s: float = REPORT_EVERY_S,
) -> tuple[int, str]:
    """Run `command` to its end; return its exit status and its output (stdout and stderr in order, also appended to `log`).

    Every `report_every_s` seconds one console line says `label`, `status(output so far)` and the time taken. However this
    process ends, the command and its children end with it. Raises ProvisionError if the command cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        begin = file.tell()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            raise ProvisionError(f"{command[0]} cannot be started: {error.strerror}") from error
    started = reported = time.monotonic()
    with _terminable():
        try:
            while process.poll() is None:
                now = time.monotonic()
                if now - reported >= report_every_s:
                    reported = now
                    progress.say(
                        f"{label}: {status(_output(log, begin))}; {progress.duration(now - started)}"
                    )
                time.sleep(_POLL_S)
        finally:
            _end(process)
    return process.returncode, _output(log, begin)


def _output(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        return file.read().decode("utf-8", "replace")


def _die_with_parent() -> None:
    guard.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM raises SystemExit inside, so that `finally` clauses run."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
