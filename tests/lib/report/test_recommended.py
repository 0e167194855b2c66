"""The recommendation in the words of the page."""

from __future__ import annotations

import json

from scripts.lib.recommend.build import recommend
from scripts.lib.report.recommended import choices, fleets
from tests.evidence_factory import cell
from tests.record_factory import measured
from tests.report.pages import WISHES
from tests.results_factory import CASES, sweep, tables


def recommendation(records: list[dict]) -> dict:
    found = recommend(tables(records)[1], WISHES, lambda server: 1).as_json
    return json.loads(json.dumps(found))


def test_each_operating_point_with_its_lead() -> None:
    first = choices(recommendation(sweep()))[0]
    assert (first.where, first.best, first.verdict) == ("concurrency 1", "mtp k3", "clear winner")
    assert first.figure == "49.9 tok/s (2.08x none)"
    assert first.margin.endswith("% on mtp k1")


def test_without_a_candidate_only_the_verdict_stands() -> None:
    (one,) = choices(recommendation(CASES["all failed"]()))
    assert (one.best, one.figure, one.verdict) == ("", "", "no candidate")
    assert any("left out: mtp k3" in words for words in one.remarks)


def test_ties_are_remarks() -> None:
    records = [
        measured(cell(method, k, repeat=n), tps + n, requests=20)
        for method, k, tps in (("none", 0, 100.0), ("mtp", 1, 150.0), ("mtp", 3, 150.0))
        for n in (1, 2, 3)
    ]
    (one,) = choices(recommendation(records))
    assert one.best == "mtp k1"
    assert any(words.startswith("as good as each other: mtp k") for words in one.remarks)


def test_a_plan_says_what_to_run_and_what_it_serves() -> None:
    (fleet,) = fleets(recommendation(sweep(concurrencies=(1, 8))))
    assert "requests/s on 1 device" in fleet.headline
    ((server, routes),) = fleet.servers
    assert server == "1 x cpu, vllm: mtp k3, max_model_len 1024"
    assert "100% of code at concurrency 1" in routes


def test_no_plan_says_what_stands_against_it() -> None:
    (fleet,) = fleets(recommendation(CASES["all failed"]()))
    assert "no plan is possible" in fleet.headline
    assert fleet.servers


def test_nothing_is_nothing() -> None:
    assert choices(recommendation([])) == fleets(recommendation([])) == []
