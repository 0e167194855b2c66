"""The planned sweep: every cell with its launch, its feasibility and what identifies it.

Planning only: files under config/ are read, nothing is started, and no clock or network is used.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scripts.lib import beside, cluster, config_errors, feasibility, others, parts
from scripts.lib.cell import BASELINE, Boot, Cell, Server
from scripts.lib.config import ConfigError, find_file, nearest
from scripts.lib.device_request import device_request
from scripts.lib.engines import KINDS
from scripts.lib.feasibility import Finding
from scripts.lib.identity import server_identity
from scripts.lib.launch import Launch
from scripts.lib.matrix import expand
from scripts.lib.methods import METHOD_KINDS, Method, read_methods
from scripts.lib.recommend.wishes import check_wishes
from scripts.lib.resolve import Resolved, resolve
from scripts.lib.scenario import Scenario, load_scenario
from scripts.lib.settings import check_settings
from scripts.lib.unheard import unheard_names


@dataclass(frozen=True)
class Sweep:
    """All cells of a config in measurement order, and everything planning knows about them.

    Also answers for cells outside the matrix (see `cell`), so that any file of the grammar can be asked for.
    """

    config: Mapping[str, Any]
    config_dirs: tuple[Path, ...]
    methods: Mapping[str, Method]
    cells: tuple[Cell, ...]
    warnings: tuple[str, ...]
    _cache: dict[tuple[str, Any], Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def servers(self) -> tuple[Server, ...]:
        return tuple(dict.fromkeys(cell.server for cell in self.cells))

    @property
    def other_records(self) -> list[str]:
        """Records tables of other runs, to be shown beside this one's."""
        return self._cached("others", None, lambda _: others.other_records(self.config))

    @property
    def imports(self) -> list[tuple[str, dict[str, Any]]]:
        """(file, axes) of everything that another tool measured."""
        return self._cached("imports", None, lambda _: others.imports(self.config))

    @property
    def boots(self) -> tuple[Boot, ...]:
        return tuple(dict.fromkeys(cell.boot for cell in self.cells))

    def cell(self, path: str) -> Cell:
        """The cell of a path, in the matrix or not. Raises ConfigError with the nearest legal value."""
        try:
            cell = Cell.from_path(path)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        server = cell.server
        method = self._method(server.method, path)
        for axis in ("max_model_len", "concurrency", "repeat"):
            if cell.axes[axis] < 1:
                raise ConfigError(f"{path}: {axis} is {cell.axes[axis]}; the smallest legal value is 1")
        if method.kind == BASELINE and server.k != 0:
            raise ConfigError(f"{path}: {server.method} is the baseline and has k0, not k{server.k}")
        if method.kind != BASELINE and server.k == 0:
            raise ConfigError(f"{path}: {server.method} needs k1 or more; the baseline is {BASELINE}/k0")
        self.part("hardware", server.hardware, path)
        self.part("engine", server.engine, path)
        self.part("model", server.model, path)
        self.scenario(cell.scenario)
        return cell

    def resolved(self, server: Server) -> Resolved:
        """The merged flags, environment and speculative config of a server."""
        return self._cached("resolved", server, self._resolve)

    def launch(self, server: Server) -> Launch:
        """What the serve job needs to start the server."""
        return self._cached("launch", server, self._launch)

    def request(self, server: Server) -> dict[str, str | int]:
        """What a batch job that runs this server asks its scheduler for (cluster.py), the time limit aside."""
        return cluster.request(self.resolved(server).hardware, self.launch(server).device.gpus)

    def build_request(self, file: str) -> dict[str, str | int]:
        """The same for a job that builds `file`: on the kind of machine whose servers need it, without a GPU.

        What only other builds need goes where the first of the servers that need any build runs.
        """
        builders = [server for server in self.servers if self.launch(server).needs]
        users = [server for server in builders if file in self.launch(server).needs]
        machines = [self.part("hardware", server.hardware, "hardware") for server in (*users, *builders)]
        return (cluster.request(machines[0], 0) if machines else {}) | {"runtime": cluster.BUILD_MINUTES}

    def scenario(self, name: str) -> Scenario:
        return self._cached("scenario", name, lambda name: load_scenario(self.scenario_path(name)))

    def scenario_path(self, name: str) -> Path:
        """The file to give to load_scenario. Raises ConfigError with the nearest existing name."""
        return find_file("scenario", name, self.config_dirs, "config: scenario")

    def requests_for(self, concurrency: int) -> tuple[int, int]:
        """Numbers of measured and of warm-up requests of a cell at this concurrency."""
        counts = self.config["measurement"]
        measure = max(counts["min_requests"], counts["requests_per_worker"] * concurrency)
        warmup = max(counts["min_warmup_requests"], counts["warmup_requests_per_worker"] * concurrency)
        return measure, warmup

    def findings(self, cell: Cell) -> tuple[Finding, ...]:
        """What the feasibility rules say about a cell; a cell with an infeasible finding must not be
        started.
        """
        resolved, scenario = self.resolved(cell.server), self.scenario(cell.scenario)
        return (
            *self.server_findings(cell.server),
            *feasibility.check_cell(resolved, scenario, cell.concurrency),
        )

    def server_findings(self, server: Server) -> tuple[Finding, ...]:
        """What the rules say about a server, whatever the scenario and the concurrency."""
        return self._cached("findings", server, self._server_findings)

    def companion(self, server: Server) -> Resolved | None:
        """The second server on the same device; None for a server that has it to itself."""
        return self._cached("companion", server, self._companion)

    def identity(self, cell: Cell) -> dict[str, Any]:
        """JSON components that decide a cell's outcome, by name; equal identities share evidence."""
        server = self._cached("identity", cell.server, self._server_identity)
        measure, warmup = self.requests_for(cell.concurrency)
        return server | {
            "scenario": self._cached("sha256", cell.scenario, lambda name: self.scenario(name).sha256),
            "concurrency": cell.concurrency,
            "requests": {"measure": measure, "warmup": warmup},
            "repeat": cell.repeat,
        }

    def _cached(self, kind: str, key: Any, make: Any) -> Any:
        if (kind, key) not in self._cache:
            self._cache[kind, key] = make(key)
        return self._cache[kind, key]

    def _method(self, name: str, where: str) -> Method:
        if name in self.methods:
            return self.methods[name]
        if name in METHOD_KINDS:
            return Method(name, name, (), {}, {}, {})
        known = dict.fromkeys((*self.methods, *METHOD_KINDS))
        raise ConfigError(f"{where}: there is no method {name!r}{nearest(name, known)}")

    def part(self, kind: str, name: str, where: str) -> Any:
        """A named hardware, engine or model. Raises ConfigError for a file that is missing or wrong."""
        load = {"hardware": parts.load_hardware, "engine": parts.load_engine, "model": parts.load_model}[kind]
        return self._cached(kind, name, lambda name: load(name, self.config_dirs, where))

    def _resolve(self, server: Server) -> Resolved:
        return resolve(
            server,
            self.part("hardware", server.hardware, "hardware"),
            self.part("engine", server.engine, "engine"),
            self.part("model", server.model, "model"),
            self._method(server.method, "method"),
            self.config["overrides"],
        )

    def _companion(self, server: Server) -> Resolved | None:
        wanted = self._method(server.method, "method").beside
        if wanted is None:
            return None
        return beside.companion(server, wanted, self.part, self.config["overrides"])

    def _server_findings(self, server: Server) -> tuple[Finding, ...]:
        resolved, companion = self.resolved(server), self.companion(server)
        own = feasibility.check_server(resolved)
        return own if companion is None else (*own, *beside.findings(resolved, companion))

    def _server_identity(self, server: Server) -> dict[str, Any]:
        resolved, launch, epoch = self.resolved(server), self.launch(server), str(self.config["epoch"])
        own = server_identity(resolved, launch, epoch)
        companion, wanted = self.companion(server), resolved.method.beside
        if companion is None or wanted is None:
            return own
        second = server_identity(companion, launch.beside, epoch)
        return own | {"beside": beside.identity(second, wanted, self.scenario(wanted.scenario).sha256)}

    def _launch(self, server: Server) -> Launch:
        resolved, companion = self.resolved(server), self.companion(server)
        launch = self._launch_of(resolved)
        if companion is None:
            return launch
        return beside.together(launch, self._launch_of(companion), beside.shared_device(resolved, companion))

    def _launch_of(self, resolved: Resolved) -> Launch:
        engine, startup = resolved.engine, self.config["startup"]
        external = engine.launcher == "external"
        return Launch(
            engine_kind=engine.kind,
            launcher=engine.launcher,
            argv=() if external else KINDS[engine.kind].argv(resolved),
            environment={} if external else dict(sorted(KINDS[engine.kind].environment(resolved).items())),
            environment_names=engine.environment_names,
            container=engine.container,
            image_file=engine.image_file,
            base_url=_api_url(engine.base_url),
            log_file=engine.log_file,
            api_key_name=engine.api_key_name,
            device=device_request(resolved),
            startup_limit_s=float(startup["limit_s"]),
            startup_stall_s=float(startup["stall_s"]),
            stop_grace_s=float(self.config["stop_grace_s"]),
            log_interval_s=float(engine.log_interval_s),
            needs=() if external else resolved.needs,
            gate=self.config["gate"],
        )


