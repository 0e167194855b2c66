"""The named parts of a server, read from config/{hardware,engines,models}: frozen and checked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from scripts.lib import config_errors
from scripts.lib.config import REPOSITORY, ConfigError, find_file, nearest, read_yaml
from scripts.lib.launch import Container
from scripts.lib.methods import METHOD_KINDS
from scripts.lib.settings import check_settings, check_words

Flags = Mapping[str, Any]

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""owner/name: a checkpoint of the hub, whose revision the server can be asked for. Anything else is a
directory.
"""


@dataclass(frozen=True)
class Drafter:
    """A second checkpoint. `block_size`: tokens a block drafter was trained to propose, None if unknown."""

    model: str
    revision: str | None = None
    block_size: int | None = None
    needs: tuple[str, ...] = ()

    @property
    def hub_revision(self) -> str | None:
        return hub_revision(self.model, self.revision)


@dataclass(frozen=True)
class Hardware:
    """config/hardware/NAME.yaml. Memory in GiB, bandwidth in GB/s; None = not known."""

    name: str
    description: str
    accelerator: str
    memory_gib: float | None
    memory_bandwidth_gb_s: float | None
    unified_memory: bool
    nvml_name: str | None
    vllm_defaults: Mapping[str, float]
    max_gpu_memory_utilization: float | None
    slurm: Mapping[str, Any]
    kubernetes: Mapping[str, str]
    flags: Flags
    environment: Mapping[str, Any]
    overrides: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Engine:
    """config/engines/NAME.yaml. `build` is the digest of the requirement files it is made from, None without
    any.
    """

    name: str
    description: str
    kind: str
    launcher: str
    version: str | None
    command: tuple[str, ...]
    container: Container | None
    base_url: str | None
    log_file: str | None
    api_key_name: str | None
    flags: Flags
    environment: Mapping[str, Any]
    environment_names: tuple[str, ...]
    overrides: tuple[Mapping[str, Any], ...]
    needs: tuple[str, ...]
    method_needs: Mapping[str, tuple[str, ...]]
    requirements: tuple[str, ...]
    build: str | None
    log_interval_s: float

    @property
    def image_folder(self) -> str | None:
        """Where the workflow puts the image that it pulls for apptainer; None where it pulls none."""
        pulled = self.launcher == "apptainer" and self.container is not None and "://" in self.container.image
        return f"resources/images/{self.name}" if pulled else None

    @property
    def image_file(self) -> str | None:
        """The image as a file, for apptainer: the one that is pulled, or the one that is named."""
        if self.launcher != "apptainer" or self.container is None:
            return None
        return f"{self.image_folder}/image.sif" if self.image_folder else self.container.image


@dataclass(frozen=True)
class Model:
    """config/models/NAME.yaml. `mtp_n_predict`: tokens its own head predicts in one pass; `has_mtp` whether
    it has one.
    """

    name: str
    description: str
    target: str
    revision: str | None
    context_length: int | None
    facts: Mapping[str, Any]
    has_mtp: bool
    mtp_n_predict: int | None
    drafters: Mapping[str, Drafter]
    needs: tuple[str, ...]
    flags: Flags
    environment: Mapping[str, Any]
    overrides: tuple[Mapping[str, Any], ...]

    @property
    def hub_revision(self) -> str | None:
        return hub_revision(self.target, self.revision)


def hub_revision(checkpoint: str, revision: str | None) -> str | None:
    """The revision to ask the hub for; of a directory it is only a label of the build that made it."""
    return revision if HUB_NAME.fullmatch(checkpoint) else None


Part = TypeVar("Part", Hardware, Engine, Model)


def load_hardware(name: str, config_dirs: Sequence[Path], where: str = "hardware") -> Hardware:
    """Raises ConfigError for a file that is missing or wrong, naming it."""
    return _part(Hardware, name, _read("hardware", name, config_dirs, where))


