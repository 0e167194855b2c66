"""What went on around a window besides the requests: the server's GPUs, and others' load on the machine.

Watching must never cost a measurement: what cannot be read is absent with its reason.
"""

from __future__ import annotations

import os

from scripts.lib import host
from scripts.lib.endpoint import Endpoint
from scripts.lib.gpu_watch import GpuWatch, NoDevice


class Surroundings:
    """Enter it just before the window opens; after the exit `host_state` and `device_watch` are what the manifest keeps of it,
    `samples` the lines of device.jsonl."""

    def __init__(self, endpoint: Endpoint):
        self._endpoint = endpoint
        self.host_state: dict[str, object] | None = None
        self.device_watch: dict[str, object] | None = None
        self.samples: list[dict[str, object]] = []

    def __enter__(self) -> Surroundings:
        self._before = self._look()
        self._gpus, self._why = self._watch()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._look()
        if self._gpus:
            self._gpus.stop()
            self.samples = list(self._gpus.samples)
        self.device_watch = self._told_of_gpus()
        self.host_state = self._told_of_host(after)

    def _look(self) -> host.Look | str:
        """The machine now, or why it cannot be looked at."""
        try:
            return host.look()
        except Exception as error:  # noqa: BLE001
            return f"the machine's load cannot be read: {type(error).__name__}: {error}"

    def _watch(self) -> tuple[GpuWatch | None, str | None]:
        server = self._server(self._before)
        if server is None:
            return None, "the server was not started here: which GPUs are its own is not known"
        try:
            facts = self._endpoint.facts
            claimed = [gpu["uuid"] for gpu in facts.get("gpus", ())]
            watch = GpuWatch(server, claimed, facts.get("environment", {}))
            watch.start()
            return watch, None
        except NoDevice as error:
            return None, str(error)
        except Exception as error:  # noqa: BLE001
            return None, f"the GPUs cannot be watched: {type(error).__name__}: {error}"

    def _server(self, *looks: host.Look | str) -> frozenset[int] | None:
        """The server's processes in any of the looks; None for a server that somebody else started."""
        if "argv" not in self._endpoint.facts:
            return None
        container_id = self._endpoint.facts.get("container_id")
        pids: frozenset[int] = frozenset()
        for moment in looks:
            if isinstance(moment, host.Look):
                pids |= host.tree(moment.processes, [self._endpoint.supervisor_pid])
                if container_id:
                    pids |= host.in_container(moment.processes, container_id)
        return pids

    def _told_of_gpus(self) -> dict[str, object]:
        if self._gpus is None:
            return {"absent": self._why}
        return {
            "absent": None,
            "gpus": self._gpus.gpus,
            "selected_by": self._gpus.selected_by,
            "foreign_processes": self._gpus.foreign,
            "broken": self._gpus.broken,
            "asking_s": self._gpus.asking_s,
        }

    def _told_of_host(self, after: host.Look | str) -> dict[str, object]:
        for moment in (self._before, after):
            if isinstance(moment, str):
                return {"absent": moment}
        server = self._server(self._before, after)
        cpus = len(os.sched_getaffinity(0))
        # The load on a second server is ours as well (company.py).
        client = host.tree(self._before.processes, [os.getpid()]) | host.tree(after.processes, [os.getpid()])
        state = host.host_state(self._before, after, server, client, cpus)
        absent = (
            None
            if server is not None
            else "the server was not started here: its load is not known from others'"
        )
        return {"absent": absent} | state
