"""A chart as files: html that needs no network, svg and png that need no browser."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import vl_convert as vlc

FORMS = ("html", "svg", "png")
_PNG_SCALE = 2.0


def write_plot(chart: alt.TopLevelMixin, stem: Path) -> None:
    """Write {stem}.html (scripts embedded), {stem}.svg and {stem}.png (twice the size in pixels)."""
    spec = chart.to_json(indent=None)
    version = "v" + "_".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    stem.with_suffix(".svg").write_text(
        vlc.vegalite_to_svg(spec, vl_version=version, allowed_base_urls=[]), encoding="utf-8"
    )
    stem.with_suffix(".png").write_bytes(
        vlc.vegalite_to_png(spec, vl_version=version, scale=_PNG_SCALE, allowed_base_urls=[])
    )
    stem.with_suffix(".html").write_text(
        vlc.vegalite_to_html(spec, vl_version=version, bundle=True), encoding="utf-8"
    )
