"""Adds a package that has no wheels to a built engine environment, without touching what is in it.

suffix decoding needs arctic-inference, whose build wants torch: built in isolation it would fetch a torch of its own, several GB.
Here it builds beside the engine's torch, with build tools in a folder that is removed afterwards.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision.command import ProvisionError, run
from scripts.lib.provision.engine_env import engine_python, install, pip_environment
from scripts.lib.provision.requirements import digest, requirement_lines, requirements_digest
from scripts.lib.provision.seal import READY, empty, seal, sealed_facts, write_json

VERIFY = {"suffix": "from arctic_inference.suffix_decoding import SuffixDecodingCache"}
"""By extra: what must import once it is installed."""

_HEADERS = (
    "import sysconfig, pathlib; print(pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists())"
)


def build_extra(extra: str, requirements: Path, build_requirements: Path, folder: Path, log: Path) -> None:
    """Add `extra` to the environment `folder` and write {extra}.json there. Raises ProvisionError when it cannot be built."""
    label = f"adding {extra} to {folder.name}"
    seal_name = f"sealed-{extra}.json"
    engine = (folder / READY).read_text(encoding="utf-8")
    recipe = digest([engine, requirements_digest(requirements), requirements_digest(build_requirements)])
    facts = sealed_facts(folder, recipe, seal_name)
    if facts is not None:
        progress.say(f"{extra} is in {folder.name} already; nothing to install")
    else:
        _check_compiler(extra, folder)
        (folder / seal_name).unlink(missing_ok=True)
        _build(extra, requirements, build_requirements, folder, log, label)
        facts = {"packages": requirement_lines(requirements.read_text(encoding="utf-8"))}
        seal(folder, recipe, facts, seal_name)
    write_json(folder / f"{extra}.json", facts)


def _check_compiler(extra: str, folder: Path) -> None:
    wanting = (
        []
        if shutil.which(os.environ.get("CXX", "c++"))
        else ["a C++ compiler (Debian and Ubuntu: apt install g++)"]
    )
    headers = subprocess.run(
        [engine_python(folder), "-c", _HEADERS], capture_output=True, text=True, check=False
    )
    if headers.stdout.strip() != "True":
        wanting.append("Python's C headers (Debian and Ubuntu: apt install python3-dev)")
    if wanting:
        raise ProvisionError(
            f"the method {extra} needs {' and '.join(wanting)}, because its package has to be compiled here. Install that, or "
            f"take {extra} out of `method` in the config."
        )


def _build(
    extra: str, requirements: Path, build_requirements: Path, folder: Path, log: Path, label: str
) -> None:
    tools = folder / f"build-tools-{extra}"
    empty(tools)
    needed = requirement_lines(build_requirements.read_text(encoding="utf-8"))
    install(folder, log, label, "--no-deps", "--target", str(tools), *needed, packages=len(needed))
    environment = pip_environment(os.environ)
    environment["PYTHONPATH"] = str(tools.absolute())
    environment["PATH"] = os.pathsep.join(
        [str(tools.absolute() / "bin"), environment.get("PATH", os.defpath)]
    )
    progress.say(f"{label}: compiling, about half a minute; log: {log}")
    arguments = ["--no-deps", "--no-build-isolation", "--requirement", str(requirements)]
    install(folder, log, label, *arguments, packages=1, environment=environment)
    shutil.rmtree(tools)
    command = [str(engine_python(folder)), "-c", VERIFY[extra]]
    status, output = run(command, log, label, lambda _: "importing it once", pip_environment(os.environ))
    if status:
        raise ProvisionError(f"{label} failed: {output.strip().splitlines()[-1]} (log: {log})")
