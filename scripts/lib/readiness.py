"""From a started server to one that may be measured: it lives, answers, and what it answers is language."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scripts.lib import diagnosis, gate, probe, progress
from scripts.lib.endpoint import Failure
from scripts.lib.first_answers import FirstAnswers
from scripts.lib.launch import Launch
from scripts.lib.server_process import LogWatch, ServerProcess, image_identity, last_words, pulled_identity

_POLL_S = 0.2
_TELL_EVERY_S = 15.0
_REFUSALS = 3
_HEALTH_S = 3.0
"""SGLang's /health generates a token and answers after a second at the soonest. A server that dies meanwhile closes the
connection, so its end is noticed all the same."""
_DEATH_NOTICE_S = 1.0


@dataclass(frozen=True)
class Ready:
    """A server that serves: the name of its model, how long it took, and what the manifest keeps of it. `refused` is why it
    must not be measured all the same."""

    model: str
    ready_s: float
    facts: dict[str, object]
    refused: Failure | None = None


class Started:
    """One server on its way. `process` is None for a server that somebody else runs, `log` where there is none to read."""

    def __init__(
        self,
        launch: Launch,
        base_url: str,
        log: Path | None,
        process: ServerProcess | None,
        api_key: str | None,
        say: Callable[[str], None],
    ):
        self.launch, self.base_url, self.log, self.process = launch, base_url, log, process
        self._api_key, self._say = api_key, say
        self._began = time.monotonic()
        self._watch = LogWatch(log) if log else None

    @property
    def exit_status(self) -> int | None:
        """None while the server lives, as far as can be told."""
        return self.process.exit_status if self.process else None

    def death(self, phase: str) -> Failure | None:
        """Why the server has ended; None while it lives."""
        status = self.exit_status
        return None if status is None else diagnosis.died(self.log, status, phase)

    def await_ready(self) -> Ready | Failure:
        """Ready when the process lives, health answers and one real completion came back; `refused` when the gate does not let
        the server through."""
        completion, refusals, health_s, told = None, 0, None, time.monotonic()
        while True:
            if self.exit_status is not None:
                return self.death("startup")
            if health_s is None and probe.healthy(self.base_url, self._api_key, _HEALTH_S):
                health_s = self._elapsed
            if health_s is not None and completion is None:
                completion = FirstAnswers(
                    self.base_url, self.launch.startup_limit_s, self._api_key, self.launch.gate
                )
            if completion and not completion.pending:
                if completion.tokens:
                    return self._ready(completion, health_s)
                refusals += 1
                if refusals == _REFUSALS or (
                    isinstance(completion.error, probe.Refused) and completion.error.status < 500
                ):
                    return self._refused(completion)
                completion = None
                time.sleep(1.0)
            if self._out_of_time:
                return diagnosis.stuck(self.log, self._timeout_words(health_s), "startup")
            if time.monotonic() - told > _TELL_EVERY_S:
                told = time.monotonic()
                words = last_words(self.log) if self.log else ""
                self._say(f"starting, {progress.duration(self._elapsed)}{words and f': {words}'}")
            time.sleep(_POLL_S)

    def _ready(self, first: FirstAnswers, health_s: float) -> Ready:
        ready_s = first.answered_s - self._began
        facts: dict[str, object] = {
            "base_url": self.base_url,
            "version": probe.engine_version(self.base_url, self._api_key),
            "startup": {"health_s": round(health_s, 3), "ready_s": round(ready_s, 3)},
            "gate": dict(zip(gate.QUESTIONS, first.answers, strict=False)) if self.launch.gate else None,
        }
        if self.process and self.process.container_id:
            facts |= {"container_id": self.process.container_id} | image_identity(self.process.container_id)
        if self.launch.image_file:
            facts |= pulled_identity(self.launch.image_file)
        return Ready(first.model, ready_s, facts, self._gated(first))

    def _gated(self, first: FirstAnswers) -> Failure | None:
        """Why a server that serves must not be timed; None when it may."""
        if not self.launch.gate:
            return None
        if first.error is not None:
            time.sleep(_DEATH_NOTICE_S)
            words = f"the first completion came back, a later one did not: {first.error}"
            return self.death("gate") or diagnosis.stuck(self.log, words, "gate")
        nonsense = gate.verdict(first.answers)
        if nonsense is None:
            return None
        # Not `mislabelled`: it is the server that was asked for, and it cannot be used as it is. The same launch would say
        # the same again; of a server that others run, nothing tells when it has changed.
        external = self.launch.launcher == "external"
        return Failure("infeasible", nonsense, "gate", retry=external, fix=gate.REMEDY)

    def _refused(self, completion: FirstAnswers) -> Failure:
        words = f"/health answers but the first completion failed: {completion.error}"
        return self.death("startup") or diagnosis.stuck(self.log, words, "startup")

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def _out_of_time(self) -> bool:
        # Looked at each time: it tells what is new since.
        still_s = self._watch.still_for() if self._watch else math.inf
        return self._elapsed > self.launch.startup_limit_s and still_s > self.launch.startup_stall_s

    def _timeout_words(self, health_s: float | None) -> str:
        seen = (
            "/health did not answer" if health_s is None else "/health answered but no completion came back"
        )
        still = f"; the log said nothing new for {self._watch.still_for():.0f} s" if self._watch else ""
        return (
            f"not ready after {progress.duration(self._elapsed)} ({seen}{still}); "
            "raise startup.limit_s or startup.stall_s if it needs longer"
        )
