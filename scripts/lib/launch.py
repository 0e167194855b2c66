"""What it takes to start one server: the contract between planning (which builds it) and serving (which runs it).

A Launch is plain data and round-trips through JSON, because it travels from the Snakefile to the serve job as one argument.
It holds no secret: variables such as HF_TOKEN are listed by name and read from the environment by the serve job.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass, field

PORT = "{port}"
"""Placeholder in argv: the port is chosen at start and must not decide a cell's identity."""


HUB_CACHE, DEFAULT_HUB_CACHE = "{hf_home}", "~/.cache/huggingface"
"""Placeholder in mounts: the caller's HF_HOME, and what it is where HF_HOME is not set."""


@dataclass(frozen=True)
class Container:
    """How docker or apptainer runs an image. `mounts` are `source:target[:options]`, HUB_CACHE being a source too; `options` go to
    `docker run` or `apptainer exec` verbatim. apptainer uses the host's network and shared memory; any `gpus` are all that are visible."""

    image: str
    gpus: str | None = None
    ipc: str | None = None
    network: str | None = None
    shm_size: str | None = None
    mounts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    port: int = 8000
    """Port inside the container when `network` is not host."""

    @property
    def devices(self) -> str | None:
        """The devices that `gpus` names itself, as a list with commas; None for all, a number of them or none."""
        words = (self.gpus or "").strip("\"'")
        return words.removeprefix("device=") if words.startswith("device=") else None


@dataclass(frozen=True)
class DeviceRequest:
    """What a server needs of the machine it starts on; looked at there, before the start.

    `gpus`: how many it runs on (tensor, pipeline and data parallel ranks), 0 for a server on the CPU. `nvml_name`: what each
    one's name must contain as a word. `memory_share`: the share of its memory that the server takes for itself. None: not known.
    """

    hardware: str = "cpu"
    gpus: int = 0
    nvml_name: str | None = None
    unified_memory: bool = False
    memory_share: float | None = None


@dataclass(frozen=True)
class Launch:
    """One server start. `argv` is the engine's command line (inside the container if there is one) with PORT for the port.

    `engine_kind`: vllm | sglang. `launcher`: process | docker | apptainer | external. For `external` argv is empty and `base_url` names
    the running server, `log_file` optionally its log. Times in seconds.
    """

    engine_kind: str
    launcher: str
    argv: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    environment_names: tuple[str, ...] = ()
    container: Container | None = None
    image_file: str | None = None
    """The image as a file, for apptainer."""
    base_url: str | None = None
    log_file: str | None = None
    api_key_name: str | None = None
    device: DeviceRequest = DeviceRequest()
    startup_limit_s: float = 1200.0
    """A start-up that takes longer is given up, unless the log has moved in the last `startup_stall_s`."""
    startup_stall_s: float = 300.0
    stop_grace_s: float = 20.0
    log_interval_s: float = 10.0
    """How often the server prints its periodic metrics line; the measuring side waits this long to see the last one."""
    needs: tuple[str, ...] = ()
    """Files of the project that must exist before the start (engine environment, built models)."""
    gate: bool = True
    """Refuse a server whose first answers are no language."""
    beside: Launch | None = None
    """A second server, started after this one on the same device and stopped before it; its own device is not looked at."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Launch:
        return cls._from(json.loads(text))

    @classmethod
    def _from(cls, data: dict) -> Launch:
        container, device = data.pop("container"), DeviceRequest(**data.pop("device"))
        if container is not None:
            container = Container(
                **{**container, "mounts": tuple(container["mounts"]), "options": tuple(container["options"])}
            )
        for name in ("argv", "environment_names", "needs"):
            data[name] = tuple(data[name])
        beside = data.pop("beside")
        beside = beside and cls._from(beside)
        return cls(container=container, device=device, beside=beside, **data)

    def command_line(self, port: int = 8000) -> str:
        """The engine command as a user would type it (quoted for a POSIX shell)."""
        return shlex.join(part.replace(PORT, str(port)) for part in self.argv)
