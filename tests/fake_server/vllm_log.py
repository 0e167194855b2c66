"""Lines in the shape of vLLM 0.27.1's log: process prefix, record head, uvicorn's lines, statistics."""

from __future__ import annotations

import contextlib
import os
import time

STDOUT, STDERR = 1, 2


class Log:
    """Writes whole lines straight to the descriptors, so that stdout and stderr keep their order in one file.

    `stalled` silences everything, as a server that hangs in its logger does.
    """

    def __init__(self, api_pid: int, engine_pid: int) -> None:
        self.pids = {"APIServer": api_pid, "EngineCore": engine_pid, "Worker_TP0": engine_pid + 17}
        self.stalled = False
        self._second, self._clock = -1, ""

    def record(self, process: str, level: str, where: str, message: str) -> None:
        """One record of vLLM's logger; each line of a longer message repeats the head."""
        head = f"({process} pid={self.pids[process]}) {level} {self._now()} [{where}] "
        self.write("".join(f"{head}{line}\n" for line in message.split("\n")))

    def api(self, where: str, message: str, level: str = "INFO") -> None:
        self.record("APIServer", level, where, message)

    def engine(self, where: str, message: str, level: str = "INFO") -> None:
        self.record("EngineCore", level, where, message)

    def uvicorn(self, message: str) -> None:
        self.write(f"(APIServer pid={self.pids['APIServer']}) INFO:     {message}\n")

    def raw(self, process: str, text: str) -> None:
        """What a process prints itself, such as a traceback: its prefix on every line, on stderr."""
        head = f"({process} pid={self.pids[process]}) "
        self.write("".join(f"{head}{line}\n" for line in text.split("\n")), STDERR)

    def given(self, line: str) -> None:
        """A line that a test wrote: "LEVEL file.py:12 text" becomes EngineCore's record, others stay raw."""
        level, _, rest = line.partition(" ")
        where, _, message = rest.partition(" ")
        if level in ("INFO", "WARNING", "ERROR") and message:
            self.engine(where, message, level)
        else:
            self.write(line + "\n")

    def write(self, text: str, stream: int = STDOUT) -> None:
        if self.stalled:
            return
        # A reader that went away or a full disk must not stop a server: vLLM's logger goes on too.
        with contextlib.suppress(OSError):
            os.write(stream, text.encode())

    def _now(self) -> str:
        second = int(time.time())
        if second != self._second:
            self._second, self._clock = second, time.strftime("%m-%d %H:%M:%S", time.localtime(second))
        return self._clock


class Statistics:
    """The periodic lines: sums since the last ones, with the clocks vLLM divides by."""

    def __init__(self, log: Log, now: float, _launch: object = None) -> None:
        self.interval_s = float(os.environ.get("VLLM_LOG_STATS_INTERVAL", "10"))
        self._log = log
        self._last, self._last_draft = now, now
        self._idle = True
        self._seen: dict[str, float] = {}
        self._seen_positions: list[int] = []

    def print(self, now: float, counters, running: int, waiting: int, cache_usage: float) -> None:
        """Print what happened since the last call; nothing when two intervals in a row were idle."""
        seconds = max(now - self._last, 1e-9)
        prompt = self._since("prompt", counters.prompt_tokens) / seconds
        generated = self._since("generation", counters.generation_tokens) / seconds
        self._last = now
        quiet = not (prompt or generated)
        if not (quiet and self._idle):
            preempted = self._since("preemptions", counters.preemptions)
            hits = counters.prefix_hits / counters.prefix_queries * 100 if counters.prefix_queries else 0.0
            self._log.api(
                "loggers.py:310",
                f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, "
                f"Avg generation throughput: {generated:.1f} tokens/s, "
                f"Running: {running} reqs, Waiting: {waiting} reqs, "
                + (f"Preemptions: {preempted}, " if preempted else "")
                + f"GPU KV cache usage: {cache_usage * 100:.1f}%, Prefix cache hit rate: {hits:.1f}%",
            )
        self._idle = quiet
        self._print_drafts(now, counters)

    def _print_drafts(self, now: float, counters) -> None:
        drafts = self._since("drafts", counters.drafts)
        if not drafts:
            return
        # vLLM leaves this clock alone while there is nothing to say: the first line after idle is diluted.
        seconds = max(now - self._last_draft, 1e-9)
        self._last_draft = now
        accepted = self._since("accepted", counters.accepted)
        drafted = self._since("drafted", counters.drafted)
        before = self._seen_positions or [0] * len(counters.accepted_per_position)
        rates = [
            (new - old) / drafts for new, old in zip(counters.accepted_per_position, before, strict=True)
        ]
        self._seen_positions = list(counters.accepted_per_position)
        self._log.api(
            "metrics.py:120",
            f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, "
            f"Accepted throughput: {accepted / seconds:.2f} tokens/s, "
            f"Drafted throughput: {drafted / seconds:.2f} tokens/s, "
            f"Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
            f"Per-position acceptance rate: {', '.join(f'{rate:.3f}' for rate in rates)}, "
            f"Avg Draft acceptance rate: {accepted / drafted * 100:.1f}%",
        )

    def _since(self, name: str, total: float) -> float:
        change = total - self._seen.get(name, 0)
        self._seen[name] = total
        return change
