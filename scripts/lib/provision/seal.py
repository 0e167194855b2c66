"""Finished folders: sealed last and in one step, so that nothing half-built is used and nothing whole is built again.

sealed.json   what the folder was made from (`recipe`, a digest) and what is in it; the builder's own memory
ready.json    the same facts, for the workflow: Snakemake deletes it before a job, and a good folder only writes it again
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

SEALED, READY = "sealed.json", "ready.json"


def write_json(path: Path, value: object) -> None:
    """Write `value` to `path` so that a reader sees the old file or the new one, never a part."""
    handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def seal(folder: Path, recipe: str, facts: Mapping[str, object], name: str = SEALED) -> None:
    """Declare `folder` finished: it was made from `recipe`, and `facts` describe it."""
    write_json(folder / name, {"recipe": recipe, "facts": dict(facts)})


def sealed_facts(folder: Path, recipe: str, name: str = SEALED) -> dict[str, object] | None:
    """The facts of a finished folder made from `recipe`; None when it is unfinished, made from something else or unreadable."""
    try:
        sealed = json.loads((folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if (
        not isinstance(sealed, dict)
        or sealed.get("recipe") != recipe
        or not isinstance(sealed.get("facts"), dict)
    ):
        return None
    return sealed["facts"]


def empty(folder: Path) -> None:
    """Leave `folder` existing and empty."""
    if folder.exists():
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    folder.mkdir(parents=True, exist_ok=True)


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file in `folder` but the seals, by name relative to it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in {SEALED, READY}:
            with path.open("rb") as file:
                found[path.relative_to(folder).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
