"""One engine environment (a venv): running its Python and its pip with the output in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.provision import pip_output
from scripts.lib.provision.command import ProvisionError, run

_NOT_INHERITED = frozenset(
    {
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONDONTWRITEBYTECODE",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_REQUIREMENT",
        "VIRTUAL_ENV",
    }
)


def inherited(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for a Python of its own: the user's pip settings stay, but those that install elsewhere."""
    kept = {name: value for name, value in environment.items() if name not in _NOT_INHERITED}
    return kept | {
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        "PIP_USER": "no",
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@dataclass(frozen=True)
class Environment:
    """The venv in `folder`. `label` opens console lines and errors, `log` gets all output."""

    folder: Path
    label: str
    log: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def failed(self, why: str) -> ProvisionError:
        return ProvisionError(f"{self.label} failed: {why} (log: {self.log})")

    def create(self) -> None:
        """Make the venv, with pip, of the Python that runs this. Raises ProvisionError."""
        command = [sys.executable, "-m", "venv", str(self.folder)]
        status, output = run(command, self.log, self.label, lambda _: "making the environment")
        if status:
            raise self.failed(last_line(output))

    def run(self, what: str, *arguments: str, variables: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run its Python; the console is told `what` it does. Returns exit status and output."""
        environment = inherited(os.environ) | (variables or {})
        return run([str(self.python), *arguments], self.log, self.label, lambda _: what, environment)

    def pip_install(
        self, *arguments: str, packages: int, variables: Mapping[str, str] | None = None
    ) -> str | None:
        """`pip install` of so many packages. None when it worked, else pip's output."""
        command = [str(self.python), "-m", "pip", "install", "--no-compile", *arguments]
        environment = inherited(os.environ) | (variables or {})
        status, output = run(
            command, self.log, self.label, lambda text: pip_output.progress(text, packages), environment
        )
        return output if status else None

    def install(self, *arguments: str, packages: int, variables: Mapping[str, str] | None = None) -> None:
        """The same. Raises ProvisionError with the cause when it fails."""
        output = self.pip_install(*arguments, packages=packages, variables=variables)
        if output is not None:
            raise self.failed(pip_output.failure(output))


def last_line(output: str) -> str:
    """The last line of a command's output that says something: for a Python program its error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "it ended without a word (out of memory?)"
