from __future__ import annotations

from itertools import pairwise

import pytest

from scripts.lib.cell import Cell
from scripts.lib.config import ConfigError
from scripts.lib.matrix import expand
from scripts.lib.methods import Method


def method(name, *k, kind=None):
    return Method(name, kind or name, k, {}, {}, {})


METHODS = [method("none"), method("mtp", 1, 3)]


def config(**changes):
    return {
        "hardware": ["cpu"],
        "engine": ["eng"],
        "model": ["m"],
        "max_model_len": [1024, 2048],
        "scenario": ["code"],
        "concurrency": [1, 4],
        "repeats": 1,
        "include": [],
        "exclude": [],
        "overrides": [],
    } | changes


def paths(methods=METHODS, **changes):
    return [cell.path.removeprefix("cpu/eng/m/") for cell in expand(config(**changes), methods).cells]


def test_the_product_in_measurement_order():
    assert paths() == [
        f"{server}/len{length}/code/c{concurrency}/r1"
        for length in (1024, 2048)
        for server in ("none/k0", "mtp/k1", "mtp/k3")
        for concurrency in (1, 4)
    ]


def test_values_keep_the_order_of_the_config():
    ordered = paths([method("mtp", 3, 1), method("none")], max_model_len=[2048, 1024])
    assert ordered[0] == "mtp/k3/len2048/code/c1/r1"
    assert [path.split("/")[0] for path in ordered[:6:2]] == ["mtp", "mtp", "none"]


def test_repeats_are_outermost_and_turn_the_concurrencies_round():
    found = paths(max_model_len=[1024], repeats=2)
    assert found[:2] == ["none/k0/len1024/code/c1/r1", "none/k0/len1024/code/c4/r1"]
    assert found[6:8] == ["none/k0/len1024/code/c4/r2", "none/k0/len1024/code/c1/r2"]
    assert len(found) == 12


def test_cells_of_a_boot_stand_together():
    cells = expand(config(repeats=3, scenario=["a", "b"]), METHODS).cells
    boots = [cell.boot for cell in cells]
    changes = sum(first != second for first, second in pairwise(boots))
    assert changes == len(set(boots)) - 1


def test_exclude_drops_what_matches_all_axes_of_a_rule():
    left = paths(exclude=[{"method": "mtp", "max_model_len": 2048}, {"concurrency": [4], "k": [1, 0]}])
    assert left == [
        "none/k0/len1024/code/c1/r1",
        "mtp/k1/len1024/code/c1/r1",
        "mtp/k3/len1024/code/c1/r1",
        "mtp/k3/len1024/code/c4/r1",
        "none/k0/len2048/code/c1/r1",
    ]


def test_include_adds_cells_with_the_matrix_s_values_for_axes_it_leaves_out():
    plain = paths()
    added = set(paths(include=[{"method": "mtp", "k": 5, "concurrency": 16}])) - set(plain)
    assert added == {"mtp/k5/len1024/code/c16/r1", "mtp/k5/len2048/code/c16/r1"}


def test_include_comes_after_exclude_and_can_bring_cells_back():
    left = paths(exclude=[{"method": "mtp"}], include=[{"method": "mtp", "k": 3, "concurrency": 1}])
    assert "mtp/k3/len1024/code/c1/r1" in left
    assert len(left) == 6


def test_include_of_a_k_alone_leaves_the_baseline_out():
    added = set(paths(include=[{"k": 5}])) - set(paths())
    assert {path.split("/")[0] for path in added} == {"mtp"}
    assert len(added) == 4


def test_included_cells_stand_with_their_server():
    found = paths(include=[{"method": "none", "max_model_len": 1024, "concurrency": 2}])
    assert found[:3] == [f"none/k0/len1024/code/c{concurrency}/r1" for concurrency in (1, 2, 4)]


def test_new_values_may_be_included_for_any_axis():
    cells = expand(config(include=[{"hardware": "gpu", "max_model_len": 4096, "repeat": 3}]), METHODS).cells
    assert {cell.server.hardware for cell in cells} == {"cpu", "gpu"}
    assert Cell.from_path("gpu/eng/m/none/k0/len4096/code/c1/r3") in cells


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"exclude": [{"method": "mpt"}]},
            "exclude[0].method: 'mpt' is no value of this axis; did you mean 'mtp'?",
        ),
        ({"exclude": [{"concurrency": 7}]}, "exclude[0]: matches no cell: {concurrency: 7}"),
        ({"exclude": [{"method": "none", "k": 3}]}, "exclude[0]: matches no cell"),
        ({"include": [{"concurrency": 4}]}, "include[0]: adds no cell"),
        (
            {"overrides": [{"when": {"method": "eagle"}}]},
            "overrides[0].when: matches no server: {method: eagle}",
        ),
    ],
)
def test_a_rule_without_effect_is_a_warning(changes, said):
    matrix = expand(config(**changes), METHODS)
    assert any(said in warning for warning in matrix.warnings)
    assert len(matrix.cells) == 12


def test_rules_that_work_give_no_warning():
    matrix = expand(config(exclude=[{"k": 1}], overrides=[{"when": {"method": "mtp"}}]), METHODS)
    assert matrix.warnings == ()


def test_no_cell_left_is_an_error():
    with pytest.raises(ConfigError, match="no cell"):
        expand(config(exclude=[{"scenario": "code"}]), METHODS)
