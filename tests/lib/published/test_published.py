"""Published figures as data, and a run put beside them."""

from __future__ import annotations

import polars as pl
import pytest
import yaml

from scripts.lib.config import REPOSITORY, ConfigError
from scripts.lib.published.compare import SCHEMA, published_table, published_text
from scripts.lib.published.data import load_published
from scripts.lib.tables.cells import cells_table
from scripts.lib.tables.points import points_table
from tests.evidence_factory import cell
from tests.lib.tables.test_cells import RECORDS
from tests.record_factory import measured

CONFIG = [REPOSITORY / "config"]
STUDY_A = {
    ("none", 0): (81.27, 241.67),
    ("mtp", 3): (111.36, 302.27),
    ("dflash", 3): (95.48, 268.61),
    ("dspark", 3): (124.24, 354.56),
}
STUDY_B = {
    "hardware": "dgx-spark",
    "engine": "vllm-0.27.1",
    "model": "nemotron-3.5-lightning-nvfp4",
    "max_model_len": 65536,
}
FLAGS = {"gpu-memory-utilization": 0.91}


def run(factor: float = 1.0, **axes: object) -> list[dict]:
    """Study A's figures times a factor, on its own machine or with other axes."""
    conditions = {
        "hardware": "dgx-spark",
        "engine": "vllm-0.27.1",
        "model": "nemotron-3.5-lightning-nvfp4",
        "max_model_len": 65536,
        "scenario": "code",
    } | axes
    return [
        measured(
            cell(method, k, concurrency, **conditions),
            tps * factor,
            requests=requests,
            per_request_tps=tps * factor,
        )
        for (method, k), pair in STUDY_A.items()
        for concurrency, tps, requests in zip((1, 8), pair, (10, 80), strict=True)
    ]


def compared(records: list[dict], flags: dict | None = FLAGS) -> pl.DataFrame:
    return published_table(load_published(CONFIG), points_table(cells_table(records)), lambda server: flags)


def headline(table: pl.DataFrame) -> pl.DataFrame:
    """Study A's main table: per request at concurrency 1, all requests at 8."""
    one = (pl.col("concurrency") == 1) & (pl.col("metric") == "per_request_tps")
    eight = (pl.col("concurrency") == 8) & (pl.col("metric") == "aggregate_tps")
    return table.filter(pl.col("study") == "a", one | eight)


def test_the_shipped_file_has_the_figures_of_the_studies() -> None:
    a, b, c = load_published(CONFIG)
    figures = {
        (f.of.get("method"), f.of.get("k"), f.of.get("concurrency"), f.metric): f.value for f in a.figures
    }
    for (method, k), (one, eight) in STUDY_A.items():
        assert figures[method, k, 1, "per_request_tps"] == one
        assert figures[method, k, 8, "aggregate_tps"] == eight
        if method != "none":
            assert figures[method, k, 1, "speedup"] == pytest.approx(one / 81.27, abs=1e-4)
            assert figures[method, k, 8, "speedup"] == pytest.approx(eight / 241.67, abs=1e-4)
    assert {f.metric for f in b.figures} >= {
        "kv_cache_tokens",
        "weights_gib",
        "acceptance_length",
        "ttft_median_s",
    }
    assert c.figures[0].conditions["max_model_len"] == (1048576,)


def test_the_same_run_has_ratio_one_and_no_difference() -> None:
    table = compared(run())
    same = headline(table)
    assert same["ratio"].to_list() == pytest.approx([1.0] * 8)
    assert same["differs"].to_list() == [[]] * 8


def test_conditions_that_differ_are_named() -> None:
    table = headline(compared(run(0.5, hardware="h100", max_model_len=1024), {"gpu-memory-utilization": 0.9}))
    row = table.filter(pl.col("method") == "mtp").row(0, named=True)
    assert row["ratio"] == pytest.approx(0.5)
    assert row["differs"] == [
        "hardware h100, not dgx-spark",
        "max_model_len 1024, not 65536",
        "gpu-memory-utilization 0.9, not 0.91",
    ]


