"""The cell store: evidence that Snakemake does not own, addressed by what decided it.

    {root}/{cell path}/{first 16 digits of the key}/      evidence of one cell, read-only once there
    {root}/{cell path}/{first 16 digits}.attempt-{n}/     an earlier try that was damaged, forgotten or worth another try
    {root}/.incoming/                                     being written

The key is the SHA-256 of the canonical JSON of the cell's identity (Sweep.identity). Evidence is written aside, checksummed
(SHA256SUMS, readable by `sha256sum -c`), flushed to disk and moved into place by one rename, so a reader sees all of it or none.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from scripts.lib.cell import Cell
from scripts.lib.processes import alive, start_ticks
from scripts.lib.receipts import fingerprint

MANIFEST = "manifest.json"
CHECKSUMS = "SHA256SUMS"
_KEY_DIGITS = 16
_ABANDONED_S = 3600
_LOSSY_TRIES = 2
"""So often a cell is measured that lost many of its requests; then its figures stand as they are."""


class StoreError(RuntimeError):
    """The store cannot be read or written; the message names the path and the remedy."""


class State(Enum):
    """What the store holds for one cell under one key."""

    ABSENT = "absent"
    MEASURED = "measured"
    FAILED = "failed"
    RETRY = "retry"
    DAMAGED = "damaged"

    @property
    def finished(self) -> bool:
        """Nothing to measure: there is a result, good or bad, that another try would not change."""
        return self in (State.MEASURED, State.FAILED)


def canonical_json(value: object) -> str:
    """One spelling per value: sorted keys, no spaces, no NaN. Raises ValueError for NaN or infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def key_of(identity: Mapping[str, object]) -> str:
    """SHA-256 (64 hexadecimal digits) of the canonical JSON of `identity`."""
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()


@dataclass(frozen=True)
class Difference:
    """One component in which stored evidence differs from what is asked for now."""

    component: str
    stored: object
    wanted: object


