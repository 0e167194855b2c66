"""From a Launch to the command that the guard runs. Pure: builds argument lists and environments, starts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from scripts.lib.launch import DEFAULT_HUB_CACHE, HUB_CACHE, PORT, Container, Launch


@dataclass(frozen=True)
class Command:
    """What to execute. `environment` is complete; `cidfile` is where docker writes the container's id."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    cidfile: str | None = None


def command(
    launch: Launch,
    port: int,
    inherited: Mapping[str, str],
    cidfile: str,
    root: str,
    visible_devices: str | None = None,
) -> Command:
    """The command for `launch` on `port`. `inherited` is the caller's environment, `root` the repository; of the machine's GPUs
    the server sees `visible_devices` (a list as in CUDA_VISIBLE_DEVICES), all for None.

    Raises ValueError for a launcher that starts nothing.
    """
    if launch.launcher == "process":
        environment = (
            _inherited(launch, inherited, root) | visible_environment(visible_devices) | launch.environment
        )
        return Command(_with_port(launch.argv, port), environment)
    if launch.launcher == "docker":
        return Command(
            docker_run(launch, port, inherited, cidfile, visible_devices), dict(inherited), cidfile
        )
    if launch.launcher == "apptainer":
        inside = apptainer_environment(launch, inherited, root, visible_devices)
        return Command(apptainer_exec(launch, port, inherited), inside)
    raise ValueError(f"launcher {launch.launcher!r} starts no server")


def typed(launch: Launch, port: int = 8000) -> tuple[dict[str, str], tuple[str, ...]]:
    """What somebody would type to start the same server: variables to set and the words of the command.

    Variables that are passed on by name are taken from the shell, as in a run. Raises ValueError as `command` does.
    """
    named = dict.fromkeys(launch.environment_names, "")
    made = command(launch, port, named, "", "")
    variables = {
        name: value
        for name, value in made.environment.items()
        if named.get(name.removeprefix(_INTO_APPTAINER)) != value
    }
    return dict(sorted(variables.items())), made.argv


def docker_run(
    launch: Launch,
    port: int,
    inherited: Mapping[str, str],
    cidfile: str,
    visible_devices: str | None = None,
) -> tuple[str, ...]:
    """`docker run ...`: variables listed by name are passed by name, so that no secret is ever an argument."""
    container = launch.container
    assert container is not None
    argv = ["docker", "run", "--rm", *(("--cidfile", cidfile) if cidfile else ())]
    for option, value in (
        ("--gpus", _docker_gpus(container, visible_devices)),
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
        argv += ["--volume", mounted(mount, inherited)]
    for name, value in sorted(launch.environment.items()):
        argv += ["--env", f"{name}={value}"]
    for name in _passed_on(launch, inherited):
        argv += ["--env", name]
    inside = port if container.network == "host" else container.port
    arguments = _with_port(launch.argv, inside)
    argv += [*container.options, "--entrypoint", arguments[0], container.image, *arguments[1:]]
    return tuple(argv)


_INTO_APPTAINER = "APPTAINERENV_"
_OTHER_SETTINGS = ("APPTAINERENV_", "APPTAINER_BIND", "SINGULARITYENV_", "SINGULARITY_BIND")


def apptainer_exec(launch: Launch, port: int, inherited: Mapping[str, str]) -> tuple[str, ...]:
    """`apptainer exec ...`: the engine's own process under ours, in the host's network. No variable is an argument: see
    apptainer_environment."""
    container = launch.container
    assert container is not None
    assert launch.image_file is not None
    argv = ["apptainer", "exec", "--cleanenv", "--writable-tmpfs"]
    if container.gpus is not None:
        argv.append("--nv")
    for mount in container.mounts:
        argv += ["--bind", mounted(mount, inherited)]
    return (*argv, *container.options, launch.image_file, *_with_port(launch.argv, port))


def apptainer_environment(
    launch: Launch, inherited: Mapping[str, str], root: str, visible_devices: str | None
) -> dict[str, str]:
    """The environment of apptainer itself, in which everything for the container has a prefix. --cleanenv keeps out the rest,
    and python's packages in the user's home are not for the container's python."""
    outside = {
        name: value
        for name, value in _inherited(launch, inherited, root).items()
        if not name.startswith(_OTHER_SETTINGS)
    }
    given = {
        name: inherited[name] for name in (*_passed_on(launch, inherited), *_GPU_CHOICE) if name in inherited
    }
    inside = {"PYTHONNOUSERSITE": "1"} | given | visible_environment(visible_devices) | launch.environment
    return outside | {_INTO_APPTAINER + name: value for name, value in inside.items()}


def mounted(mount: str, inherited: Mapping[str, str]) -> str:
    """A mount with its source as a folder of this machine."""
    return os.path.expanduser(mount.replace(HUB_CACHE, hub_cache(inherited)))


def hub_cache(environment: Mapping[str, str]) -> str:
    """Where the caller keeps what comes from the hub."""
    return environment.get("HF_HOME") or DEFAULT_HUB_CACHE


_GPU_CHOICE = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""apptainer shows a container all devices of the host; which of them are ours the variable says there as well."""


def _docker_gpus(container: Container, visible_devices: str | None) -> str | None:
    """The quotes belong to the value: docker reads it as a line of CSV."""
    if container.gpus is None or visible_devices is None:
        return container.gpus
    return f'"device={visible_devices}"'


OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
"""A user who works without network says so once, in the shell: containers are told as well."""


def _passed_on(launch: Launch, inherited: Mapping[str, str]) -> list[str]:
    """Variables of the caller that a container gets by name."""
    names = dict.fromkeys((*launch.environment_names, *OFFLINE))
    return [name for name in names if name in inherited and name not in launch.environment]


def visible_environment(devices: str | None) -> dict[str, str]:
    """Numbers in CUDA_VISIBLE_DEVICES count by bus, as nvidia-smi does."""
    return {} if devices is None else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": devices}


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