def test_the_nearest_conditions_are_taken() -> None:
    table = headline(compared([*run(2.0, hardware="h100"), *run(1.0)]))
    assert table.filter(pl.col("method") == "dspark")["ratio"].to_list() == pytest.approx([1.0, 1.0])


def test_memory_is_a_fact_of_the_server_whatever_was_asked_of_it() -> None:
    """Study B's KV cache was read at forced-256; study A's scenario has the same server."""
    record = measured(
        cell(
            concurrency=4,
            hardware="dgx-spark",
            engine="vllm-0.27.1",
            model="nemotron-3.5-lightning-nvfp4",
            max_model_len=65536,
        ),
        100.0,
        weights_gib=17.62,
    )
    table = compared([record], {"gpu-memory-utilization": 0.85, "max-num-seqs": 8})
    row = table.filter(pl.col("metric") == "weights_gib", pl.col("method") == "none").row(0, named=True)
    assert (row["ratio"], row["differs"]) == (1.0, [])


def test_what_was_not_run_is_said() -> None:
    table = compared([record for record in run() if record["method"] != "dspark"])
    missing = headline(table).filter(pl.col("method") == "dspark")
    assert missing["measured"].to_list() == [None, None]
    assert missing["differs"].to_list()[0] == ["no dspark k3 at concurrency 1 in this run"]


@pytest.mark.parametrize("records", RECORDS.values(), ids=list(RECORDS))
def test_any_run_gives_a_table_and_a_text(records: list[dict]) -> None:
    table = compared(records)
    assert table.schema == pl.Schema(SCHEMA)
    text = "\n".join(published_text(load_published(CONFIG), table))
    for study in load_published(CONFIG):
        assert study.title in text
    assert "Not compared" in text


def test_the_text_shows_figures_and_differences() -> None:
    studies = load_published(CONFIG)
    text = "\n".join(published_text(studies, compared(run(1.1, hardware="h200"))))
    assert "124.2" in text
    assert "1.10x" in text
    assert "- hardware h200, not dgx-spark" in text


def test_rows_refer_to_the_differences_that_are_theirs() -> None:
    """Study B has the KV cache of three servers; a run of one of them is the same as one row alone."""
    record = measured(cell(**STUDY_B), 100.0, kv_cache_tokens=18448384)
    table = compared([record], {"gpu-memory-utilization": 0.85, "max-num-seqs": 8})
    lines = published_text(load_published(CONFIG), table)
    rows = [line.replace("|", " ").split() for line in lines if "KV cache" in line]
    numbers = {row[6]: row[9:] for row in rows if row[6] in ("18,448,384", "18,298,197")}
    assert numbers == {"18,448,384": ["2"], "18,298,197": ["3", "2"]}
    assert "- differs 2: method none, not stated in the study" in lines
    assert "- differs 3: model nemotron-3.5-lightning-nvfp4, not nemotron-3-nano-nvfp4" in lines
    assert "max_concurrency of a point at concurrency 1 is not known here" in lines[-1]


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ({"method": "none", "per_request_tsp": 1.0}, "did you mean 'per_request_tps'"),
        ({"method": "none", "per_request_tps": "fast"}, "'fast' is no number"),
        ({"method": "none"}, "has no metric"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path, figure, words) -> None:
    path = tmp_path / "published.yaml"
    path.write_text(yaml.safe_dump({"studies": {"x": {"title": "X", "figures": [figure]}}}))
    with pytest.raises(ConfigError, match=r"studies\.x\.figures\[0\]") as error:
        load_published([tmp_path])
    assert words in str(error.value)


def test_without_a_file_the_error_says_which(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"published\.yaml"):
        load_published([tmp_path])


def test_a_ratio_is_not_valid_where_its_baseline_is_not() -> None:
    records = [r | ({"wall_s": 0.2} if r["method"] == "none" else {}) for r in run()]
    table = compared(records).filter(pl.col("measured").is_not_null(), pl.col("method") != "none")
    found = dict(table.select("metric", "validity").unique().rows())
    assert found["speedup"] == "INVALID"
    assert {validity for metric, validity in found.items() if metric != "speedup"} == {"VALID"}