def load_engine(name: str, config_dirs: Sequence[Path], where: str = "engine") -> Engine:
    """Raises ConfigError for a file that is missing or wrong, naming it."""
    path, data = _read("engine", name, config_dirs, where)
    _check_launcher(data, str(path))
    for method in data["method_needs"]:
        if method not in METHOD_KINDS:
            raise ConfigError(f"{path}: method_needs: {method!r} is no method{nearest(method, METHOD_KINDS)}")
    container = data["container"]
    if container is not None:
        container = Container(
            **container | {"mounts": tuple(container["mounts"]), "options": tuple(container["options"])}
        )
    extra = {
        "container": container,
        "method_needs": {method: tuple(files) for method, files in data["method_needs"].items()},
        "build": _build_digest(data["requirements"], str(path)),
    }
    return _part(Engine, name, (path, data | extra))


def load_model(name: str, config_dirs: Sequence[Path], where: str = "model") -> Model:
    """Raises ConfigError for a file that is missing or wrong, naming it."""
    path, data = _read("model", name, config_dirs, where)
    mtp = data.pop("mtp")
    drafters = {
        method: Drafter(**entry | {"needs": tuple(entry["needs"])})
        for method, entry in data["drafters"].items()
    }
    extra = {
        "has_mtp": mtp is not None,
        "mtp_n_predict": None if mtp is None else mtp["n_predict"],
        "drafters": drafters,
    }
    return _part(Model, name, (path, data | extra))


def _read(kind: str, name: str, config_dirs: Sequence[Path], where: str) -> tuple[Path, dict[str, Any]]:
    path = find_file(kind, name, config_dirs, where)
    data = config_errors.check(read_yaml(path), kind, str(path))
    check_settings(data, f"{path}: ")
    return path, data


def _part(cls: type[Part], name: str, source: tuple[Path, dict[str, Any]]) -> Part:
    data = source[1] | {"name": name}
    values = {field.name: data[field.name] for field in fields(cls)}
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def _check_launcher(data: Mapping[str, Any], source: str) -> None:
    launcher = data["launcher"]
    wanted = {
        "process": ("command",),
        "docker": ("command", "container"),
        "apptainer": ("command", "container"),
        "external": ("base_url",),
    }[launcher]
    unused = {
        "process": ("container", "base_url"),
        "docker": ("base_url",),
        "apptainer": ("base_url",),
        "external": ("command", "container"),
    }
    for key in wanted:
        if not data[key]:
            raise ConfigError(f"{source}: the key {key!r} is missing; the launcher {launcher!r} needs it")
    for key in unused[launcher]:
        if data[key]:
            raise ConfigError(
                f"{source}: {key}: the launcher {launcher!r} does not use it; remove one of the two"
            )
    check_words(data["command"], f"{source}: command")
    check_words((data["container"] or {}).get("options", ()), f"{source}: container.options")
    if data["base_url"] is not None and _may_hold_a_secret(data["base_url"]):
        raise ConfigError(
            f"{source}: base_url: must be scheme, host, port and path alone, since it is written into evidence and tables; put a "
            "key or password into an environment variable and name that under api_key_name"
        )
    for key in ("ipc", "network", "shm_size") if launcher == "apptainer" else ():
        if data["container"][key]:
            raise ConfigError(f"{source}: container.{key}: apptainer uses the host's; remove this key")
    if launcher != "external" and not any("{model}" in part for part in data["command"]):
        raise ConfigError(f"{source}: command: has no {{model}}; write it where the target's name belongs")


def _may_hold_a_secret(base_url: str) -> bool:
    return any(mark in base_url for mark in "@?#")


def _build_digest(requirements: Sequence[str], source: str) -> str | None:
    """SHA-256 over the effective lines of the requirement files: a comment there changes no engine."""
    if not requirements:
        return None
    digest = hashlib.sha256()
    for name in requirements:
        path = REPOSITORY / name
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{source}: requirements: {name} cannot be read ({error})") from None
        effective = (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines)
        digest.update("\n".join(line for line in effective if line).encode() + b"\0")
    return digest.hexdigest()
