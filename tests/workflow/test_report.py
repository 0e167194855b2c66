"""The report as its users get it: one page from `snakemake report`, and Snakemake's own."""

from __future__ import annotations

import zipfile

from scripts.lib.plots.names import TITLES

CAPTIONED = "The grey row is the baseline's own throughput"


def test_one_page_and_snakemakes_own_report(project):
    project.save(concurrency=[1])
    project.run("report")
    results = project.folder / "results"
    page = (results / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg ") == len(TITLES)
    for beside in ("tables/throughput.md", "tables/validity.md", "deploy/README.md"):
        assert (results / beside).is_file(), "what the page says, the tables and the deployment say too"
    assert "mtp k3" in page
    assert "fake_server" in page, "the command of each server"
    assert CAPTIONED in " ".join(page.split())
    for plot in TITLES:
        for form in ("html", "svg", "png"):
            assert (results / f"plots/{plot}.{form}").stat().st_size > 1000
    assert "Nothing to be done" in project.run("report")

    project.run("report", "--report", "own.zip")
    with zipfile.ZipFile(project.folder / "own.zip") as archive:
        names = {name.rsplit("/")[-1] for name in archive.namelist()}
        own = archive.read("own/report.html").decode()
    assert {f"{plot}.html" for plot in TITLES} <= names
    assert "The grey row is the baseline" in own
    assert "Speed-up over no speculation" in own


def test_a_sweep_in_which_nothing_starts_has_a_report_that_says_so(project):
    project.faults({"kind": "die_at_start", "cause": "ValueError: No available memory for the cache blocks."})
    project.save(concurrency=[1])
    project.run("report")
    page = (project.folder / "results/report.html").read_text(encoding="utf-8")
    assert "no operating point has a valid measurement" in page
    assert "failed" in page
