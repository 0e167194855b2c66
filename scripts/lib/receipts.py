"""Which evidence was read and found whole, so that a plan need not read all of it again.

    {store}/.verified.json      {"{cell path}/{16 digits}": fingerprint of the folder}

A fingerprint covers what the file system says of every file: name, size, inode and the times of its last change, of which the kernel
keeps one (ctime) that no program can set. So a file that was truncated, overwritten or replaced has another one. What changes
on the disk itself, without a write, is noticed when the evidence is read for the tables, and takes the receipt away.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

RECEIPTS = ".verified.json"
_SETTLED_NS = 2_000_000_000
"""File times are coarse: a file that changed just now may change again and keep its time."""


def fingerprint(folder: Path) -> str | None:
    """What the file system says of the files of `folder`; None when there is no such folder."""
    stats = _stats(folder)
    return None if stats is None else hashlib.sha256(repr(stats).encode()).hexdigest()[:32]


def settled(folder: Path) -> bool:
    """Whether nothing in `folder` changed within the last two seconds, so that its fingerprint can vouch for it."""
    stats = _stats(folder)
    return bool(stats) and max(stat[-1] for _, stat in stats) < time.time_ns() - _SETTLED_NS


def read_receipts(root: Path) -> dict[str, str]:
    """Fingerprints by folder relative to the store's `root`. Without a readable file there are none: that only costs time."""
    try:
        receipts = json.loads((root / RECEIPTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return receipts if isinstance(receipts, dict) else {}


def note_receipts(root: Path, whole: Mapping[str, str], damaged: Iterable[str]) -> None:
    """Add the fingerprints of folders that were found whole and drop those of damaged ones.

    A store that cannot be written stays as it is, and of two sweeps that do this at once one is forgotten.
    """
    receipts = {name: value for name, value in read_receipts(root).items() if (root / name).is_dir()}
    kept = {name: value for name, value in (receipts | dict(whole)).items() if name not in set(damaged)}
    aside = root / f"{RECEIPTS}.{os.getpid()}"
    try:
        aside.write_text(json.dumps(kept, indent=0, sort_keys=True), encoding="utf-8")
        aside.replace(root / RECEIPTS)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def _stats(folder: Path) -> list[tuple[str, tuple[int, ...]]] | None:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                (entry.name, (stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns))
                for entry in entries
                for stat in (entry.stat(),)
            )
    except OSError:
        return None
