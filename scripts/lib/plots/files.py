"""A chart as files: html that needs no network, svg and png that need no browser."""

from __future__ import annotations

import html
import re
from pathlib import Path

import altair as alt
import vl_convert as vlc

_VERSION = "v" + "_".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
_SHARP, _PLAIN = 2.0, 1.0
_LARGE = 3_000_000
"""Pixels of a picture above which a sharper one would only be a larger file."""


def svg_of(chart: alt.TopLevelMixin) -> str:
    return _svg(chart.to_json(indent=None))


def write_plot(chart: alt.TopLevelMixin, stem: Path, title: str) -> None:
    """Write {stem}.html (scripts embedded), {stem}.svg and {stem}.png (two pixels for one unless it is large)."""
    spec = chart.to_json(indent=None)
    page = vlc.vegalite_to_html(spec, vl_version=_VERSION, bundle=True)
    page = page.replace("<title>Chart</title>", f"<title>{html.escape(title)}</title>", 1)
    stem.with_suffix(".html").write_text(page, encoding="utf-8")
    svg = _svg(spec)
    stem.with_suffix(".svg").write_text(svg, encoding="utf-8")
    stem.with_suffix(".png").write_bytes(vlc.svg_to_png(svg, scale=_scale(svg)))


def _svg(spec: str) -> str:
    return vlc.vegalite_to_svg(spec, vl_version=_VERSION, allowed_base_urls=[])


def _scale(svg: str) -> float:
    size = re.search(r'width="([0-9.]+)" height="([0-9.]+)"', svg)
    large = size is not None and float(size[1]) * float(size[2]) > _LARGE
    return _PLAIN if large else _SHARP