def load_sweep(config: Mapping[str, Any], config_dirs: Sequence[Path]) -> Sweep:
    """Plan the sweep that `config` describes; `config_dirs` are searched in order for named files.

    Raises ConfigError (one line: place, problem, nearest legal value) for anything the user has to change.
    """
    checked = config_errors.check(config, "config", "config")
    checked["store"] = os.path.expanduser(checked["store"])
    check_settings({"overrides": checked["overrides"]}, "config: ")
    methods = read_methods(checked["method"])
    matrix = expand(checked, methods, may_be_empty=others.has_others(checked))
    sweep = Sweep(
        config=checked,
        config_dirs=tuple(Path(folder) for folder in config_dirs),
        methods={method.name: method for method in methods},
        cells=matrix.cells,
        warnings=tuple(
            f"config: {warning}" for warning in (*matrix.warnings, *_store_warnings(checked["store"]))
        ),
    )
    _load_parts(sweep)
    if not (sweep.other_records or sweep.imports):  # whose machines and scenarios only the tables know
        check_wishes(checked["recommend"], sweep.cells)
    unheard = unheard_names(_named_parts(sweep), sweep.methods, sweep.config_dirs)
    return replace(sweep, warnings=(*sweep.warnings, *unheard, *_repeat_warnings(sweep)))


