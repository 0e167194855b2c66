"""The fitting prompts must be other topics than those measured; answers end at their first end token."""

import re

import numpy as np
import yaml

from scripts.lib.provision.activations import fitting_prompts, places_before_end
from tests.lib.provision import ROOT

COMMON = frozenset(
    re.findall(
        r"[a-z]+",
        """a an the of and or in on to with for from by that which it its is are be as at into over without using use your each
        write implement explain give program script function class method code example examples python go rust c java javascript
        text list lists string strings number numbers dict dictionary value values key keys returns return prints print
        include state type hints docstrings docstring unit tests test line lines given one two three several small simple
        checks computes finds reads writes converts command what why how when works few sentence sentences performs implements""",
    )
)


def words(prompt):
    return {word for word in re.findall(r"[a-z]+", prompt.lower()) if word not in COMMON}


def scenario_prompts():
    found = {}
    for path in sorted((ROOT / "config/scenarios").glob("*.yaml")):
        scenario = yaml.safe_load(path.read_text())
        for group in ("prompts", "warmup_prompts"):
            prompts = scenario.get(group) or {}
            for name, prompt in prompts.items() if isinstance(prompts, dict) else enumerate(prompts):
                found[f"{path.stem}/{group}/{name}"] = prompt if isinstance(prompt, str) else prompt["prompt"]
    return found


def test_there_are_measured_prompts_to_compare_with():
    assert len(scenario_prompts()) >= 10


def test_no_fitting_prompt_is_measured():
    measured = scenario_prompts()
    assert not set(fitting_prompts()) & set(measured.values())


def test_no_fitting_prompt_has_a_measured_topic():
    """Two prompts share a topic when most of the telling words of the shorter one are in the other."""
    for where, measured in scenario_prompts().items():
        theirs = words(measured)
        for prompt in fitting_prompts():
            ours = words(prompt)
            shared = ours & theirs
            assert len(shared) < max(2, 0.5 * min(len(ours), len(theirs))), (
                f"{where}: {prompt} ({sorted(shared)})"
            )


def test_the_measured_topics_are_not_named():
    text = "\n".join(fitting_prompts()).lower()
    for topic in (
        "lru", "log line", "access log", "binary search", "largest files", "file size", "rate limit", "token bucket",
        "interval", "topolog", "word frequen", "most frequent", "palindrome", "transpos", "password", "celsius", "csv",
    ):  # fmt: skip
        assert topic not in text, topic


def test_fitting_prompts_are_many_and_different():
    prompts = fitting_prompts()
    assert len(prompts) > 100
    assert len(set(prompts)) == len(prompts)


def test_comments_are_no_prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_text("# about\n\nOne.\n  Two.  \n")
    assert fitting_prompts(path) == ["One.", "Two."]


def test_an_answer_ends_with_its_first_end_token():
    tokens = np.array([[5, 2, 2, 2], [5, 6, 7, 8], [2, 5, 2, 5]])
    assert places_before_end(tokens, 2).tolist() == [2, 4, 1]
