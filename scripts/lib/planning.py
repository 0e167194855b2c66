"""What has to be done: the sweep's cells against the cell store. Asked by the Snakefile, computed once per cell.

A finished cell has no job: tables read its evidence in the store. Of a cell that is due a file is asked for that was not made
yet, the one of its next try, so Snakemake measures it whatever else it finds or remembers (docs/decisions/0004).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from scripts.lib import cluster
from scripts.lib.cell import TRY, Boot, Cell, Server
from scripts.lib.config import ConfigError
from scripts.lib.launch import DeviceRequest
from scripts.lib.measuring_spec import MeasureSpec
from scripts.lib.pointer import Pointer
from scripts.lib.progress import Work
from scripts.lib.receipts import read_receipts
from scripts.lib.store import MANIFEST, CellStore, State, key_of
from scripts.lib.sweep import Sweep


def check_targets(sweep: Sweep, targets: Iterable[str], prefix: str) -> None:
    """Refuse files of cells that cannot be, before anything is planned. `prefix` is the folder of all cells' files.

    Raises ConfigError with the nearest legal value, or with the rule that the cell breaks.
    """
    for target in targets:
        if target.startswith(prefix) and target.endswith(".json"):
            cell = sweep.cell(target.removeprefix(prefix).rpartition("/")[0])
            refused = [finding.message for finding in sweep.findings(cell) if finding.level == "infeasible"]
            if refused:
                raise ConfigError(f"{target} cannot be measured: {'; '.join(refused)}")


class Plan:
    """The sweep's cells with their keys and states, computed when asked for and then kept: jobs see what was planned.

    `cells_folder` is the folder of all cells' files, as the Snakefile writes it. `begun`, for a job on a cluster, are the paths of
    the cells to which the run that it belongs to has given a server.
    """

    def __init__(self, sweep: Sweep, cells_folder: str, begun: Iterable[str] = ()):
        self.sweep = sweep
        self.cells_folder = cells_folder
        self._begun = frozenset(begun)
        root = Path(sweep.config["store"])
        self.store = CellStore(root, read_receipts(root))
        self._identities: dict[Cell, dict[str, object]] = {}
        self._keys: dict[Cell, str] = {}
        self._states: dict[Cell, State] = {}
        self._tries: dict[Cell, int] = {}
        self.planned: set[Cell] = set()
        """Cells that a measuring job of this run was planned for."""
        self._asked_by_boot: defaultdict[Boot, set[Cell]] = defaultdict(set)
        self.asked: set[Cell] = set()
        """Those of them that are due."""

    def identity(self, cell: Cell) -> dict[str, object]:
        if cell not in self._identities:
            self._identities[cell] = self.sweep.identity(cell)
        return self._identities[cell]

    def key(self, cell: Cell) -> str:
        if cell not in self._keys:
            self._keys[cell] = key_of(self.identity(cell))
        return self._keys[cell]

    def state(self, cell: Cell) -> State:
        if cell not in self._states:
            self._states[cell] = self.store.state(cell, self.key(cell))
        return self._states[cell]

    def state_word(self, cell: Cell) -> str:
        """finished, failed or pending, for people; a failure that is tried again is pending."""
        state = self.state(cell)
        if not state.finished:
            return "pending"
        return "finished" if state is State.MEASURED else "failed"

    def infeasible(self, cell: Cell) -> list[str]:
        """Why the cell cannot run, in words; empty when nothing is known against it."""
        return [finding.message for finding in self.sweep.findings(cell) if finding.level == "infeasible"]

    def needs_server(self, cell: Cell) -> bool:
        """Whether measuring is due. Notes the cell as part of this run.

        A job that a cluster starts again keeps the shape in which it was sent: a cell that was finished meanwhile stays with the
        server's job, where it has nothing to do. Alone it would be a job of its own, and a server without cells is refused.
        """
        self.planned.add(cell)
        if self.state(cell).finished:
            return cell.path in self._begun
        self.asked.add(cell)
        self._asked_by_boot[cell.boot].add(cell)
        return True

    def folder(self, cell: Cell) -> Path:
        """Where its evidence lies or will lie."""
        return self.store.folder(cell, self.key(cell))

    def awaited(self, cell: Cell) -> str:
        """The file that is there when the cell has evidence: of a due cell its next try, of a finished one its manifest."""
        return str(self.folder(cell) / MANIFEST) if self.state(cell).finished else self.next_try(cell)

    def tried(self, cell: Cell) -> int:
        """How many tries of the cell left a file."""
        if cell not in self._tries:
            number = 0
            while Path(self._try_file(cell, number + 1)).exists():
                number += 1
            self._tries[cell] = number
        return self._tries[cell]

    def next_try(self, cell: Cell) -> str:
        """The file of the first try that left none."""
        return self._try_file(cell, self.tried(cell) + 1)

    def _try_file(self, cell: Cell, number: int) -> str:
        return f"{self.cells_folder}/{cell.path}/{TRY.format(number=number)}"

    def pointer_needs(self, cell: Cell, pointer: Path) -> list[str]:
        """What must be made before `pointer`, the file that says where the cell's evidence lies: a try, when the cell is due or
        the pointer names other evidence; nothing when only the pointer is lacking."""
        if self.state(cell).finished and (not pointer.exists() or _names(pointer, self.folder(cell))):
            return []
        return [self.next_try(cell)]

    @property
    def folders(self) -> dict[str, str]:
        """Of the sweep's feasible cells: see folders_of. Decides when tables are stale: a cell that leaves the matrix changes no
        file."""
        return self.folders_of(self.feasible)

    def folders_of(self, cells: Iterable[Cell]) -> dict[str, str]:
        """Where the evidence of each lies, by the cell's path."""
        return {cell.path: str(self.folder(cell)) for cell in cells}

    @property
    def refused(self) -> list[dict[str, object]]:
        """The sweep's infeasible cells: see refused_of."""
        return self.refused_of(self.sweep.cells)

    def refused_of(self, cells: Iterable[Cell]) -> list[dict[str, object]]:
        """The infeasible ones: {"cell": axes, "reasons": words, "synthetic": acceptance made up by the engine}."""
        return [
            {
                "cell": cell.axes,
                "reasons": reasons,
                "synthetic": self.sweep.resolved(cell.server).synthetic,
            }
            for cell in cells
            if (reasons := self.infeasible(cell))
        ]

    def asked_on(self, boot: Boot) -> list[Cell]:
        """The boot's pending cells that this run will measure; complete once the jobs are planned."""
        return sorted(self._asked_by_boot[boot])

    @property
    def asked_boots(self) -> list[Boot]:
        """Those that have pending cells."""
        return [boot for boot, cells in self._asked_by_boot.items() if cells]

    @cached_property
    def feasible(self) -> list[Cell]:
        return self.feasible_of(self.sweep.cells)

    def feasible_of(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those that nothing is known against."""
        return [cell for cell in cells if not self.infeasible(cell)]

    @property
    def requests(self) -> list[tuple[str, dict[str, str | int]]]:
        """What the server jobs of this run ask a scheduler for, each different one once, with the name of the hardware."""
        boots = sorted(self.asked_boots, key=lambda boot: boot.path)
        asked = {(boot.server.hardware, *(request := self.request(boot)).items()): request for boot in boots}
        return [(hardware, request) for (hardware, *_), request in asked.items()]

    @property
    def device_requests(self) -> dict[str, DeviceRequest]:
        """What the servers that this run starts need of their machine, by label."""
        servers = sorted({boot.server for boot in self.asked_boots}, key=lambda server: server.label)
        launches = {server.label: self.sweep.launch(server) for server in servers}
        return {label: launch.device for label, launch in launches.items() if launch.launcher != "external"}

    @property
    def uncounted(self) -> list[str]:
        """Hardware of this run whose servers need GPUs that its file does not say how to ask for; cluster.counts_gpus."""
        names = sorted({boot.server.hardware for boot in self.asked_boots if self.request(boot)["gpu"]})
        return [
            name for name in names if not cluster.counts_gpus(self.sweep.part("hardware", name, "hardware"))
        ]

    def request(self, boot: Boot) -> dict[str, str | int]:
        """Resources of a boot's job (cluster.py), its time limit in minutes included."""
        return self.sweep.request(boot.server) | {"runtime": self.runtime_minutes(boot)}

    def devices(self, boot: Boot) -> int:
        """How many of this machine's GPUs the boot's server takes. One on the CPU shares the machine with no other."""
        return self.sweep.launch(boot.server).device.gpus or cluster.WHOLE_MACHINE

    def work(self, devices: int | None) -> dict[str, Work]:
        """What this run has to do, by the boot's path. `devices`: how many of this machine's GPUs servers may use at once; None
        where jobs do not run here."""
        return {
            boot.path: Work(
                tuple(cell.path for cell in self.asked_on(boot)),
                min(self.devices(boot), devices) / devices if devices else 1.0,
            )
            for boot in self.asked_boots
        }

    def runtime_minutes(self, boot: Boot) -> int:
        """Time limit of a boot's job: start-up limit plus every cell that is to be measured at the configured estimate."""
        cells = max(1, len(self.asked_on(boot)))
        seconds = (
            self.sweep.launch(boot.server).startup_limit_s
            + cells * self.sweep.config["measurement"]["cell_limit_s"]
        )
        return math.ceil(seconds / 60)

    def priority(self, boot: Boot) -> int:
        """Higher is sooner: boots in the order of the matrix."""
        return self._priorities.get(boot, 0)

    @cached_property
    def _priorities(self) -> dict[Boot, int]:
        boots = self.sweep.boots
        return {boot: len(boots) - i for i, boot in enumerate(boots)}

    def launch_json(self, server: Server) -> str:
        return self.sweep.launch(server).to_json()

    def measure_spec(self, cell: Cell) -> MeasureSpec:
        launch = self.sweep.launch(cell.server)
        limits = self.sweep.config["measurement"]
        requests, warmup_requests = self.sweep.requests_for(cell.concurrency)
        return MeasureSpec(
            cell=cell.axes,
            key=self.key(cell),
            identity=self.identity(cell),
            store=str(self.store.root),
            scenario_file=str(self.sweep.scenario_path(cell.scenario)),
            scenario_sha256=self.sweep.scenario(cell.scenario).sha256,
            requests=requests,
            warmup_requests=warmup_requests,
            request_timeout_s=limits["request_timeout_s"],
            stall_timeout_s=limits["stall_timeout_s"],
            token_ids=True,  # vLLM and later releases of SGLang tell them, others ignore the question
            salt=f"{self.sweep.config['epoch']}/{cell.scenario}/c{cell.concurrency}",
            api_key_name=launch.api_key_name,
            beside=self._beside(cell.server),
        )

    def _beside(self, server: Server) -> dict[str, str | int] | None:
        wanted = self.sweep.resolved(server).method.beside
        if wanted is None:
            return None
        file = str(self.sweep.scenario_path(wanted.scenario))
        kind = self.sweep.resolved(server).method.kind
        return {
            "label": wanted.label,
            "method": kind,
            "scenario_file": file,
            "concurrency": wanted.concurrency,
        }


def _names(pointer: Path, folder: Path) -> bool:
    try:
        return Pointer.read(pointer).folder == str(folder)
    except ValueError:
        return False
