"""Rules of the house that a reader relies on: what may import what, and that thin scripts stay thin."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "scripts" / "lib"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in LIBRARY.rglob("*.py")
}
PLANNING = [
    "cell",
    "launch",
    "config",
    "config_errors",
    "sweep",
    "planning",
    "plan",
    "why",
    "store",
    "progress",
]
LIGHT = {"yaml", "scripts"} | set(sys.stdlib_module_names)


def imports(path, top_level_only):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            modules = [f"{base}.{alias.name}" for alias in node.names if f"{base}.{alias.name}" in MODULES]
            yield from modules or [base]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_the_library_does_not_know_snakemake(name):
    assert not [found for found in imports(MODULES[name], False) if found.split(".")[0] == "snakemake"]


def test_there_is_no_import_cycle():
    graph = {
        name: {m for m in imports(path, True) if m in MODULES and m != name} for name, path in MODULES.items()
    }
    list(graphlib.TopologicalSorter(graph).static_order())


def test_planning_needs_the_standard_library_and_yaml_alone():
    """Every snakemake call, also on a cluster node, loads these: nothing heavy may creep in."""
    code = f"import sys\nfor name in {PLANNING!r}: __import__('scripts.lib.' + name)\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {
        name for name in loaded if name.split(".")[0] in ("polars", "openai", "numpy", "altair", "scipy")
    }


def test_waiting_cells_import_nothing_heavy():
    code = "import sys, scripts.measure_cell\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {name for name in loaded if name.split(".")[0] not in LIGHT and "." not in name} - {
        "_distutils_hack",
        "__main__",
    }
    assert "yaml" not in loaded


def test_rule_files_and_thin_scripts_stay_short():
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        assert len(path.read_text().splitlines()) <= 150, path
    assert len((ROOT / "Snakefile").read_text().splitlines()) <= 60
    for path in (ROOT / "scripts").glob("*.py"):
        assert len(path.read_text().splitlines()) <= 150, path
    for path in LIBRARY.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 370, path


def test_no_machine_and_no_registry_is_named():
    names = [
        "pypi" + ".org",
        "pythonhosted" + ".org",
        "/work/" + "main",
        "/work/" + "shared",
        "/work/" + "scratch",
    ]
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of files")
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    for name in filter(None, files):
        data = (ROOT / name).read_bytes() if (ROOT / name).exists() else b""
        assert not [word for word in names if word.encode() in data], name


def test_only_servers_cells_and_builds_are_sent_to_a_cluster():
    """Everything else takes seconds, and would wait in a queue for a node without a GPU to spare."""
    sent = set()
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        text = path.read_text(encoding="utf-8")
        local = re.findall(r"^localrules:\n((?:    \w+,\n)+)", text, re.MULTILINE)
        sent |= set(re.findall(r"^rule (\w+):", text, re.MULTILINE)) - set(re.findall(r"\w+", "".join(local)))
    assert sent == {"serve", "measure_cell", "build_engine", "build_engine_extra", "build_model"}
