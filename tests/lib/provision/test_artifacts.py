"""The table of artifacts is complete: each can be built, from artifacts that exist, without a cycle."""

import importlib.util
import inspect

import pytest
import yaml

from scripts.lib.provision.artifacts import ARTIFACTS, SOURCE, artifact_named
from tests.lib.provision import ROOT


@pytest.mark.parametrize("name", ARTIFACTS)
def test_its_module_builds_with_the_expected_parameters(name):
    module = importlib.import_module(f"scripts.lib.provision.{ARTIFACTS[name].module}")
    assert list(inspect.signature(module.build).parameters) == ["models", "out", "say"]


def test_needs_exist_and_come_before():
    known = []
    for name, artifact in ARTIFACTS.items():
        assert set(artifact.needs) <= set(known)
        known.append(name)
    assert ARTIFACTS[SOURCE].needs == ()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="no such model is built here: smol; there are smollm2, "):
        artifact_named("smol")


def test_what_the_models_of_the_config_need_is_built():
    text = (ROOT / "config/models/smollm2.yaml").read_text()
    needed = [part for part in str(yaml.safe_load(text)).split("'") if part.startswith("resources/models/")]
    names = {part.split("/")[2] for part in needed}
    assert {"smollm2-mimo", "smollm2-eagle", "smollm2-draft"} <= names <= set(ARTIFACTS)


def test_the_files_it_is_made_from_exist():
    files = [file for artifact in ARTIFACTS.values() for file in artifact.files]
    assert len(files) == 2
    assert all((ROOT / file).is_file() for file in files)
