"""Lines in the shape of SGLang 0.5.15's log: a bracketed clock before every record, uvicorn's included, and batch lines."""

from __future__ import annotations

import time

from .vllm_log import Log


class SglangLog(Log):
    """SGLang names neither level nor process; what others print on their own has no head."""

    def record(self, process: str, level: str, where: str, message: str) -> None:
        self.write(f"[{self._now()}] {message}\n")

    def say(self, message: str) -> None:
        self.record("", "", "", message)

    def uvicorn(self, message: str) -> None:
        self.say(f"INFO:     {message}")

    def raw(self, process: str, text: str) -> None:
        self.write(text + "\n")

    def _now(self) -> str:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        return self._clock


class Batches:
    """Decode lines, one in every `decode_log_interval` steps of the scheduler. Nothing is printed for the rest at the end of a
    load: there the log of a real SGLang is silent too."""

    interval_s = 0.02
    """How often somebody looks whether a line is due."""

    def __init__(self, log: SglangLog, now: float, launch) -> None:
        self._log, self._last = log, now
        self._every = int(str(launch.flag("decode_log_interval", 40)))
        self._k = launch.k
        self._tokens = self._steps = 0

    def print(self, now: float, counters, running: int, waiting: int, cache_usage: float) -> None:
        tokens, steps = counters.generation_tokens - counters.prefills, counters.decode_steps
        if not running or steps - self._steps < self._every * running:
            return
        fresh, taken = tokens - self._tokens, steps - self._steps
        length = fresh / taken
        accepted = f"accept len: {length:.2f}, accept rate: {(length - 1) / self._k:.2f}, " if self._k else ""
        self._log.say(
            f"Decode batch, #running-req: {running}, #token: {tokens}, token usage: {cache_usage:.2f}, {accepted}"
            f"cuda graph: True, gen throughput (token/s): {fresh / max(now - self._last, 1e-9):.2f}, #queue-req: {waiting}"
        )
        self._tokens, self._steps, self._last = tokens, steps, now
