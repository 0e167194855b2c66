"""A digest of source files, so that a change in a library module is a change of what it makes."""

from __future__ import annotations

import hashlib
from pathlib import Path


def source_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of all Python and YAML files below `folder`, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".yaml")):
        digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
