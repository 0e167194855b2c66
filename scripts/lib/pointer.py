"""The small file in results/ that says where the evidence of a cell lies: {"cell": axes, "key": ..., "folder": ...}."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.cell import Cell


@dataclass(frozen=True)
class Pointer:
    """`folder` is the evidence folder, as seen from the working directory of the run."""

    cell: Cell
    key: str
    folder: str

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"cell": self.cell.axes, "key": self.key, "folder": self.folder}
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Pointer:
        """Raises ValueError with the reason when `path` is no pointer or cannot be read."""
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            return cls(Cell.from_axes(data["cell"]), str(data["key"]), str(data["folder"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} names no evidence ({error!r})") from None

    def folder_from(self, path: Path) -> Path:
        """The evidence folder from wherever the caller is; `path` is this pointer's own, {run}/results/cells/{cell path}/NAME."""
        run = path.absolute().parents[len(Path(self.cell.path).parts) + 2]
        return run / self.folder
