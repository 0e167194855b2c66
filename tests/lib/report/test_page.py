"""The report's page on every kind of result: the answer first, everything said, nothing fetched."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from scripts.lib.launch import Launch
from scripts.lib.metrics import METRICS
from scripts.lib.report.page import OPEN_ROWS, render
from tests.evidence_factory import cell
from tests.record_factory import failed, measured
from tests.report.pages import page, results
from tests.results_factory import CASES, METHODS, sweep

VOID = {"meta", "link", "br", "img", "hr"}


class Checked(HTMLParser):
    """Tags that do not close, what the page would fetch, ids, and the visible text."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.ids: list[str] = []
        self.parts: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list) -> None:
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [found[name] for name in ("src", "href") if name in found and found[name][:1] != "#"]
        self.ids += [found["id"]] if "id" in found else []

    def handle_startendtag(self, tag: str, attrs: list) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())


def rendered(records: list[dict], launch_of=lambda server: None) -> Checked:
    return Checked(render(results(records), [], launch_of))


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_whole_and_fetches_nothing(case: str) -> None:
    found = Checked(page(case))
    assert set(found.fetched) <= {"data:,"}
    assert len(found.ids) == len(set(found.ids))
    assert not re.search(r"url\((?!#)", page(case))
    for words in ("Main table", "Plots", "Recommendation", "How it was measured", "What is not trusted"):
        assert words in found.text


def test_the_answer_comes_first() -> None:
    text = Checked(page("whole")).text
    assert text.index("Best everywhere it was measured: mtp k3") < text.index("Main table")
    assert "20 points from 60 cells: 20 valid." in text


def test_ratio_interval_and_verdict_stand_together() -> None:
    text = Checked(page("whole")).text
    assert "49.9 2.08x 2.01 to 2.15, faster" in text
    assert "1.02x 0.98 to 1.05, unresolved" in text


def test_what_is_not_trusted_is_listed_with_reason_remedy_and_log() -> None:
    text = Checked(page("trouble")).text
    for words in (
        "failed (resource_start) , 2 cells: no memory is left for the KV cache",
        "To do: raise gpu_memory_utilization or use a smaller drafter",
        "No available memory for the cache blocks",
        "server.log.gz",
        "infeasible , 1 cell: k 3 must be a multiple",
        "INVALID (incomplete) , 1 cell: 4 of 8 requests",
        "Unresolved: 1 point",
        "Single run: 1 point",
        "UNFAIR (unfair_settings) , 1 cell",
        "Synthetic: 1 point",
    ):
        assert words in text, words
    assert "suffix k8 · concurrency 1 · repeat 1" in text


def test_nothing_to_doubt_is_said() -> None:
    text = Checked(page("baseline alone")).text
    assert "Nothing: every point passed the checks and has a verdict." in text
    without = Checked(page("without baseline")).text
    assert "Nothing: every point" not in without
    assert "there is no none under the same conditions." in without


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("bad baseline", "no verdict: none is invalid"),
        ("empty", "There is no point to show."),
        ("empty", "Nothing was measured"),
        ("all failed", "no operating point has a valid measurement"),
        ("single runs", "resting on a single run"),
    ],
)
def test_poor_results_are_told_as_such(case: str, words: str) -> None:
    assert words in Checked(page(case)).text


def test_texts_of_servers_and_logs_are_escaped() -> None:
    record = failed(cell("mtp", 3), failure_cause="<script>alert(1)</script>", failure_root_line="a < b & c")
    found = rendered([measured(cell(), 100.0), record])
    assert "<script>alert(1)</script>" in found.text
    assert "a < b & c" in found.text


def test_every_server_has_its_command() -> None:
    launch = Launch(
        "vllm",
        "process",
        argv=("vllm", "serve", "a model", "--port", "{port}", "--speculative-config", '{"method":"mtp"}'),
        environment={"VLLM_X": "1 2"},
    )
    records = [
        measured(cell(), 100.0, command="vllm serve recorded"),
        measured(cell("mtp", 3), 150.0),
        failed(cell("mtp", 1)),
    ]
    text = rendered(records, lambda server: launch if server.method == "mtp" else None).text
    assert "vllm serve recorded" in text
    assert "VLLM_X='1 2'" in text
    assert "vllm serve 'a model'" in text
    assert '--speculative-config \'{"method":"mtp"}\'' in text
    assert "mtp k1 len1024" not in text
    unknown = rendered([measured(cell(), 100.0)], lambda server: replace(launch, argv=()))
    assert "It was running already" in unknown.text


def test_many_settings_are_folded() -> None:
    records = sweep(concurrencies=(1,), repeats=1, max_model_len=tuple(range(1024, 1036)))
    html = render(results(records), [], lambda server: None)
    assert html.count('<details class="block" open>') == OPEN_ROWS // len(METHODS)
    assert html.count('<details class="block"') == 12


def test_figures_are_explained_by_the_registry() -> None:
    text = Checked(page("whole")).text
    for name in ("per_request_tps", "acceptance_length", "kv_cache_tokens"):
        assert " ".join(METRICS[name].formula.split()) in text


def test_answers_that_differ_unusually_are_doubts() -> None:
    axes = {
        "hardware": "cpu",
        "engine": "vllm",
        "model": "smollm2",
        "max_model_len": 1024,
        "scenario": "code",
    }
    row = axes | {
        "method": "mtp",
        "k": 3,
        "concurrency": 1,
        "verdict": "UNUSUAL",
        "reason": "4 of 4 answers differ from `none`",
    }
    text = Checked(render(results(sweep(repeats=1), outputs=[row]), [], lambda server: None)).text
    assert "Other answers than none: smollm2 mtp k3" in text
    assert "4 of 4 answers differ from none" in text
    assert "Other answers" not in Checked(page("whole")).text


def test_servers_on_different_gpus_are_said_to_be() -> None:
    records = sweep()
    for number, record in enumerate(records):
        record["gpu_uuids"] = f"GPU-{number % 2}"
    assert "Servers of one hardware ran on 2 different GPUs" in rendered(records).text
    for record in records:
        record["gpu_uuids"] = "GPU-0"
    assert "different GPUs" not in rendered(records).text
