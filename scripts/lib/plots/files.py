"""A chart as files: html that needs no network, svg and png that need no browser."""

from __future__ import annotations

import html
from pathlib import Path

import altair as alt
import vl_convert as vlc

FORMS = ("html", "svg", "png")
_PNG_SCALE = 2.0
_VERSION = "v" + "_".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def svg_of(chart: alt.TopLevelMixin) -> str:
    return vlc.vegalite_to_svg(chart.to_json(indent=None), vl_version=_VERSION, allowed_base_urls=[])


def write_plot(chart: alt.TopLevelMixin, stem: Path, title: str) -> None:
    """Write {stem}.html (scripts embedded), {stem}.svg and {stem}.png (twice the size in pixels)."""
    spec = chart.to_json(indent=None)
    page = vlc.vegalite_to_html(spec, vl_version=_VERSION, bundle=True)
    page = page.replace("<title>Chart</title>", f"<title>{html.escape(title)}</title>", 1)
    stem.with_suffix(".html").write_text(page, encoding="utf-8")
    stem.with_suffix(".svg").write_text(svg_of(chart), encoding="utf-8")
    png = vlc.vegalite_to_png(spec, vl_version=_VERSION, scale=_PNG_SCALE, allowed_base_urls=[])
    stem.with_suffix(".png").write_bytes(png)
