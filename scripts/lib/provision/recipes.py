"""What the workflow builds for a server, told apart before it is built: digests of what it is made from."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from scripts.lib.provision.artifacts import ARTIFACTS, artifact_named
from scripts.lib.provision.requirements import digest, requirements_digest

_MODEL = re.compile(r"resources/models/([^/]+)/ready\.json")
_EXTRA = re.compile(r"resources/engines/([^/]+)/(?!ready\.json)([^/]+)\.json")


@cache
def recipe_of(need: str, root: Path) -> str | None:
    """Digest of what the file `need` (relative to the working directory) and its folder are built from; None for what is not built
    here, and for an engine, whose requirement files are its `build` already. `root` is the repository.

    Raises OSError when a file of the recipe cannot be read.
    """
    if (model := _MODEL.fullmatch(need)) and model[1] in ARTIFACTS:
        return artifact_recipe(model[1], root)
    if extra := _EXTRA.fullmatch(need):
        return requirements_digest(root / "envs" / f"{extra[1]}.{extra[2]}.txt")
    return None


@cache
def artifact_recipe(name: str, root: Path) -> str:
    """Digest of an artifact's builder and files, and of all that it is made from in turn."""
    artifact = artifact_named(name)
    needs = (artifact_recipe(need, root) for need in artifact.needs)
    files = (requirements_digest(root / file) for file in artifact.files)
    return digest([artifact.module, artifact.version, *needs, *files])
