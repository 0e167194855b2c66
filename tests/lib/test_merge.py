from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.merge import matches, merge_environment, merge_flags


def test_later_levels_win_flag_by_flag():
    assert merge_flags([{"a": 1, "b": 1}, {"b": 2, "c": 2}, {"c": 3}]) == {"a": 1, "b": 2, "c": 3}


def test_false_and_null_remove_an_inherited_flag():
    assert merge_flags([{"a": True, "b": 1}, {"a": False, "b": None}]) == {}
    assert merge_flags([{"a": True}, {"a": False}, {"a": 5}]) == {"a": 5}


def test_zero_and_empty_text_are_values():
    assert merge_flags([{"a": 1, "b": "x"}, {"a": 0, "b": ""}]) == {"a": 0, "b": ""}


def test_a_switch_and_its_negation_are_one_flag():
    assert merge_flags([{"enable-x": True}, {"no-enable-x": True}]) == {"no-enable-x": True}
    assert merge_flags([{"no-enable-x": True}, {"enable-x": True}]) == {"enable-x": True}


def test_mappings_merge_by_key_and_null_removes_one():
    low = {"compilation-config": {"mode": 3, "deep": {"a": 1, "b": 2}}}
    high = {"compilation-config": {"mode": None, "deep": {"b": 3}, "new": 1}}
    assert merge_flags([low, high]) == {"compilation-config": {"deep": {"a": 1, "b": 3}, "new": 1}}


def test_a_mapping_replaces_a_scalar_and_the_other_way_round():
    assert merge_flags([{"a": 1}, {"a": {"b": 2}}]) == {"a": {"b": 2}}
    assert merge_flags([{"a": {"b": 2}}, {"a": 1}]) == {"a": 1}


def test_lists_are_replaced_not_joined():
    assert merge_flags([{"a": [1, 2]}, {"a": [3]}]) == {"a": [3]}


def test_environment_values_become_text_and_null_removes():
    assert merge_environment([{"A": 1, "B": "x"}, {"A": 0.5, "B": None, "C": ""}]) == {"A": "0.5", "C": ""}


def test_matches_needs_every_axis_and_any_of_a_list():
    axes = {"method": "mtp", "k": 3}
    assert matches({"method": "mtp", "k": [1, 3]}, axes)
    assert not matches({"method": "mtp", "k": 1}, axes)
    assert matches({}, axes)


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3))
levels = st.lists(
    st.dictionaries(
        st.sampled_from("abcd"), st.one_of(scalars, st.dictionaries(st.sampled_from("xy"), scalars))
    )
)


@given(levels)
def test_merging_changes_no_level_and_is_the_same_in_steps(given_levels):
    import copy

    before = copy.deepcopy(given_levels)
    whole = merge_flags(given_levels)
    assert given_levels == before
    stepwise: dict = {}
    for level in given_levels:
        stepwise = merge_flags([stepwise, level])
    assert stepwise == whole
    assert not any(value is None or value is False for value in whole.values())
