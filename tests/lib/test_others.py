"""Results of other runs and tools that a config names: found before anything starts, or one clear error."""

import pytest

from scripts.lib.config import ConfigError
from scripts.lib.others import has_others, imports, other_records

ENTRY = {"hardware": "h100", "engine": "vllm", "model": "m", "max_model_len": 1024, "scenario": "random"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touched(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_a_results_folder_is_found_by_its_name_or_by_the_folder_around_it(here):
    touched(here / "spark/results/tables/records.parquet")
    expected = ["spark/results/tables/records.parquet"]
    assert other_records({"other_results": ["spark/results"]}) == expected
    assert other_records({"other_results": ["spark"]}) == expected


def test_a_folder_without_tables_is_named():
    with pytest.raises(ConfigError, match=r"other_results\[0\]: nowhere has no tables/records.parquet"):
        other_records({"other_results": ["nowhere"]})


def test_a_pattern_finds_files_with_their_axes(here):
    touched(here / "bench/a/run=0.json")
    touched(here / "bench/b/run=0.json")
    found = imports({"imports": [{"files": "bench/**/run=*.json", **ENTRY}]})
    assert found == [("bench/a/run=0.json", ENTRY), ("bench/b/run=0.json", ENTRY)]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([{"files": "none/*.json"}], r"imports\[0\].files: no file matches 'none/\*.json'"),
        (
            [{"files": "a.json"}, {"files": "*.json"}],
            r"imports\[1\].files: a.json is named by an earlier entry",
        ),
        ([{"files": "a.json", "k": 3}], r"imports\[0\].k: goes with a `method`"),
        ([{"files": "a.json", "method": "mtp"}], r"imports\[0\]: method mtp needs k"),
        ([{"files": "a.json", "method": "none", "k": 2}], r"imports\[0\]: method none has no k"),
    ],
)
def test_what_cannot_be_found_or_meant_is_refused(here, entries, said):
    touched(here / "a.json")
    with pytest.raises(ConfigError, match=said):
        imports({"imports": [ENTRY | entry for entry in entries]})


def test_a_config_may_show_others_alone():
    assert has_others({"other_results": ["x"], "imports": []})
    assert not has_others({"other_results": [], "imports": []})
