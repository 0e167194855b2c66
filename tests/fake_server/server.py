"""One boot, from the command line to the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys

from .acceptance import Acceptance
from .api import Api
from .cli import VERSION, Launch, UsageError, parse_launch
from .dialects import DIALECTS
from .drafting import Drafting
from .engine import Engine
from .faults import Faults
from .precise import PreciseLoop
from .settings import Settings, SettingsError, load_settings
from .web import Connection

# A child is named by its arguments, lives in a session of its own and ignores SIGTERM, as vLLM's EngineCore
# does. The alarm is for the machine's sake: a forgotten one ends after ten minutes.
_CHILD = "import signal; signal.alarm(600); signal.pause()"
_LOG_EVERY_S = 0.2


def _ignore_sigterm() -> None:
    # Before exec, so that there is no moment in which a child would still die of it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def main(argv: list[str]) -> int:
    """Serve until told to stop; the exit code."""
    if argv == ["--version"]:
        print(VERSION)
        return 0
    try:
        launch = parse_launch(argv)
        settings = load_settings(os.environ, launch.method, launch.k)
        max_model_len = launch.max_model_len or settings.model_max_len
        faults = Faults(settings.faults, launch.method, launch.k, max_model_len)
        Acceptance(settings.acceptance, launch.k)
    except UsageError as error:
        print(f"usage: vllm serve [model_tag] [options]\nvllm serve: error: {error}", file=sys.stderr)
        return 2
    except (SettingsError, ValueError) as error:
        print(f"FAKE_SERVER: {error}", file=sys.stderr)
        return 2
    boot = Boot(launch, settings, faults, max_model_len)
    with asyncio.Runner(loop_factory=PreciseLoop) as runner:
        return runner.run(boot.run())


class Boot:
    """The life of one server process."""

    def __init__(self, launch: Launch, settings: Settings, faults: Faults, max_model_len: int) -> None:
        self._launch, self._settings, self._faults = launch, settings, faults
        self._max_model_len = max_model_len
        self._children: list[subprocess.Popen] = []
        self._dialect = DIALECTS[launch.engine]
        self._says, self._failures = self._dialect.startup, self._dialect.failures
        self._log = self._dialect.log(os.getpid(), os.getpid() + 17)
        self._ending = False

    async def run(self) -> int:
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._catch_signals(self._stop_starting)
        self._says.banner(self._log, self._launch)
        listener = self._bind()
        if listener is None:
            self._failures.port_in_use(self._log)
            return 1
        self._start_children(listener.getsockname()[1])
        work = asyncio.create_task(self._start_and_serve(listener))
        work.add_done_callback(self._report_own_failure)
        try:
            return await self._exit
        finally:
            work.cancel()
            listener.close()

    def _report_own_failure(self, task: asyncio.Task) -> None:
        if not task.cancelled() and (error := task.exception()):
            print(f"the fake server itself failed: {error!r}", file=sys.stderr)
            self._end(70)

    async def _start_and_serve(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        if not await self._start_up():
            return
        launch, settings = self._launch, self._settings
        drafting = Drafting(launch.k, settings, launch.k_by_running, self._settings_for)
        self._engine = Engine(settings, launch.k, launch.max_num_seqs, launch.prefix_caching, drafting)
        self._api = Api(
            self._launch,
            self._settings,
            self._faults,
            self._engine,
            self._log,
            self._max_model_len,
            self._die,
        )
        stuck = self._faults.at_boot("never_ready")
        self._api.ready = stuck is None
        await loop.create_server(
            lambda: Connection(loop, self._api.handle, self._log.uvicorn), sock=listener, backlog=2048
        )
        if stuck is not None:
            await self._never_ready(stuck)
        self._says.serving(self._log, self._settings, self._launch.host, listener.getsockname()[1])
        self._catch_signals(lambda: asyncio.ensure_future(self._shut_down()))
        if not self._launch.flag("disable_log_stats"):
            await self._print_statistics()

    def _settings_for(self, k: int) -> Settings:
        return load_settings(os.environ, self._launch.method if k else "none", k)

    async def _start_up(self) -> bool:
        """From the banner to the listening port; False when the boot ends here."""
        log, settings, length = self._log, self._settings, self._max_model_len
        wrong = self._faults.at_boot("wrong_k")
        self._says.configuration(
            log, self._launch, settings, length, wrong["k_reported"] if wrong else self._launch.k
        )
        death = self._faults.at_boot("die_at_start")
        if death:
            await asyncio.sleep(death["after_s"])
            self._die_at_start(death)
            return False
        await asyncio.sleep(settings.startup_s / 2)
        slow = self._faults.at_boot("slow_start")
        if slow:
            await self._wait(slow["s"], slow["log"])
        self._says.weights(log, self._launch, settings)
        await asyncio.sleep(settings.startup_s / 2)
        if length > settings.kv_cache_tokens:
            self._failures.cache_too_small(log, length, settings.kv_cache_tokens, settings.kv_available_gib)
            self._end(1)
            return False
        self._says.memory(log, self._launch, settings, length)
        return True

    def _die_at_start(self, death: dict) -> None:
        if death["file"]:
            with open(death["file"], encoding="utf-8", errors="replace") as file:
                self._log.write(file.read())
        else:
            self._failures.death_at_start(self._log, death["cause"] or self._failures.DEFAULT_START_CAUSE)
        self._end(death["exit_code"])

    async def _wait(self, seconds: float, moving: bool) -> None:
        """Let time pass, the log moving with a progress bar or not at all."""
        steps = max(1, round(seconds / _LOG_EVERY_S))
        for step in range(steps):
            if moving:
                self._says.shards(self._log, step, steps)
            await asyncio.sleep(seconds / steps)

    async def _never_ready(self, stuck: dict) -> None:
        while True:
            await asyncio.sleep(_LOG_EVERY_S)
            if stuck["log"]:
                self._log.engine(
                    "shm_broadcast.py:802",
                    "No available shared memory broadcast block found in 60 seconds. This typically happens "
                    "when some processes are hanging or doing some time-consuming work (e.g. compilation).",
                )

    async def _print_statistics(self) -> None:
        loop = asyncio.get_running_loop()
        statistics = self._dialect.statistics(self._log, loop.time(), self._launch)
        while not self._ending:
            await asyncio.sleep(statistics.interval_s)
            gauges = self._engine.gauges()
            statistics.print(
                loop.time(), self._engine.counters, gauges.running, gauges.waiting, gauges.cache_usage
            )

    def _bind(self) -> socket.socket | None:
        """The bound socket, not yet listening; None when the port is taken."""
        if self._faults.at_boot("port_busy") is not None:
            return None
        family = socket.AF_INET6 if ":" in self._launch.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._launch.host, self._launch.port))
        except OSError:
            listener.close()
            return None
        return listener

    def _start_children(self, port: int) -> None:
        names = [f"port={port}", f"parent={os.getpid()}"]
        for number in range(self._settings.engine_processes):
            name = "VLLM::EngineCore" if number == 0 else f"VLLM::Worker_TP{number - 1}"
            argv = [sys.executable, "-S", "-E", "-c", _CHILD, name, *names]
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_ignore_sigterm
            )
            self._children.append(child)
        if self._children:
            self._log.pids["EngineCore"] = self._children[0].pid

    def _catch_signals(self, handler) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, handler)
        if self._faults.at_boot("ignore_sigterm") is not None:
            loop.remove_signal_handler(signal.SIGTERM)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def _stop_starting(self) -> None:
        self._end(128 + signal.SIGTERM)

    async def _shut_down(self) -> None:
        """The orderly end after a signal. A second signal changes nothing, as in vLLM."""
        if self._ending:
            return
        self._ending = True
        log = self._log
        self._says.shutdown_begins(log)
        slow = self._faults.at_boot("slow_shutdown")
        if slow:
            await asyncio.sleep(slow["s"])
        self._engine.die()
        self._says.engine_stopped(log)
        if self._settings.shutdown_error:
            self._failures.engine_dead(log)
        self._says.http_stops(log)
        self._says.uvicorn_stops(log)
        self._end(0)

    def _die(self, kind: str, params: dict) -> None:
        """The engine dies under a request: all in flight get an error, the server ends a little later."""
        if params.get("how") == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        self._ending = True
        cause = self._failures.OUT_OF_MEMORY if kind == "oom_at_concurrency" else params["cause"]
        self._failures.death_at_run(self._log, cause or self._failures.DEFAULT_RUN_CAUSE)
        self._engine.die()
        asyncio.get_running_loop().call_later(params["grace_s"], self._end_after_death, params["exit_code"])

    def _end_after_death(self, exit_code: int) -> None:
        self._says.uvicorn_stops(self._log, finished=True)
        self._says.engine_stops(self._log)
        self._says.engine_stopped(self._log)
        self._end(exit_code)

    def _end(self, exit_code: int) -> None:
        """Leave with this code; a negative one is a signal to itself."""
        if self._faults.at_boot("leave_children") is None:
            for child in self._children:
                child.kill()
                child.wait()
        if exit_code < 0:
            os.kill(os.getpid(), -exit_code)
        if not self._exit.done():
            self._exit.set_result(exit_code)
