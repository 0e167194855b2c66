"""The recommend section of a config: what is refused before anything is measured, and its defaults."""

from __future__ import annotations

import pytest

from scripts.lib.config import ConfigError, load_schema
from scripts.lib.recommend.limits import LIMITS
from scripts.lib.recommend.wishes import read_wishes
from tests.planning import sweep

CODE = {"scenario": "code-short", "concurrency": 4, "share": 1}


def test_a_config_without_the_section_wishes_for_one_device() -> None:
    wishes = read_wishes(sweep().config["recommend"])
    assert (wishes.limits, wishes.traffic, wishes.max_configurations) == ({}, (), 1)
    assert wishes.devices_of("cpu") == 1


def test_devices_by_hardware() -> None:
    wishes = read_wishes(sweep(recommend={"devices": {"cpu": 3}}).config["recommend"])
    assert (wishes.devices_of("cpu"), wishes.devices_of("h100")) == (3, 0)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"traffic": [CODE | {"scenario": "code-shrot"}]}, "did you mean 'code-short'"),
        ({"traffic": [CODE | {"concurrency": 8}]}, "8 is not measured with code-short; known: 1, 4"),
        ({"traffic": [CODE, CODE]}, "given twice"),
        ({"traffic": [CODE | {"share": 0}]}, "0 is not above 0"),
        ({"devices": {"cpuu": 1}}, "did you mean 'cpu'"),
        ({"devices": 0}, "less than 1"),
        ({"limits": {"ttft": 1}}, "did you mean 'ttft_s'"),
        ({"max_configurations": 0}, "less than 1"),
    ],
)
def test_what_the_sweep_cannot_answer_is_refused(section, words) -> None:
    with pytest.raises(ConfigError, match=r"^config: .*recommend") as error:
        sweep(recommend=section)
    assert words in str(error.value)


def test_limits_are_the_same_in_code_and_schema() -> None:
    properties = load_schema("config")["properties"]["recommend"]["properties"]["limits"]["properties"]
    assert list(properties) == list(LIMITS)


def test_machines_of_other_results_may_be_named(tmp_path) -> None:
    """Only the tables know what another run measured."""
    records = tmp_path / "other" / "results" / "tables" / "records.parquet"
    records.parent.mkdir(parents=True)
    records.touch()
    wishes = {"devices": {"h100": 2}, "traffic": [CODE | {"scenario": "chat"}]}
    planned = sweep(recommend=wishes, other_results=[str(tmp_path / "other" / "results")])
    assert read_wishes(planned.config["recommend"]).devices_of("h100") == 2