class CellStore:
    """All evidence below one folder. Several sweeps and checkouts may share it.

    `receipts` (receipts.py) are of evidence that need not be read again to be trusted; without them everything is.
    """

    def __init__(self, root: Path, receipts: Mapping[str, str] | None = None):
        self.root = root
        self.receipts = receipts or {}

    def folder(self, cell: Cell, key: str) -> Path:
        return self.root / cell.path / key[:_KEY_DIGITS]

    def state(self, cell: Cell, key: str) -> State:
        """Verify every byte of the cell's evidence that no receipt vouches for: a flipped or truncated file is DAMAGED, never
        data."""
        folder = self.folder(cell, key)
        if not folder.is_dir():
            return State.ABSENT
        receipt = self.receipts.get(f"{cell.path}/{folder.name}")
        if (receipt is None or receipt != fingerprint(folder)) and damage(folder) is not None:
            return State.DAMAGED
        manifest = read_manifest(folder)
        if manifest.get("key") != key:
            return State.DAMAGED
        final = not manifest.get("retry") or (
            manifest["status"] == "measured" and self.discarded(cell, key) >= _LOSSY_TRIES - 1
        )
        if not final:
            return State.RETRY
        return State.MEASURED if manifest["status"] == "measured" else State.FAILED

    def discarded(self, cell: Cell, key: str) -> int:
        """How many earlier tries under this key were set aside."""
        folder = self.folder(cell, key)
        return len(list(folder.parent.glob(folder.name + ".attempt-*")))

    def forget(self, cell: Cell, key: str) -> bool:
        """Set the evidence aside so that the cell is measured again. Returns whether there was any."""
        folder = self.folder(cell, key)
        if not folder.is_dir():
            return False
        number = self.discarded(cell, key) + 1
        folder.rename(folder.with_name(f"{folder.name}.attempt-{number}"))
        return True

    @contextmanager
    def writing(self, cell: Cell, key: str) -> Iterator[Path]:
        """Give a folder to fill; on a clean exit it becomes the cell's evidence, on an exception nothing remains.

        Finished evidence that another sweep put there meanwhile is kept and the new one dropped.
        Raises StoreError when the disk is full or the store is not writable.
        """
        incoming = self.root / ".incoming"
        try:
            incoming.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(incoming)
            mine = f"{platform.node()} {os.getpid()} {start_ticks(os.getpid())} "
            aside = Path(tempfile.mkdtemp(prefix=mine, dir=incoming))
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            yield aside
            _seal(aside)
            self._place(aside, cell, key)
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _place(self, aside: Path, cell: Cell, key: str) -> None:
        folder = self.folder(cell, key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        state = self.state(cell, key)
        if state.finished:
            return
        if state is not State.ABSENT:
            self.forget(cell, key)
        try:
            aside.rename(folder)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
                return  # another sweep put its evidence there in this moment
            raise
        _sync(folder.parent)

    def _unwritable(self, error: OSError) -> StoreError:
        return StoreError(
            f"cannot write evidence to the cell store {self.root}: {error.strerror or error}. "
            "Nothing measured before is lost; make room or fix the permissions (or set `store:` in the config) and run again."
        )

    def others(self, cell: Cell, key: str) -> list[tuple[Path, dict[str, object]]]:
        """Readable evidence of the same cell under other keys: (folder, identity), newest first."""
        folder = self.folder(cell, key)
        found = []
        for other in sorted(
            folder.parent.glob("?" * _KEY_DIGITS), key=lambda p: p.stat().st_mtime, reverse=True
        ):
            if other.is_dir() and other != folder and damage(other) is None:
                found.append((other, read_manifest(other)["identity"]))
        return found


def differences(
    stored: Mapping[str, object], wanted: Mapping[str, object], prefix: str = ""
) -> list[Difference]:
    """Which components of two identities differ, by dotted name; mappings are compared key by key."""
    found: list[Difference] = []
    for name in sorted(set(stored) | set(wanted)):
        old, new = stored.get(name), wanted.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{prefix}{name}.")
        elif old != new:
            found.append(Difference(prefix + name, old, new))
    return found


def read_manifest(folder: Path) -> dict:
    """The manifest of an evidence folder. Raises OSError or ValueError when it is unreadable."""
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))


def damage(folder: Path) -> str | None:
    """Compare every file with SHA256SUMS. Returns what is wrong in words, None when all is well."""
    try:
        lines = (folder / CHECKSUMS).read_text(encoding="ascii").splitlines()
        listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    except (OSError, UnicodeDecodeError) as error:
        return f"{CHECKSUMS} is unreadable ({error})"
    unlisted = {path.name for path in folder.iterdir()} - {CHECKSUMS} - set(listed)
    if unlisted or MANIFEST not in listed:
        return f"{CHECKSUMS} does not list {', '.join(sorted(unlisted)) or MANIFEST}"
    for name, digest in listed.items():
        try:
            actual = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except (OSError, ValueError) as error:
            return f"{name[:80]!r} is unreadable ({error})"
        if actual != digest:
            return f"{name} does not match its checksum"
    return None


def _remove_abandoned(incoming: Path) -> None:
    """Drop what processes of this machine were writing when they were killed.

    Writing takes seconds: the age spares what a process writes that is not seen from here, in another container of this name.
    """
    for folder in incoming.iterdir():
        node, *process = folder.name.split(" ")
        if node == platform.node() and len(process) == 3 and not alive(int(process[0]), int(process[1])):
            with contextlib.suppress(OSError):
                if folder.stat().st_mtime < time.time() - _ABANDONED_S:
                    shutil.rmtree(folder, ignore_errors=True)


def _seal(folder: Path) -> None:
    lines = []
    folder.chmod(0o755)  # a temporary folder is private; the store may be shared
    for path in sorted(folder.iterdir()):
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
        _sync(path)
    sums = folder / CHECKSUMS
    sums.write_text("".join(lines), encoding="ascii")
    _sync(sums)
    _sync(folder)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
