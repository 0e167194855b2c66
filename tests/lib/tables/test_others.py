"""Tables of several runs: every row once, and where it comes from."""

import polars as pl
import pytest

from scripts.lib.cell import AXES, Cell, Server
from scripts.lib.tables.cells import RECORDS_SCHEMA, judged, records_table
from scripts.lib.tables.others import with_others
from scripts.lib.tables.points import points_table
from scripts.lib.tables.throughput import throughput_table, throughput_text
from scripts.lib.validity import default_limits
from tests.record_factory import measured


def cell(hardware, method="none", k=0):
    return Cell(Server(hardware, "vllm", "m", method, k, 1024), "code", 1)


def saved(tmp_path, frame, name):
    path = tmp_path / name / "tables" / "records.parquet"
    path.parent.mkdir(parents=True)
    frame.write_parquet(path)
    return path


def test_two_machines_in_one_table(tmp_path):
    own = records_table([measured(cell("spark"), 20.0), measured(cell("spark", "mtp", 3), 30.0)])
    other = records_table([measured(cell("h100"), 100.0), measured(cell("h100", "mtp", 3), 120.0)])
    both = with_others(own, [saved(tmp_path, other, "h100")])
    assert both.schema == pl.Schema(RECORDS_SCHEMA)
    cells = judged(both, default_limits())
    speedups = dict(cells.filter(method="mtp").select("hardware", "speedup").iter_rows())
    assert speedups == {"spark": pytest.approx(1.5), "h100": pytest.approx(1.2)}
    assert cells.filter(hardware="h100", method="none")["notes"].item().to_list() == [
        f"from {tmp_path / 'h100'}"
    ]


def test_a_cell_that_both_have_is_ones_own_and_says_so(tmp_path):
    own = records_table([measured(cell("spark"), 20.0)])
    other = records_table([measured(cell("spark"), 99.0)])
    row = with_others(own, [saved(tmp_path, other, "old")]).row(0, named=True)
    assert row["aggregate_tps"] == 20.0
    assert "measured in" in row["notes"][0]


def test_f29_a_scenario_of_the_same_name_with_other_prompts_is_another_experiment(tmp_path):
    ours, theirs = {"scenario_sha256": "a" * 64}, {"scenario_sha256": "b" * 64}
    own = records_table([measured(cell("spark"), 20.0, **ours)])
    other = records_table(
        [
            measured(cell("spark", "mtp", 3), 60.0, **theirs),
            measured(cell("h100"), 90.0, **theirs),
            measured(cell("b200"), 95.0, **ours),
            measured(cell("gb200"), 97.0),  # of a version that did not tell
        ]
    )
    both = with_others(own, [saved(tmp_path, other, "old"), saved(tmp_path, other, "older")])
    assert dict(both.select("hardware", "scenario").filter(pl.col("hardware") != "spark").iter_rows()) == {
        "h100": "code-bbbbbbbb",
        "b200": "code",
        "gb200": "code",
    }
    mtp = judged(both, default_limits()).filter(method="mtp").row(0, named=True)
    assert (mtp["scenario"], mtp["speedup"]) == ("code-bbbbbbbb", None)
    assert mtp["notes"][1] == (
        "scenario code has other contents there than here, so it is another one: code-bbbbbbbb"
    )


def test_what_was_measured_there_with_another_number_of_requests_is_unfair_here(tmp_path):
    own = records_table([measured(cell("spark"), 20.0, requests=20, key="a")])
    theirs = [measured(cell("spark", "mtp", 3), 30.0, requests=40, key="b")]
    theirs += [measured(cell("spark", "eagle", 3), 30.0, requests=20, key="c")]
    both = with_others(own, [saved(tmp_path, records_table(theirs), "old")])
    cells = judged(both, default_limits())
    assert dict(cells.select("method", "validity").iter_rows()) == {
        "none": "VALID",
        "mtp": "UNFAIR",
        "eagle": "VALID",
    }
    text = "\n".join(throughput_text(throughput_table(points_table(cells))))
    assert "30.0 (1.50x) !" in text


def test_a_table_of_an_earlier_version_lacks_columns(tmp_path):
    other = records_table([measured(cell("h100"), 100.0)]).drop("ttft_mean_s").with_columns(old=1)
    both = with_others(records_table([]), [saved(tmp_path, other, "h100")])
    assert both["ttft_mean_s"].to_list() == [None]
    assert "old" not in both.columns


def test_some_other_parquet_file_is_refused(tmp_path):
    path = saved(tmp_path, pl.DataFrame({"x": [1]}), "wrong")
    with pytest.raises(ValueError, match=f"no table of records: it has no column {AXES[0]}"):
        with_others(records_table([]), [path])
