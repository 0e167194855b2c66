"""The recommendation as people and programs read it."""

from __future__ import annotations

import json

import polars as pl

from scripts.lib.recommend.answer import answer
from scripts.lib.recommend.build import Recommendation
from scripts.lib.recommend.candidates import objection, operating_points
from scripts.lib.recommend.choice import choose
from scripts.lib.recommend.table import SCHEMA, recommendation_table, recommendation_text
from scripts.lib.recommend.traffic_plan import plan_traffic
from scripts.lib.recommend.wishes import read_wishes
from tests.evidence_factory import cell
from tests.lib.recommend.cases import candidate, operating_point
from tests.lib.recommend.test_traffic_plan import NO_WISHES
from tests.record_factory import measured, points_of

ONE = operating_point(
    candidate("none", [80.0, 80.4, 80.2]),
    candidate("mtp k3", [120.0, 121.0, 120.5], speedup=1.5, speedup_low=1.48, speedup_high=1.52),
    candidate("ngram k5", [900.0, 901.0, 902.0], objection="INVALID: too_fast: above 6 x none"),
)
EIGHT = operating_point(
    candidate("none", [300.0, 310.0, 305.0], 8), candidate("mtp k3", [308.0, 297.0, 304.0], 8)
)
NOTHING = operating_point(candidate("none", [], 8, objection="INVALID: failed"), concurrency=8)


def recommendation(*points):
    choices = tuple(choose(point, {}) for point in points)
    return Recommendation(choices, tuple(plan_traffic(points, read_wishes(NO_WISHES), lambda server: 1)))


def test_the_table_has_one_typed_row_per_operating_point() -> None:
    table = recommendation(ONE, EIGHT, NOTHING).table
    assert table.schema == pl.Schema(SCHEMA)
    assert table["verdict"].to_list() == ["clear winner", "no clear winner", "no candidate"]
    assert table["method"].to_list() == ["mtp", "none", None]
    assert table["k"].to_list() == [3, 0, None]
    assert table["speedup"].to_list() == [1.5, None, None]
    assert table["tied"].to_list() == [[], ["none", "mtp k3"], []]
    assert table["excluded"].to_list()[0] == ["ngram k5: INVALID: too_fast: above 6 x none"]
    assert recommendation_table([]).schema == table.schema


def test_who_compares_engines_is_told_where_they_stand_side_by_side() -> None:
    words = "- Machines and engines side by side, and what was not alike: hardware.md"
    other = operating_point(candidate("none", [80.0]), engine="sglang")
    assert words in recommendation_text(recommendation_table([choose(ONE, {}), choose(other, {})]))
    elsewhere = operating_point(candidate("none", [80.0]), engine="sglang", max_model_len=7)
    assert words not in recommendation_text(recommendation_table([choose(ONE, {}), choose(elsewhere, {})]))


def test_several_checks_are_named_and_a_single_one_is_explained() -> None:
    def reason(*words: str) -> str:
        row = {"validity": "INVALID", "validity_reasons": list(words)}
        return objection(row)

    assert reason("short_window: 0.9 s", "client_lag: 3%", "short_window: 0.8 s", "client_lag: 5%") == (
        "INVALID: short_window, client_lag"
    )
    assert reason("short_window: 0.9 s", "short_window: 0.8 s") == "INVALID: short_window: 0.9 s"
    assert reason() == "INVALID: no reason is given"


def test_limits_are_named_where_nothing_keeps_them() -> None:
    assert "keeps the limits" not in answer([choose(NOTHING, {})])[0]
    assert "keeps the limits" in answer([choose(ONE, {"kv_cache_tokens": 1})])[0]


def test_the_text_shows_choice_margin_and_verdict() -> None:
    text = "\n".join(recommendation(ONE, EIGHT).text)
    assert "120.5 (1.50x)" in text
    assert "+50." in text
    assert "on none" in text
    assert "no clear winner" in text
    assert "- ngram k5: INVALID: too_fast: above 6 x none (code length 1024 c1)" in text
    assert "## What to run for toy" in text


