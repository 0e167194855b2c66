"""The report and a plot as a browser shows them: nothing cut off, nothing empty, nothing to complain about."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from scripts.lib.plots.catalogue import DRAW
from scripts.lib.plots.files import write_plot
from scripts.lib.plots.names import TITLES
from tests.report.pages import page
from tests.results_factory import CASES, tables

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (envs/dev.txt)")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH (Debian: chromium)"),
]

WIDTHS = (1280, 400)
_MARKS = ", ".join(
    f"[aria-roledescription='{kind}'][aria-label]" for kind in ("point", "bar", "rect mark", "text mark")
)


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium of the system. Root has no sandbox to offer it, and opens our own files only."""
    with sync_api.sync_playwright() as driver:
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


class Shown:
    """A file in a window, and everything the browser had to complain about."""

    def __init__(self, browser, file: Path, width: int, scheme: str = "light"):
        self.complaints: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        self.page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("requestfailed", lambda request: self.complaints.append(f"wanted {request.url}"))
        self.page.goto(file.as_uri())

    @property
    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_the_report_fits_and_shows_every_plot(browser, tmp_path: Path, case: str, width: int) -> None:
    file = tmp_path / "report.html"
    file.write_text(page(case), encoding="utf-8")
    shown = Shown(browser, file, width)
    shown.page.screenshot(path=tmp_path / f"report-{width}.png", full_page=True)
    shown.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert shown.overflow == 0
    assert shown.complaints == []
    pictures = shown.page.locator("figure svg")
    assert pictures.count() == len(TITLES)
    for picture in pictures.all():
        box = picture.bounding_box()
        assert box["width"] > 300
        assert box["height"] > 30
        assert picture.locator(_MARKS).count() > 0, "an empty chart, or a note without words"
    assert shown.page.locator("h1").is_visible()


def test_marks_tell_their_figures_and_the_page_follows_the_colour_scheme(browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(page("whole"), encoding="utf-8")
    light, dark = (Shown(browser, file, 1280, scheme) for scheme in ("light", "dark"))
    colours = [
        shown.page.evaluate("getComputedStyle(document.body).backgroundColor") for shown in (light, dark)
    ]
    assert colours[0] != colours[1]
    mark = light.page.locator("#plot-throughput [aria-roledescription='point']").last
    mark.hover(force=True)
    tip = light.page.locator("#tip")
    assert tip.is_visible()
    assert tip.inner_text() == mark.get_attribute("aria-label")
    light.page.mouse.move(0, 0)
    assert tip.is_hidden()


@pytest.mark.parametrize("name", DRAW)
def test_a_plot_of_its_own_draws_without_a_network(browser, tmp_path: Path, name: str) -> None:
    write_plot(DRAW[name](tables(CASES["machines"]())[1]), tmp_path / name, TITLES[name])
    shown = Shown(browser, tmp_path / f"{name}.html", 1280)
    canvas = shown.page.locator("canvas, svg.marks").first
    canvas.wait_for()
    assert canvas.bounding_box()["height"] > 100
    assert len(canvas.screenshot()) > 8_000, "a blank picture is smaller"
    assert shown.page.title() == TITLES[name]
    assert shown.complaints == []
