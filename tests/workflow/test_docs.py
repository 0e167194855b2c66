"""The guides under docs/ do what they say. Their fenced blocks are run in order, each page in a checkout of its own:

`yaml PATH` is written to that file, `console run` must succeed, `console needs-hardware` is for readers only. Anything else that looks
like a command fails the page.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.project import ROOT

PAGES = ("workstation", "slurm", "adding-hardware", "adding-an-engine", "adding-a-method")
PLUGIN = "snakemake_executor_plugin_cluster_generic"


def blocks(text):
    """(info string, content) of each fenced block."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def page(name):
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path):
    """The repository by links, with a config folder of its own; what commands make stays in it."""
    for path in ROOT.iterdir():
        if path.name not in (
            "config",
            "results",
            "store",
            "resources",
            ".git",
            ".snakemake",
            ".pytest_cache",
        ):
            (tmp_path / path.name).symlink_to(path)
    (tmp_path / "config").mkdir()
    for path in (ROOT / "config").iterdir():
        if path.is_dir():
            (tmp_path / "config" / path.name).mkdir()
            for file in path.iterdir():
                (tmp_path / "config" / path.name / file.name).symlink_to(file)
        else:
            (tmp_path / "config" / path.name).symlink_to(path)
    return tmp_path


def run(command, folder):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment | {"PATH": path},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_guide_run(name, checkout):
    if "cluster-generic" in page(name):
        pytest.importorskip(PLUGIN)
    for info, content in blocks(page(name)):
        kind, _, mark = info.partition(" ")
        if kind == "yaml":
            (checkout / mark).write_text(content, encoding="utf-8")
        elif mark == "run":
            run(content, checkout)


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_guide_is_marked(name):
    text = page(name)
    assert blocks(text), "a guide without a command"
    for info, content in blocks(text):
        kind, _, mark = info.partition(" ")
        if kind == "yaml":
            assert mark.endswith(".yaml"), f"say which file this is: {content}"
        else:
            assert info in ("console run", "console needs-hardware"), f"unmarked: {content}"
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^ {4}(?:snakemake|python|make|pip|kubectl|sbatch)\b.*", prose, re.MULTILINE)


def test_links_between_pages_lead_somewhere():
    for path in (ROOT / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
