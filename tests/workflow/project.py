"""A scratch project for workflow tests: its own config folder, a fake engine of known truth, the real Snakefile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import polars as pl
import yaml

ROOT = Path(__file__).parents[2]
FAKE_SERVER = ROOT / "tests" / "fake_server"

TRUTH = {
    "ttft_s": 0.02,
    "step_s": 0.004,
    "acceptance": {"none": 0, "default": [0.8, 0.5, 0.25]},
    "kv_cache_tokens": 90112,
    "engine_processes": 1,
}
MATRIX = {
    "hardware": ["sim"],
    "engine": ["fake"],
    "model": ["toy"],
    "method": [{"name": "none"}, {"name": "mtp", "k": [3]}],
    "max_model_len": [1024],
    "scenario": ["short"],
    "concurrency": [1, 4],
    "measurement": {
        "requests_per_worker": 2, "min_requests": 4, "min_warmup_requests": 1, "request_timeout_s": 20, "stall_timeout_s": 2,
    },
    "startup": {"limit_s": 20, "stall_s": 5},
    "stop_grace_s": 2,
}  # fmt: skip


CELLS_ALONE = "results/tables/cells.parquet"
"""A `target` where it matters what was measured, and no table of the end: a third of a run's time."""


class Project:
    """A working directory in which snakemake runs against the repository's Snakefile."""

    def __init__(self, folder: Path, matrix: dict | None = None, truth: dict | None = None):
        self.folder = folder
        self.marker = f"project-{uuid.uuid4().hex}"
        self.locks = folder
        self.target = "tables"
        self.matrix = json.loads(json.dumps(MATRIX | (matrix or {})))
        self.truth = TRUTH | (truth or {})
        for name in ("engines", "hardware", "models", "scenarios"):
            (folder / "config" / name).mkdir(parents=True)
        self.write("config/hardware/sim.yaml", {"description": "simulated", "accelerator": "cpu"})
        self.write(
            "config/models/toy.yaml",
            {"description": "toy", "target": "toy", "context_length": 8192, "mtp": {"n_predict": 1}},
        )
        scenario = {
            "description": "two prompts",
            "prompts": {"a": "Write an LRU cache in Python.", "b": "Merge these intervals."},
            "warmup_prompts": {"w": "Say something kind to a colleague."},
            "output": {"max_tokens": 33, "ignore_eos": True},
        }
        self.write("config/scenarios/short.yaml", scenario)
        self.engine()
        self.save()

    def engine(self, **changes: object) -> None:
        """(Re)write the fake engine; keyword arguments change its file."""
        command = [sys.executable, "-S", "-E", str(FAKE_SERVER), "serve", "{model}"]
        engine = {
            "description": "fake server of known truth",
            "kind": "vllm",
            "launcher": "process",
            "version": "0.27.1",
            "command": command,
            "environment": {"VLLM_LOG_STATS_INTERVAL": "0.2"},
            "environment_names": ["FAKE_SERVER_FILE"],
            "log_interval_s": 0.2,
        }
        self.write("config/engines/fake.yaml", engine | changes)

    def save(self, **changes: object) -> None:
        """Write config.yaml and the fake server's settings; keyword arguments change the matrix for good."""
        self.matrix |= changes
        self.write("config/config.yaml", self.matrix)
        (self.folder / "truth.json").write_text(json.dumps(self.truth))

    def faults(self, *faults: dict) -> None:
        """Give the fake server these faults from its next start on (no part of any cell's identity)."""
        self.truth = self.truth | {"faults": list(faults)}
        self.save()

    def write(self, name: str, data: object) -> None:
        (self.folder / name).write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "MARKER": self.marker,
            "FAKE_SERVER_FILE": str(self.folder / "truth.json"),
            "SPECDEC_LOCK_DIR": str(self.locks),
        }

    def command(self, *arguments: str) -> list[str]:
        snakefile, profile = ROOT / "Snakefile", ROOT / "profiles" / "default"
        # What a sweep ends with beyond its tables has tests of its own, and takes as long as all the rest.
        targets = () if arguments and not arguments[0].startswith("-") else (self.target,)
        options = [
            "--snakefile",
            str(snakefile),
            "--workflow-profile",
            str(profile),
            "--cores",
            "1",
            "--latency-wait",
            "10",
        ]
        return [sys.executable, "-m", "snakemake", *targets, *options, *arguments]

    def start(self, *arguments: str) -> subprocess.Popen:
        """Snakemake in the background, in a session of its own, with its output in `console`."""
        with (self.folder / "console").open("wb") as console:
            return subprocess.Popen(
                self.command(*arguments),
                cwd=self.folder,
                env=self.environment,
                stdout=console,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def run(self, *arguments: str, status: int | None = 0, limit_s: float = 300) -> str:
        """Run snakemake to its end; returns its output and checks its exit status (None: any)."""
        process = self.start(*arguments)
        try:
            process.wait(limit_s)
        finally:
            process.kill()
        output = self.console
        assert status is None or process.returncode == status, output
        return output

    @property
    def console(self) -> str:
        return (self.folder / "console").read_text(encoding="utf-8", errors="replace")

    @property
    def starts(self) -> list[str]:
        """Lines of the last run's console that announce a start."""
        return [line for line in self.console.splitlines() if ": starting on port" in line]

    @property
    def measured(self) -> list[str]:
        """Labels of the cells measured by the last run, in order, e.g. `mtp k3 c4`."""
        lines = [line for line in self.console.splitlines() if ": done, " in line]
        return [
            " ".join(line.split(" toy ")[1].split(": done")[0].replace("short ", "").split())
            for line in lines
        ]

    def cells(self) -> pl.DataFrame:
        return pl.read_parquet(self.folder / "results/tables/cells.parquet")

    def cell(self, method: str, concurrency: int, **axes: object) -> dict:
        rows = self.cells().filter(method=method, concurrency=concurrency, **axes)
        assert len(rows) == 1
        return rows.row(0, named=True)

    def evidence(self, method: str, k: int, concurrency: int) -> Path:
        """The evidence folder of a cell, by its pointer."""
        path = f"results/cells/sim/fake/toy/{method}/k{k}/len1024/short/c{concurrency}/r1/evidence.json"
        return self.folder / json.loads((self.folder / path).read_text())["folder"]
