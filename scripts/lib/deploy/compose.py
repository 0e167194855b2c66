"""A docker compose file that starts recommended servers as they were measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from scripts.lib.asked import checkpoints
from scripts.lib.cell import Server
from scripts.lib.launch import DEFAULT_HUB_CACHE, HUB_CACHE, PORT, Container, Launch

FIRST_PORT = 8000
_RESOURCES, _WORKDIR = "resources/", "/work"
_OWN = f"../../{_RESOURCES}:{_WORKDIR}/{_RESOURCES}:ro"
"""Compose counts paths of the host from the folder of its file."""
_SNAPSHOT = re.compile(r"(.*/models--[^/]+)/snapshots/")
_DOCKER = "docker://"
"""What apptainer puts before the name of an image of docker's."""
_HEADER = """# Servers as they were measured, one service each, reachable on this machine only (127.0.0.1).
# docker compose -f compose.yaml up
"""


@dataclass(frozen=True)
class Deployed:
    """A server to start. `number`: which of several equal ones, from 1. `devices` it occupies; `first_device` is its first
    one on a machine that has all of them. `launch` is None for a server that this config cannot start."""

    name: str
    server: Server
    port: int
    devices: int
    first_device: int | None
    launch: Launch | None


def compose_file(deployed: Sequence[Deployed], image: str | None) -> tuple[str, list[str]]:
    """(the file, remarks). `image` is for engines that were not measured in a container.

    A server that no container can run is left out with a remark.
    """
    services: dict[str, Any] = {}
    remarks: list[str] = []
    for one in deployed:
        launch = one.launch
        if launch is None or launch.launcher == "external":
            remarks.append(f"{one.name}: not started by this workflow, so there is no command for it.")
            continue
        container = launch.container or _container_for(image, launch)
        if container is None:
            remarks.append(
                f"{one.name}: measured without a container; name an image under recommend.image to have a service for it."
            )
            continue
        if container.image.endswith(".sif"):
            remarks.append(
                f"{one.name}: {container.image} is an image of apptainer's, which compose cannot run."
            )
            continue
        if launch.container is None:
            remarks.append(
                f"{one.name}: {image} is not what was measured: that was an installation on the machine."
            )
        services[one.name] = _service(one, launch, container)
        if container.options:
            remarks.append(
                f"{one.name}: options of docker run to be translated by hand: {' '.join(container.options)}"
            )
    comments = "".join(f"# {words}\n" for words in remarks)
    return _HEADER + comments + yaml.safe_dump({"services": services}, sort_keys=False, width=120), remarks


def _container_for(image: str | None, launch: Launch) -> Container | None:
    """For a command of the host: with the GPUs it had, with what the workflow keeps under resources/, at the same relative
    path, and with target and drafter where they are absolute paths."""
    if image is None:
        return None
    on_gpus = launch.device.gpus > 0
    own = any(_RESOURCES in part for part in launch.argv[1:])
    local = [_whole(path) for path in checkpoints(launch.argv) if path.startswith("/")]
    mounts = (*((_OWN,) if own else ()), *(f"{path}:{path}:ro" for path in dict.fromkeys(local)))
    return Container(image, "all" if on_gpus else None, "host" if on_gpus else None, mounts=mounts)


def _whole(path: str) -> str:
    """The folder that has everything of a checkpoint: files of a snapshot in the hub's cache are links to blobs beside it."""
    found = _SNAPSHOT.match(path)
    return found[1] if found else path


def _service(one: Deployed, launch: Launch, container: Container) -> dict[str, Any]:
    network = "host" if launch.launcher == "apptainer" else container.network
    host_network = network == "host"
    inside = one.port if host_network else container.port
    command = [_literal(part.replace(PORT, str(inside))) for part in arguments(launch, container)]
    service: dict[str, Any] = {
        "image": container.image.removeprefix(_DOCKER),
        "entrypoint": command[:1],
        "command": command[1:],
    }
    if _OWN in container.mounts:
        service["working_dir"] = _WORKDIR
    service["environment"] = [
        _literal(f"{name}={value}") for name, value in sorted(launch.environment.items())
    ]
    service["environment"] += (
        launch.environment_names
    )  # by name: compose takes the value from the caller's shell
    if container.mounts:
        home = f"${{HF_HOME:-{DEFAULT_HUB_CACHE}}}"
        service["volumes"] = [_literal(mount).replace(HUB_CACHE, home) for mount in container.mounts]
    if container.ipc:
        service["ipc"] = container.ipc
    if container.shm_size:
        service["shm_size"] = container.shm_size
    if network:
        service["network_mode"] = network
    if not host_network:
        service["ports"] = [f"127.0.0.1:{one.port}:{container.port}"]
    gpus = _gpus(one, container)
    if gpus:
        service["deploy"] = {"resources": {"reservations": {"devices": [gpus]}}}
    service["restart"] = "unless-stopped"
    return service


def arguments(launch: Launch, container: Container) -> list[str]:
    """The command inside `container`. A command of the host becomes `vllm serve`, since paths of the host mean nothing
    there, and listens on the container's own interface, which is published on loopback."""
    if launch.container is not None:
        return list(launch.argv)
    own = serve_command(launch)
    place = own.index("--host")
    return [*own[:place], "--host", "0.0.0.0", "--port", str(container.port)]  # noqa: S104


def serve_command(launch: Launch) -> list[str]:
    """The command as one types it: for vLLM `vllm serve MODEL ...`, whichever way it was started to be measured."""
    argv = list(launch.argv)
    if launch.engine_kind != "vllm" or argv[:2] == ["vllm", "serve"] or "--model" not in argv:
        return argv
    place = argv.index("--model")
    return ["vllm", "serve", argv[place + 1], *argv[place + 2 :]]


def _gpus(one: Deployed, container: Container) -> dict[str, Any] | None:
    wanted = container.gpus
    if wanted is None:
        return None
    devices: dict[str, Any] = {"driver": "nvidia", "capabilities": ["gpu"]}
    if container.devices:
        return devices | {"device_ids": container.devices.split(",")}
    if one.first_device is not None:
        return devices | {"device_ids": [str(one.first_device + i) for i in range(one.devices)]}
    return devices | {"count": int(wanted) if wanted.isdigit() else "all"}


def _literal(text: str) -> str:
    """Compose reads $NAME in values; $$ is a dollar sign."""
    return text.replace("$", "$$")