def _load_parts(sweep: Sweep) -> None:
    """Read every named file now, so that a mistake in one of them shows before anything starts."""
    servers = sweep.servers
    _ = sweep.other_records, sweep.imports
    _ = [*_named_parts(sweep)]
    for name in dict.fromkeys(cell.scenario for cell in sweep.cells):
        sweep.scenario(name)
    for server in servers:
        if sweep.companion(server) is not None:
            sweep.scenario(sweep.resolved(server).method.beside.scenario)
    for name, count in Counter(server.engine for server in servers).items():
        _check_engine(sweep.part("engine", name, "config: engine"), count)


def _named_parts(sweep: Sweep) -> Iterator[tuple[str, str, Any]]:
    """(axis, name, part) of every hardware, engine and model of the sweep."""
    for axis in ("hardware", "engine", "model"):
        for name in dict.fromkeys(getattr(server, axis) for server in sweep.servers):
            yield axis, name, sweep.part(axis, name, f"config: {axis}")


def _repeat_warnings(sweep: Sweep) -> Iterator[str]:
    for name in dict.fromkeys(cell.server.engine for cell in sweep.cells if cell.repeat > 1):
        if sweep.part("engine", name, "config: engine").launcher == "external":
            yield (
                f"config: repeats: {name} is not restarted between repeats as other servers are: intervals and verdicts "
                "show the noise within one boot alone"
            )


def _check_engine(engine: parts.Engine, servers: int) -> None:
    if engine.launcher == "external" and servers > 1:
        raise ConfigError(
            f"config: engine: {engine.name} is one running server, but the matrix has {servers} server "
            "configurations for it; leave one, and give other servers engine files of their own"
        )


def _store_warnings(store: str) -> list[str]:
    if Path(store).parts[:1] != ("results",):
        return []
    return [f"store: {store} is in results/; whoever deletes that to rebuild tables loses every measurement"]


def _api_url(base_url: str | None) -> str | None:
    """The address that clients are given, which ends in /v1 whether or not the file spells it out."""
    return None if base_url is None else base_url.rstrip("/").removesuffix("/v1") + "/v1"
