"""Evidence of a real run on one H200 (tests/data/h200/README.md) through the records to the tables."""

import tarfile
from pathlib import Path

import polars as pl
import pytest

from scripts.lib.cell import Cell
from scripts.lib.record import record_from_evidence
from scripts.lib.tables.cells import judged, records_table
from scripts.lib.tables.points import points_table
from scripts.lib.tables.throughput import throughput_table, throughput_text
from scripts.lib.validity import default_limits

DATA = Path(__file__).parent / "data" / "h200"


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    folder = tmp_path_factory.mktemp("h200")
    with tarfile.open(DATA / "evidence.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    store = folder / "store"
    manifests = sorted(store.rglob("manifest.json"))
    records = [
        record_from_evidence(path.parent, Cell.from_path(str(path.parent.parent.relative_to(store))))
        for path in manifests
    ]
    return judged(records_table(records), default_limits())


def row(cells, engine, method, concurrency):
    return cells.filter(pl.col("engine").str.starts_with(engine), method=method, concurrency=concurrency).row(
        0, named=True
    )


def test_every_cell_was_measured_on_the_h200(cells):
    assert cells["status"].to_list() == ["measured"] * 11
    assert set(cells["device"]) == {"NVIDIA H200"}
    assert cells["engine_version"].unique().sort().to_list() == ["0.26.0", "0.5.15"]


@pytest.mark.parametrize(
    ("engine", "method", "concurrency", "tps", "length"),
    [
        ("vllm", "none", 1, 308.9, None),
        ("vllm", "none", 8, 1727.7, None),
        ("vllm", "mtp", 1, 326.1, 2.90),
        ("vllm", "mtp", 8, 1731.7, 2.90),
        ("vllm", "dspark", 1, 481.4, 2.91),
        ("vllm", "dspark", 8, 3347.3, 2.91),
        ("vllm", "dflash", 1, 419.5, 2.90),
        ("sglang", "none", 1, 429.4, None),
        ("sglang", "none", 8, 3139.7, None),
        ("sglang", "ngram", 1, 833.0, 3.98),
        ("sglang", "ngram", 8, 4512.6, 3.98),
    ],
)
def test_throughput_and_acceptance(cells, engine, method, concurrency, tps, length):
    found = row(cells, engine, method, concurrency)
    name = "per_request_tps" if concurrency == 1 else "aggregate_tps"
    assert found[name] == pytest.approx(tps, abs=0.1)
    assert found["acceptance_length"] == (None if length is None else pytest.approx(length, abs=0.01))


def test_made_up_acceptance_is_marked_and_compared_with_nothing_real(cells):
    marked = cells.filter("synthetic")["method"].unique().sort().to_list()
    assert marked == ["dflash", "dspark", "mtp"]
    points = points_table(cells)
    assert not points.filter("synthetic")["verdict"].is_in(["faster", "slower"]).any()


def test_noise_of_random_weights_is_called_degenerate(cells):
    """SGLang's n-gram drafts were nearly always right only because the model said one word for ever."""
    found = row(cells, "sglang", "ngram", 8)
    assert found["validity"] == "INVALID"
    assert found["validity_reasons"][0].startswith("degenerate: ")


def test_memory_from_both_engines_logs(cells):
    assert row(cells, "vllm", "none", 1)["kv_cache_tokens"] == 3_928_746
    assert row(cells, "vllm", "dspark", 1)["kv_cache_tokens"] == 285_525
    assert row(cells, "sglang", "none", 1)["kv_cache_tokens"] == 884_260
    assert row(cells, "vllm", "none", 1)["weights_gib"] == pytest.approx(58.1)


def test_energy_as_nvml_told_it(cells):
    found = row(cells, "vllm", "dspark", 8)
    assert found["joules_per_token"] == pytest.approx(1118.03 / (40 * 256), rel=1e-4)
    assert found["gpu_power_mean_w"] == pytest.approx(365.5, abs=0.1)
    assert found["gpu_memory_peak_gib"] == pytest.approx(129.6, abs=0.1)
    assert cells["foreign_gpu_memory_gib"].max() == 0


def test_one_table_has_both_engines(cells):
    text = "\n".join(throughput_text(throughput_table(points_table(cells))))
    assert "## h200, sglang-0.5.15, qwen-random" in text
    assert "## h200, vllm-0.26.0, nemo" in text
