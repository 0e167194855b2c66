"""Evidence of a real run on two H200s (tests/data/h200/README.md) through the records to the tables."""

import polars as pl
import pytest

from scripts.lib.cell import Cell
from scripts.lib.record import record_from_evidence
from scripts.lib.tables.beside import beside_table
from scripts.lib.tables.cells import judged, records_table
from scripts.lib.tables.hardware import hardware_table, hardware_text
from scripts.lib.tables.points import points_table
from scripts.lib.tables.throughput import throughput_table, throughput_text
from scripts.lib.validity import default_limits

GPU_0, GPU_1 = "GPU-f322c491-0efb-b99f-be8a-3edfdd2dc950", "GPU-302f471a-2f49-495c-3f0d-bf7b33a2da4c"


def records(folders):
    return [
        record_from_evidence(folder, Cell.from_path("/".join(folder.parts[-10:-1]))) for folder in folders
    ]


@pytest.fixture(scope="module")
def cells(h200_store):
    folders = sorted(path.parent for path in h200_store.rglob("manifest.json"))
    return judged(records_table(records(f for f in folders if ".attempt-" not in f.name)), default_limits())


def row(cells, engine, method, k, concurrency):
    chosen = cells.filter(
        pl.col("engine").str.starts_with(engine), method=method, k=k, concurrency=concurrency
    )
    return chosen.row(0, named=True)


def nemo(cells, *server):
    return row(cells.filter(model="nemo"), "vllm", *server)


def test_every_cell_was_measured_on_an_h200(cells):
    assert cells["status"].to_list() == ["measured"] * 26
    assert set(cells["device"]) == {"NVIDIA H200", "NVIDIA H200, NVIDIA H200"}
    assert cells["engine_version"].unique().sort().to_list() == ["0.26.0", "0.5.15"]
    assert cells["compiled_in_window"].fill_null(0).max() == 0


@pytest.mark.parametrize(
    ("method", "k", "one", "eight", "length"),
    [
        ("none", 0, 314.1, 1896.7, None),
        ("mtp", 3, 416.5, 2313.4, 2.90),
        ("mtp", 7, 274.4, 1494.5, 2.90),
        ("dspark", 3, 439.3, 1839.4, 2.91),
        ("dspark", 7, 629.2, 2463.2, 2.91),
        ("dflash", 3, 295.0, 107.2, 2.90),
        ("dflash", 7, 382.6, 163.6, 2.90),
    ],
)
def test_throughput_and_acceptance(cells, method, k, one, eight, length):
    assert nemo(cells, method, k, 1)["per_request_tps"] == pytest.approx(one, abs=0.1)
    assert nemo(cells, method, k, 8)["aggregate_tps"] == pytest.approx(eight, abs=0.1)
    lengths = [nemo(cells, method, k, concurrency)["acceptance_length"] for concurrency in (1, 8)]
    assert lengths == ([None, None] if length is None else pytest.approx([length] * 2, abs=0.01))


def test_made_up_acceptance_is_marked_and_compared_with_nothing_real(cells):
    marked = cells.filter("synthetic")["method"].unique().sort().to_list()
    assert marked == ["dflash", "dspark", "mtp"]
    points = points_table(cells)
    assert not points.filter("synthetic")["verdict"].is_in(["faster", "slower"]).any()


def test_noise_of_random_weights_is_called_degenerate(cells):
    """SGLang's n-gram drafts were nearly always right only because the model said one word for ever."""
    found = row(cells, "sglang", "ngram", 3, 8)
    assert found["acceptance_length"] == pytest.approx(3.98, abs=0.01)
    assert found["validity"] == "INVALID"
    assert found["validity_reasons"][0].startswith("degenerate: ")


def test_an_engine_that_stood_still_gives_no_figure_to_believe(cells):
    standing = cells.filter(pl.col("validity_reasons").list.join(" ").str.contains("stalled: "))
    assert set(standing.select("method", "k", "concurrency").rows()) == {("dflash", 3, 8), ("dflash", 7, 8)}
    assert nemo(cells, "dflash", 3, 8)["validity_reasons"][0].startswith(
        "stalled: no token for 90.9 of 95.5 s"
    )