def test_the_answer_is_two_sentences() -> None:
    assert answer([]) == ["Nothing was measured.", "So there is nothing to recommend."]
    nothing = answer([choose(NOTHING, {}), choose(ONE, {"kv_cache_tokens": 1})])
    assert nothing[0].startswith("Nothing can be recommended")
    assert nothing[1].startswith("The commonest reason is limit kv_cache_tokens (2 of 4 candidates).")
    assert "INVALID: failed (1 of 1 candidate)" in answer([choose(NOTHING, {})])[1]
    what, how_sure = answer([choose(ONE, {}), choose(EIGHT, {})])
    assert what == (
        "What is best depends on the conditions: mtp k3 at concurrency 1 (1.50x `none`); none at concurrency 8 (nothing is shown to be faster)."
    )
    assert how_sure == (
        "Of 2 operating points: 1 clear, 1 without a clear winner (the smallest k is taken); "
        "1 of 5 candidates were left out, most often for INVALID: too_fast."
    )
    assert answer([choose(ONE, {})])[0] == "Best everywhere it was measured: mtp k3 (1.50x `none`)."


def test_without_a_baseline_no_ratio_is_claimed() -> None:
    for none in ([], [candidate("none", [], objection="INVALID: failed")]):
        found = recommendation(operating_point(*none, candidate("mtp k3", [120.0])))
        assert answer(found.choices)[0] == (
            "Best everywhere it was measured: mtp k3 (no valid `none` to compare with)."
        )
        (row,) = [line for line in found.text if line.startswith("| code")]
        assert [part.strip() for part in row.split("|")][4:6] == ["mtp k3", "120.0"]


def test_many_different_winners_are_counted_and_not_listed() -> None:
    """Five winners, scattered over two scenarios: no condition sets them apart."""
    points = [
        operating_point(
            candidate("none", [10.0], c), candidate(f"mtp k{k}", [20.0], c, speedup=2.0), scenario=scenario
        )
        for scenario, ks in {"chat": (1, 2, 3, 4), "code": (2, 3, 4, 5)}.items()
        for c, k in zip((1, 2, 4, 8), ks, strict=True)
    ]
    what, _ = answer([choose(point, {}) for point in points])
    assert what == (
        "What is best depends on the conditions: mtp k2 at 2 of 8 operating points (2.00x `none`); "
        "mtp k3 at 2 of 8 operating points (2.00x `none`); mtp k4 at 2 of 8 operating points (2.00x `none`); "
        "2 others at 2 of 8 operating points."
    )


def test_an_empty_table_says_so() -> None:
    assert recommendation_text(recommendation_table([])) == [
        "Nothing was measured, so nothing can be recommended."
    ]
    assert "Nothing was measured." in recommendation().text


def test_the_machine_readable_form_is_json_and_has_it_all() -> None:
    found = json.loads(json.dumps(recommendation(ONE, EIGHT).as_json, allow_nan=False))
    assert [row["method"] for row in found["points"]] == ["mtp", "none"]
    (plan,) = found["plans"]
    assert plan["servers"][0]["model"] == "toy"
    assert plan["requests_per_s"] > 0
    assert {route["concurrency"] for route in plan["routes"]} == {1, 8}
    assert len(found["answer"]) == 2


def test_no_ratio_is_claimed_to_a_baseline_that_is_not_valid() -> None:
    points = points_of([measured(cell(), 20.0, wall_s=0.2), measured(cell("mtp", 1), 30.0)])
    choice = choose(operating_points(points)[0], {})
    assert answer([choice])[0] == "Best everywhere it was measured: mtp k1 (no valid `none` to compare with)."
    assert recommendation_table([choice])["speedup"].to_list() == [None]
    good = points_of([measured(cell(), 20.0), measured(cell("mtp", 1), 30.0)])
    assert recommendation_table([choose(operating_points(good)[0], {})])["speedup"].to_list() == [1.5]
