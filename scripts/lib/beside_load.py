"""The load that the second server of a pair is kept under while the first is measured. Runs as a process of its own, so that it
takes nothing from the measuring client but processor time (python -m scripts.keep_busy).
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import openai

from scripts.lib.prompt_fit import TokenCounter, fit_scenario
from scripts.lib.scenario import Request, Scenario, Sizes, load_scenario

_ROUND = 4
"""Requests a worker and round: each round has nonces of its own."""
_PAUSE_AFTER_ERROR_S = 0.2
PATIENCE_S = 30.0


@dataclass(frozen=True)
class LoadSpec:
    """What the process is told, as JSON. `fits`: where it notes how long its prompts came out. Times in seconds."""

    base_url: str
    model: str
    scenario_file: str
    concurrency: int
    salt: str
    timeout_s: float
    fits: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Answer:
    """One answer: when it was asked for and when it ended, in seconds since the epoch; `error` in place of `tokens` when it
    failed."""

    start_s: float
    end_s: float
    tokens: int | None
    error: str | None = None


class BusyServer:
    """Keeps `concurrency` requests on their way until `stop`. Raises at once what a scenario that cannot be read or fitted raises."""

    def __init__(self, spec: LoadSpec):
        self._spec = spec
        scenario = load_scenario(Path(spec.scenario_file))
        self._requests = _endless(scenario, _sizes(scenario, spec), spec)
        self._lock, self._over = threading.Lock(), threading.Event()
        self._answers: list[Answer] = []
        self._asked = threading.Semaphore(0)
        self._client = openai.OpenAI(
            base_url=spec.base_url,
            api_key="none",
            max_retries=0,
            timeout=spec.timeout_s,
            http_client=openai.DefaultHttpxClient(trust_env=False),
        )
        self._workers = [threading.Thread(target=self._work, daemon=True) for _ in range(spec.concurrency)]

    def start(self) -> None:
        """Return when every worker has sent its first request."""
        for worker in self._workers:
            worker.start()
        for _ in self._workers:
            self._asked.acquire()

    def stop(self) -> list[Answer]:
        """Ask for no more, and all answers; those that are on their way for another PATIENCE_S are left out."""
        self._over.set()
        deadline = time.monotonic() + PATIENCE_S
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            return list(self._answers)

    def _work(self) -> None:
        first = True
        while not self._over.is_set():
            with self._lock:
                request = next(self._requests)
            began = time.time()
            if first:
                self._asked.release()
                first = False
            answer = self._ask(request, began)
            with self._lock:
                self._answers.append(answer)
            if answer.error:
                time.sleep(_PAUSE_AFTER_ERROR_S)

    def _ask(self, request: Request, began: float) -> Answer:
        try:
            answer = self._client.chat.completions.create(model=self._spec.model, **request.body)
        except openai.OpenAIError as error:
            return Answer(began, time.time(), None, f"{type(error).__name__}: {error}"[:300])
        return Answer(began, time.time(), answer.usage.completion_tokens if answer.usage else None)


def _endless(scenario: Scenario, sizes: Sizes | None, spec: LoadSpec) -> Iterator[Request]:
    for number in itertools.count():
        salt = f"{spec.salt}/beside/{number}"
        yield from scenario.requests("measure", _ROUND * spec.concurrency, salt, sizes)


def _sizes(scenario: Scenario, spec: LoadSpec) -> Sizes | None:
    """How much padding the prompts need on this server; None where the scenario asks for no length."""
    if scenario.input_tokens is None:
        return None
    counter = TokenCounter(spec.base_url, spec.model, "none", scenario.chat_template_kwargs)
    counts = {"measure": _ROUND * spec.concurrency}
    return fit_scenario(scenario, counts, counter, Path(spec.fits)).sizes