def test_an_engine_that_was_killed_is_a_failed_cell_and_was_measured_again(h200_store, cells):
    [first] = records(h200_store.rglob("*.attempt-1"))
    assert (first["status"], first["failure_phase"]) == ("failed", "measure")
    assert first["failure_root_line"].startswith("vllm.v1.engine.exceptions.EngineDeadError")
    assert nemo(cells, "dflash", 3, 8)["status"] == "measured"
    assert nemo(cells, "dflash", 3, 1)["boot"] != nemo(cells, "dflash", 3, 8)["boot"]


def test_memory_from_both_engines_logs(cells):
    tokens = {
        (k, method): nemo(cells, method, k, 1)["kv_cache_tokens"]
        for method in ("mtp", "dspark")
        for k in (3, 7)
    }
    assert tokens == {
        (3, "mtp"): 1_052_216,
        (7, "mtp"): 546_093,
        (3, "dspark"): 285_525,
        (7, "dspark"): 152_389,
    }
    assert nemo(cells, "none", 0, 1)["kv_cache_tokens"] == 3_893_930
    assert nemo(cells, "none", 0, 1)["weights_gib"] == pytest.approx(58.1)
    assert row(cells, "sglang", "none", 0, 1)["kv_cache_tokens"] == 884_260


def test_energy_as_nvml_told_it(cells):
    found = nemo(cells, "dspark", 3, 8)
    assert found["joules_per_token"] == pytest.approx(0.1371, abs=1e-4)
    assert found["gpu_power_mean_w"] == pytest.approx(252.2, abs=0.1)
    assert found["gpu_memory_peak_gib"] == pytest.approx(129.5, abs=0.1)
    assert cells["foreign_gpu_memory_gib"].max() == 0, "the neighbour's server was on the other GPU"


def test_two_servers_ran_at_once_on_a_gpu_each(cells):
    times = (pl.col("started_at").min().alias("start"), pl.col("finished_at").max().alias("end"))
    alone = cells.filter(pl.col("method") != "none-tp2")
    boots = alone.group_by("boot").agg(pl.col("gpu_uuids").first().alias("gpu"), *times)
    pairs = boots.join(boots, how="cross").filter(
        pl.col("boot") < pl.col("boot_right"),
        pl.col("start") < pl.col("end_right"),
        pl.col("start_right") < pl.col("end"),
    )
    assert set(boots["gpu"]) == {GPU_0, GPU_1}
    assert pairs.height > 1
    assert pairs.filter(pl.col("gpu") == pl.col("gpu_right")).is_empty()


def test_a_server_with_two_ranks_had_both_gpus(cells):
    one, two = (
        row(cells.filter(model="qwen-random"), "vllm", method, 0, 8) for method in ("none", "none-tp2")
    )
    assert set(two["gpu_uuids"].split(", ")) == {GPU_0, GPU_1}
    assert two["kv_cache_tokens"] == 1_798_848, "both GPUs hold half of every token's keys and values"
    assert one["kv_cache_tokens"] == 883_312
    # Both GPUs' energy, power and memory.
    assert two["gpu_memory_peak_gib"] == pytest.approx(2 * one["gpu_memory_peak_gib"], rel=0.02)
    assert two["joules_per_token"] == pytest.approx(0.1718, abs=1e-4)


def test_two_servers_on_one_gpu(cells):
    table = beside_table(cells).sort("concurrency")
    assert table["alone_tps"].to_list() == pytest.approx([479.5, 3578.8], abs=0.1)
    assert table["tps"].to_list() == pytest.approx([254.2, 1831.7], abs=0.1)
    assert table["beside_tps"].to_list() == pytest.approx([991.3, 981.3], abs=0.1)


def test_one_table_has_both_engines(cells):
    points = points_table(cells.filter(pl.col("method").is_in(["none", "ngram"])))
    text = "\n".join(hardware_text(hardware_table(points)))
    assert "| method | k | c | h200 sglang-0.5.15 |   h200 vllm-0.26.0 |" in text
    assert "| none   | - | 8 |         3,157.0 !! |         3,578.8 !! |" in text
    assert "| ngram  | 3 | 8 | 4,667.8 (1.48x) !! | 6,329.5 (1.77x) !! |" in text
    assert "Not alike" not in text, "equal context and slots"


def test_a_method_without_speculation_has_no_k_whatever_its_name(cells):
    text = "\n".join(throughput_text(throughput_table(points_table(cells))))
    assert "| none-tp2    | - |" in text
    assert "| with-second | - |" in text
