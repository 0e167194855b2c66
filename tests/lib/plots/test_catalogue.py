"""Every plot on every kind of result: it says what was measured on what, shows what may be believed, and is never empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import write_plot
from scripts.lib.plots.names import TITLES
from tests.results_factory import CASES, sweep, tables

CAPTIONS = Path(__file__).parents[3] / "workflow" / "report"


@pytest.fixture(scope="module")
def points() -> dict[str, pl.DataFrame]:
    return {name: tables(make())[1] for name, make in CASES.items()}


def rows_of(spec: dict) -> list[dict]:
    """The rows behind all panels."""
    own = spec["data"]["values"] if "data" in spec else []
    return own + [row for panel in spec.get("concat", []) for row in rows_of(panel)]


def words_of(spec: dict) -> str:
    title = spec["title"]
    return " ".join(
        [title["text"], *title.get("subtitle", []), *(row.get("text", "") for row in rows_of(spec))]
    )


def marks(spec: object) -> Iterator[str]:
    if isinstance(spec, dict):
        if "mark" in spec:
            mark = spec["mark"]
            yield mark["type"] if isinstance(mark, dict) else mark
        for value in spec.values():
            yield from marks(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from marks(value)


def test_the_catalogue_the_titles_and_the_captions_are_the_same_plots() -> None:
    assert list(DRAW) == list(TITLES)
    assert {path.stem for path in CAPTIONS.glob("*.rst")} - {"workflow"} >= set(DRAW)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", DRAW)
def test_a_plot_is_never_empty(name: str, case: str, points: dict[str, pl.DataFrame]) -> None:
    spec = DRAW[name](points[case]).to_dict()
    assert spec["title"]["text"] == TITLES[name]
    assert rows_of(spec)
    assert set(marks(spec)) != {"text"} or len(words_of(spec)) > len(TITLES[name]) + 15


@pytest.mark.parametrize("name", [name for name in DRAW if name != "hardware"])
def test_a_plot_says_what_was_measured_on_what(name: str, points: dict[str, pl.DataFrame]) -> None:
    words = words_of(DRAW[name](points["whole"]).to_dict())
    parts = ["cpu", "vllm", "smollm2", "max_model_len 1024"]
    if name not in ("kv_cache", "startup"):
        parts += ["scenario code", "Median of 3 repeats"]
    assert [part for part in parts if part not in words] == []


def test_machines_are_told_apart(points: dict[str, pl.DataFrame]) -> None:
    spec = DRAW["hardware"](points["machines"]).to_dict()
    machines = {row["series"].split()[0] for row in rows_of(spec)}
    assert machines == {"cpu", "dgx-spark", "h200"}
    assert {row["baseline"] for row in rows_of(spec)} == {True, False}
    assert "Only one machine and engine (cpu, vllm)" in words_of(DRAW["hardware"](points["whole"]).to_dict())
    assert "No point has a throughput" in words_of(DRAW["hardware"](points["all failed"]).to_dict())


@pytest.mark.parametrize("name", ["throughput", "pareto", "k_curve", "hardware"])
def test_intervals_are_drawn_where_there_are_repeats(name: str, points: dict[str, pl.DataFrame]) -> None:
    def drawn(case: str) -> list[bool]:
        rows = rows_of(DRAW[name](points[case]).to_dict())
        return [row["low"] is not None for row in rows if "low" in row]

    assert all(drawn("machines"))
    assert not any(drawn("single runs"))


def test_the_heat_map_colours_trusted_ratios_alone_and_says_why_not(points: dict[str, pl.DataFrame]) -> None:
    rows = rows_of(DRAW["speedup"](points["trouble"]).to_dict())
    found = {(row["series"], row["concurrency"]): row for row in rows}
    kinds = {at: (row["kind"], row["shown"], row["below"]) for at, row in found.items()}
    assert kinds["eagle k3", 1] == ("plain", "failed", "")
    assert kinds["mtp k5", 1] == ("plain", "infeasible", "")
    assert kinds["mtp k3", 16] == ("plain", "mislabelled", "")
    assert kinds["suffix k8", 1][0] == "plain"
    assert kinds["suffix k8", 1][2].startswith("incomplete")
    assert kinds["none", 1] == ("baseline", "24.0 tok/s", "")
    assert kinds["ngram k3", 4][2] == "unresolved"
    assert found["mtp k3", 1]["clear"]
    assert not found["ngram k3", 4]["clear"]
    assert all(row["ratio"] is None for row in rows if row["kind"] != "ratio")
    assert "2.08x (2.01 to 2.15), faster" in found["mtp k3", 1]["label"]


def test_without_a_baseline_the_heat_map_shows_throughput(points: dict[str, pl.DataFrame]) -> None:
    rows = rows_of(DRAW["speedup"](points["without baseline"]).to_dict())
    assert {(row["kind"], row["below"]) for row in rows} == {("plain", "no baseline")}
    assert "38.1 tok/s" in [row["shown"] for row in rows]


def test_a_ratio_to_a_baseline_that_is_not_valid_is_shown_as_such(points: dict[str, pl.DataFrame]) -> None:
    rows = rows_of(DRAW["speedup"](points["bad baseline"]).to_dict())
    speculating = [row for row in rows if row["series"] != "none"]
    assert {(row["kind"], row["below"]) for row in speculating} == {("plain", "none is invalid")}
    assert all(row["label"].endswith(", no verdict: none is invalid") for row in speculating)
    best = [row for row in rows_of(DRAW["hardware"](points["bad baseline"]).to_dict()) if not row["baseline"]]
    assert all(row["text"].endswith("x, none is invalid)") for row in best)


def test_hollow_points_are_explained(points: dict[str, pl.DataFrame]) -> None:
    words = words_of(DRAW["throughput"](points["trouble"]).to_dict())
    assert "diamond = unresolved" in words
    assert "square = single run" in words
    assert "cross = invalid" in words


def test_files_need_neither_network_nor_browser(tmp_path: Path, points: dict[str, pl.DataFrame]) -> None:
    write_plot(DRAW["acceptance"](points["whole"]), tmp_path / "acceptance", "A <title>")
    svg, html = ((tmp_path / f"acceptance.{form}").read_text(encoding="utf-8") for form in ("svg", "html"))
    assert svg.startswith("<svg")
    assert TITLES["acceptance"] in svg
    assert "mtp k3, position 1: 80% kept" in svg
    assert "<script src=" not in html
    assert "vegaEmbed" in html
    assert "<title>A &lt;title&gt;</title>" in html
    png = (tmp_path / "acceptance.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") > 800


def test_a_large_picture_is_not_made_sharper_still(tmp_path: Path) -> None:
    methods = [("none", 0), *(("mtp", k) for k in range(1, 16))]
    records = sweep(methods, (1, 2, 4, 8), repeats=1, max_model_len=tuple(range(1024, 1036)))
    write_plot(DRAW["speedup"](tables(records)[1]), tmp_path / "large", "large")
    svg = (tmp_path / "large.svg").read_text(encoding="utf-8")
    width = re.search(r'<svg[^>]* width="([0-9]+)', svg)[1]
    assert int.from_bytes((tmp_path / "large.png").read_bytes()[16:20], "big") == int(width)
