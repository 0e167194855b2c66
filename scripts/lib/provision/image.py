"""An engine's container image as a file for apptainer: pulled once, where there is a network, for all nodes that see the folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision import command, seal
from scripts.lib.provision.command import ProvisionError

FILE = "image.sif"
_PART = "image.part.sif"


def pull_image(image: str, folder: Path, log: Path) -> None:
    """Leave `folder` with the image as FILE and sealed with its SHA-256; a whole one of the same image is kept.

    Raises ProvisionError when apptainer is missing or the image cannot be had.
    """
    facts = seal.sealed_facts(folder, image)
    if facts is None or not (folder / FILE).exists():
        seal.empty(folder)
        facts = _pull(image, folder, log)
        seal.seal(folder, image, facts)
    seal.write_json(folder / seal.READY, facts)


def _pull(image: str, folder: Path, log: Path) -> dict[str, object]:
    progress.say(f"pulling {image} (once; layers of several GiB)")
    argv = ["apptainer", "pull", "--force", str(folder / _PART), image]
    status, output = command.run(argv, log, f"pulling {image}", _last_line)
    if status != 0:
        raise ProvisionError(
            f"{image} could not be pulled (apptainer ended with status {status}: {_last_line(output)}; log: {log}); "
            "pull it where there is a network and name the file as `image` of the engine"
        )
    with (folder / _PART).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    (folder / _PART).rename(folder / FILE)
    return {"image": image, "sha256": digest}


def _last_line(output: str) -> str:
    return next((line.strip() for line in reversed(output.splitlines()) if line.strip()), "no output")
