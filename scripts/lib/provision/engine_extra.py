"""Adds a package that has no wheels to a built engine environment, without touching what is in it.

suffix decoding needs arctic-inference, whose build wants torch: in isolation it would fetch a torch of its own, several GB.
Here it is compiled beside the engine's torch, with build tools in a folder that is removed afterwards.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from scripts.lib import progress
from scripts.lib.provision.command import ProvisionError
from scripts.lib.provision.environment import Environment, last_line
from scripts.lib.provision.requirements import digest, requirement_lines, requirements_digest
from scripts.lib.provision.seal import READY, empty, seal, sealed_facts, write_json

VERIFY = {"suffix": "from arctic_inference.suffix_decoding import SuffixDecodingCache"}
"""By extra: what must import once it is installed."""

_HEADERS = (
    "import sysconfig, pathlib; print(pathlib.Path(sysconfig.get_path('include'), 'Python.h').exists())"
)


def build_extra(extra: str, requirements: Path, build_requirements: Path, folder: Path, log: Path) -> None:
    """Add `extra` to the environment `folder`, with {extra}.json there; only that file if it is in it already.

    Raises ProvisionError when it cannot be built.
    """
    environment = Environment(folder, f"adding {extra} to {folder.name}", log)
    engine = (folder / READY).read_text(encoding="utf-8")
    recipe = digest([engine, requirements_digest(requirements), requirements_digest(build_requirements)])
    seal_name = f"sealed-{extra}.json"
    facts = sealed_facts(folder, recipe, seal_name)
    if facts is not None:
        progress.say(f"{extra} is in {folder.name} already; nothing to install")
    else:
        _check_compiler(extra, environment)
        (folder / seal_name).unlink(missing_ok=True)
        _build(extra, environment, requirements, build_requirements)
        facts = {"packages": requirement_lines(requirements.read_text(encoding="utf-8"))}
        seal(folder, recipe, facts, seal_name)
    write_json(folder / f"{extra}.json", facts)


def _check_compiler(extra: str, environment: Environment) -> None:
    wanting = []
    if not shutil.which(os.environ.get("CXX", "c++")):
        wanting.append("a C++ compiler (Debian and Ubuntu: apt install g++)")
    _, output = environment.run("looking for Python's headers", "-c", _HEADERS)
    if last_line(output) != "True":
        wanting.append("Python's C headers (Debian and Ubuntu: apt install python3-dev)")
    if wanting:
        raise ProvisionError(
            f"the method {extra} needs {' and '.join(wanting)}, as its package is compiled here. Install that, or take "
            f"{extra} out of `method` in the config."
        )


def _build(extra: str, environment: Environment, requirements: Path, build_requirements: Path) -> None:
    tools = environment.folder.absolute() / f"build-tools-{extra}"
    empty(tools)
    needed = requirement_lines(build_requirements.read_text(encoding="utf-8"))
    environment.install("--no-deps", "--target", str(tools), *needed, packages=len(needed))
    variables = {
        "PYTHONPATH": str(tools),
        "PATH": os.pathsep.join([str(tools / "bin"), os.environ.get("PATH", os.defpath)]),
    }
    progress.say(f"{environment.label}: compiling, about half a minute; log: {environment.log}")
    arguments = ("--no-deps", "--no-build-isolation", "--requirement", str(requirements))
    environment.install(*arguments, packages=1, variables=variables)
    shutil.rmtree(tools)
    status, output = environment.run("importing it once", "-c", VERIFY[extra])
    if status:
        raise environment.failed(last_line(output))
