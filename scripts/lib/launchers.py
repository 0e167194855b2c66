"""From a Launch to the command that the guard runs. Pure: builds argument lists and environments, starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from scripts.lib.launch import PORT, Launch


@dataclass(frozen=True)
class Command:
    """What to execute. `environment` is complete; `cidfile` is where docker writes the container's id."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    cidfile: str | None = None


def command(launch: Launch, port: int, inherited: Mapping[str, str], cidfile: str, root: str) -> Command:
    """The command for `launch` on `port`. `inherited` is the caller's environment, `root` the repository.

    Raises ValueError for a launcher that starts nothing.
    """
    if launch.launcher == "process":
        environment = _inherited(launch, inherited, root) | launch.environment
        return Command(_with_port(launch.argv, port), environment)
    if launch.launcher == "docker":
        return Command(docker_run(launch, port, inherited, cidfile), dict(inherited), cidfile)
    raise ValueError(f"launcher {launch.launcher!r} starts no server")


def docker_run(launch: Launch, port: int, inherited: Mapping[str, str], cidfile: str) -> tuple[str, ...]:
    """`docker run ...`: variables listed by name are passed by name, so that no secret is ever an argument."""
    container = launch.container
    assert container is not None
    argv = ["docker", "run", "--rm", "--cidfile", cidfile]
    for option, value in (
        ("--gpus", container.gpus),
        ("--ipc", container.ipc),
        ("--shm-size", container.shm_size),
    ):
        if value is not None:
            argv += [option, value]
    if container.network is not None:
        argv += ["--network", container.network]
    if container.network != "host":
        argv += ["--publish", f"127.0.0.1:{port}:{container.port}"]
    for mount in container.mounts:
        argv += ["--volume", os.path.expanduser(mount)]
    for name, value in sorted(launch.environment.items()):
        argv += ["--env", f"{name}={value}"]
    for name in launch.environment_names:
        if name in inherited:
            argv += ["--env", name]
    inside = port if container.network == "host" else container.port
    arguments = _with_port(launch.argv, inside)
    argv += [*container.options, "--entrypoint", arguments[0], container.image, *arguments[1:]]
    return tuple(argv)


def _with_port(argv: tuple[str, ...], port: int) -> tuple[str, ...]:
    return tuple(part.replace(PORT, str(port)) for part in argv)


ENGINE_VARIABLES = ("VLLM_", "SGLANG_")


def _inherited(launch: Launch, inherited: Mapping[str, str], root: str) -> dict[str, str]:
    """The caller's environment without our PYTHONPATH entry (an engine must not import this project by accident) and without
    engine settings that the config does not name: what decides a measurement is in its identity or not there."""
    environment = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(ENGINE_VARIABLES) or name in launch.environment_names
    }
    entries = [part for part in environment.pop("PYTHONPATH", "").split(os.pathsep) if part and part != root]
    if entries:
        environment["PYTHONPATH"] = os.pathsep.join(entries)
    return environment
