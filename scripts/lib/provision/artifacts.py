"""The small models that the workflow builds, and what each is built from. All logic of how lies in the modules named here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Artifact:
    """`module` has `build(models, out, say)`: it fills the folder `out` and returns facts to keep, on the engine's Python.

    `needs` are other artifacts, `files` are files of the repository that it is made from. Raise `version` when the module
    makes something else of the same.
    """

    about: str
    module: str
    needs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    version: str = "1"


PACKAGE = "envs/smollm2.txt"
PROMPTS = "scripts/lib/provision/fitting_prompts.txt"

ARTIFACTS = {
    "smollm2": Artifact("SmolLM2-135M-Instruct as a checkpoint", "plain_model", files=(PACKAGE,)),
    "smollm2-activations": Artifact(
        "what the model answers to the fitting prompts, and its states",
        "activations",
        ("smollm2",),
        (PROMPTS,),
        version="2",
    ),
    "smollm2-mimo": Artifact(
        "the model in MiMo form with a fitted multi-token-prediction head",
        "mimo_model",
        ("smollm2", "smollm2-activations"),
    ),
    "smollm2-eagle": Artifact("a fitted EAGLE head", "eagle_model", ("smollm2", "smollm2-activations")),
    "smollm2-draft": Artifact(
        "a draft model: the model without two of its layers", "draft_model", ("smollm2",)
    ),
}
SOURCE = "smollm2"
"""The artifact that comes from the package; all others come from artifacts."""


def artifact_named(name: str) -> Artifact:
    """Raises ValueError for a name that is no artifact."""
    if name not in ARTIFACTS:
        raise ValueError(f"no such model is built here: {name}; there are {', '.join(ARTIFACTS)}")
    return ARTIFACTS[name]
