"""Plots beside each other in one page keep their own ids; captions are plain text."""

from __future__ import annotations

import pytest
from docutils.utils import SystemMessage

from scripts.lib.report.pictures import caption, embedded


def test_ids_of_two_pictures_do_not_meet() -> None:
    svg = '<svg class="marks"><linearGradient id="g_0"/><path fill="url(#g_0)" data-id="g_0"/></svg>'
    assert embedded(svg, "speedup") == (
        '<svg role="group" aria-label="speedup" class="marks"><linearGradient id="speedup-g_0"/>'
        '<path fill="url(#speedup-g_0)" data-id="g_0"/></svg>'
    )


def test_a_caption_is_html() -> None:
    assert caption("Ratios to ``none`` < 1.").strip() == (
        '<p>Ratios to <span class="docutils literal">none</span> &lt; 1.</p>'
    )


def test_a_malformed_caption_is_an_error_and_no_picture() -> None:
    with pytest.raises(SystemMessage):
        caption("Ratios to ``none")
