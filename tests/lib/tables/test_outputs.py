"""The table of answers: what is compared with what, what is not and why, and what a reader sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from scripts.lib.evidence import DamagedEvidence
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.outputs import ANSWERS, OUTPUTS_SCHEMA, outputs_table, outputs_text, warnings
from tests.evidence_factory import cell
from tests.record_factory import failed, infeasible, measured, mislabelled
from tests.request_factory import request

WORDS = [
    "a",
    "bridge",
    "joins",
    "two",
    "banks",
    "of",
    "a",
    "river",
    "and",
    "people",
    "cross",
    "it",
    "on",
    "foot",
    "or",
    "by",
    "car",
    "every",
    "day",
]


class Store:
    """Cells with the answers behind them. Answers have 20 tokens; `differ` maps an index to the token that is another."""

    def __init__(self):
        self.records, self.answers = [], {}

    def add(
        self,
        method="none",
        k=0,
        concurrency=1,
        repeat=1,
        count=4,
        differ=None,
        salt=None,
        tokens=True,
        **values,
    ):
        subject = cell(method, k, concurrency, repeat=repeat)
        folder = f"store/{subject.path}"
        salt = f"c{concurrency}" if salt is None else salt
        self.answers[folder] = [self._answer(n, salt, (differ or {}).get(n), tokens) for n in range(count)]
        self.records.append(measured(subject, 20.0, **({"temperature": 0.0, "evidence": folder} | values)))
        return folder

    def _answer(self, index, salt, differ, tokens):
        ids = list(range(20))
        if differ is not None:
            ids[differ:] = [100 + n for n in ids[differ:]]
        text = " ".join(WORDS[n % len(WORDS)] if n < 100 else "other" for n in ids)
        return request(
            index,
            output=text,
            prompt_id=f"p{index}",
            request_sha256=f"{salt} {index}",
            token_ids=tuple(ids) if tokens else None,
        )

    def read(self, folder: Path, most: int):
        said = self.answers[str(folder)]
        if isinstance(said, Exception):
            raise said
        return said[:most]

    @property
    def table(self) -> pl.DataFrame:
        return outputs_table(cells_table(self.records), self.read)

    def row(self, method="none", concurrency=1, k=None) -> dict:
        rows = self.table.filter(pl.col("method") == method, pl.col("concurrency") == concurrency)
        if k is not None:
            rows = rows.filter(pl.col("k") == k)
        assert len(rows) == 1
        return rows.row(0, named=True)

    @property
    def text(self) -> str:
        return "\n".join(outputs_text(self.table))


@pytest.fixture
def store():
    return Store()


def test_the_same_answers(store):
    store.add()
    store.add("mtp", 3)
    row = store.row("mtp")
    assert (row["compared"], row["identical"], row["identical_share"]) == (4, 4, 1.0)
    assert (row["verdict"], row["first_difference"], row["per_1000"]) == ("identical", None, 0.0)
    assert "4 of 4" in store.text


def test_where_answers_part(store):
    store.add()
    store.add("mtp", 3, differ={1: 5, 2: 9})
    row = store.row("mtp")
    assert (row["identical"], row["first_differences"], row["first_difference"]) == (2, [5, 9], 7.0)
    assert row["per_1000"] == pytest.approx(1000 * 2 / (20 + 20 + 6 + 10))
    assert (row["verdict"], row["noise_per_1000"], row["noise_from"]) == ("noise unknown", None, None)


def test_each_repeat_is_held_against_the_baselines_of_the_same_number(store):
    for repeat in (1, 2):
        store.add(repeat=repeat, salt=f"r{repeat}")
        store.add("mtp", 3, repeat=repeat, salt=f"r{repeat}", differ={repeat: 3})
    row = store.row("mtp")
    assert (row["compared"], row["identical"]) == (8, 6)


def test_a_missing_baseline_repeat_is_replaced_by_the_first(store):
    store.add(repeat=1)
    store.records.append(failed(cell(repeat=2)))
    store.add("mtp", 3, repeat=2)
    assert store.row("mtp")["compared"] == 4


def test_the_noise_is_the_baseline_on_other_boots(store):
    store.add(repeat=1)
    store.add(repeat=2, differ={0: 4})
    store.add("mtp", 3, repeat=1, differ={0: 4})
    row = store.row("none")
    assert (row["compared"], row["identical"], row["noise_from"]) == (4, 3, "repeats")
    assert store.row("mtp")["verdict"] == "within noise"
    assert store.row("mtp")["noise_share"] == 0.75


def test_without_repeats_it_is_the_baseline_at_other_concurrencies_if_prompts_are_shared(store):
    store.add(salt="same")
    store.add(concurrency=4, salt="same", count=8, differ={1: 2, 7: 1})
    store.add("mtp", 3, salt="same")
    row = store.row("none")
    assert (row["compared"], row["identical"], row["noise_from"]) == (4, 3, "concurrencies")
    assert "against itself, other concurrencies" in row["reason"]


def test_without_either_the_noise_is_said_to_be_unknown(store):
    store.add()
    store.add(concurrency=4)
    store.add("mtp", 3, differ={0: 3})
    row = store.row("none")
    assert (row["compared"], row["noise_from"], row["verdict"]) == (0, None, "not compared")
    assert "not known" in row["reason"]
    assert "Not compared: none c1, none c4: a single run" in " ".join(store.text.split())


def test_a_method_that_says_something_else_is_warned_of(store):
    for repeat in (1, 2):
        store.add(repeat=repeat)
        store.add("mtp", 3, repeat=repeat, differ={n: n % 3 for n in range(4)})
    row = store.row("mtp")
    assert row["verdict"] == "UNUSUAL"
    assert "8 of 8 answers differ" in row["reason"]
    (warning,) = warnings(store.table)
    assert "smollm2 mtp k3, code at concurrency 1" in warning
    assert "WARNING: smollm2 mtp k3" in store.text


def test_a_sound_method_is_not(store):
    store.add()
    store.add("mtp", 3, differ={0: 18})
    assert warnings(store.table) == []
    assert "WARNING" not in store.text


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"temperature": 0.7}, "sampled at temperature 0.7"),
        ({"temperature": None}, "did not tell the temperature"),
        ({"synthetic": True}, "made up by the engine"),
        ({"salt": "elsewhere"}, "no request was answered by both"),
    ],
)
def test_what_is_not_compared_says_why_and_shows_a_sample(store, values, why):
    store.add()
    store.add("mtp", 3, **values)
    row = store.row("mtp")
    assert row["verdict"] == "not compared"
    assert row["compared"] in (None, 0)
    assert why in row["reason"]
    assert row["sample"].startswith("a bridge joins")
    assert why in " ".join(store.text.split())


def test_a_synthetic_baseline_is_no_baseline(store):
    store.add(synthetic=True)
    store.add("mtp", 3)
    assert "`none` has no result" in store.row("mtp")["reason"]


@pytest.mark.parametrize(("lost", "status"), [(failed, "failed"), (infeasible, "infeasible")])
def test_a_cell_without_a_result_says_so(store, lost, status):
    store.add()
    store.records.append(lost(cell("mtp", 3)))
    row = store.row("mtp")
    assert row["reason"] == f"no result ({status})"
    assert row["sample"] is None


def test_a_mislabelled_cell_is_not_compared(store):
    store.add()
    store.records.append(mislabelled(cell("mtp", 3), 20.0))
    assert store.row("mtp")["reason"] == "no result (mislabelled)"


def test_a_failed_baseline_says_so(store):
    store.records.append(failed(cell()))
    store.add("mtp", 3)
    assert "`none` has no result under the same conditions" in store.row("mtp")["reason"]


def test_evidence_that_was_damaged_meanwhile_says_so(store):
    store.add()
    folder = store.add("mtp", 3)
    store.answers[folder] = DamagedEvidence("requests.jsonl cannot be read")
    assert "requests.jsonl cannot be read" in store.row("mtp")["reason"]


def test_only_so_many_answers_are_looked_at(store):
    store.add(count=100)
    store.add("mtp", 3, count=100)
    assert store.row("mtp")["compared"] == ANSWERS


def test_words_are_named_where_there_are_no_tokens(store):
    store.add(tokens=False)
    store.add("mtp", 3, tokens=False, differ={0: 5})
    row = store.row("mtp")
    assert (row["unit"], row["first_differences"]) == ("words", [5])
    assert "counted in words" in store.text


def test_one_sample_per_method_at_its_lowest_concurrency(store):
    for concurrency in (1, 4):
        store.add(concurrency=concurrency)
        store.add("mtp", 3, concurrency)
    samples = [line for line in store.text.splitlines() if line.startswith("- ")]
    assert samples == ["- none c1, prompt p0:", "- mtp k3 c1, prompt p0:"]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("def f():\n    return 1\n", ["      def f():", "          return 1"]),
        ("a\x07b\ufffd", ["      a\\x07b\ufffd"]),
        ("", ["      (empty)"]),
        ("# no heading\n\n| no table |", ["      # no heading", "", "      | no table |"]),
    ],
)
def test_a_sample_is_shown_line_by_line_and_harms_no_markdown(store, said, shown):
    folder = store.add()
    store.answers[folder] = [replace(store.answers[folder][0], output=said)]
    lines = store.text.splitlines()
    at = lines.index("- none c1, prompt p0:") + 2
    assert lines[at : at + len(shown)] == shown


def test_a_long_sample_is_cut_and_wrapped(store):
    folder = store.add()
    store.answers[folder] = [replace(store.answers[folder][0], output="word " * 500)]
    assert len(store.row()["sample"]) == 400
    assert max(map(len, store.text.splitlines())) <= 100


def test_other_lengths_scenarios_and_models_are_not_mixed(store):
    store.add()
    other = cell("mtp", 3, max_model_len=2048)
    store.answers["x"] = store.answers[next(iter(store.answers))]
    store.records.append(measured(other, 20.0, temperature=0.0, evidence="x"))
    assert "`none` has no result" in store.row("mtp")["reason"]


def test_nothing_at_all(store):
    table = store.table
    assert (len(table), dict(table.schema)) == (0, OUTPUTS_SCHEMA)
    assert store.text == "There are no cells."


def test_the_schema_holds_whatever_happened(store):
    store.records += [failed(cell()), infeasible(cell("mtp", 3))]
    assert dict(store.table.schema) == OUTPUTS_SCHEMA
    store.add("ngram", 3)
    assert dict(store.table.schema) == OUTPUTS_SCHEMA
