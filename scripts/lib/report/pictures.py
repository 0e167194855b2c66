"""Plots and their captions as parts of a page."""

from __future__ import annotations

import re

from docutils.core import publish_parts

_ID = re.compile(r'(?<= )id="([^"]+)"|url\(#([^)]+)\)')


def embedded(svg: str, name: str) -> str:
    """An svg that stands beside others in one page: its ids are its own, and what it shows is told to screen readers."""
    own = _ID.sub(lambda found: f'id="{name}-{found[1]}"' if found[1] else f"url(#{name}-{found[2]})", svg)
    return own.replace("<svg ", f'<svg role="group" aria-label="{name}" ', 1)


def caption(rst: str) -> str:
    """A caption of workflow/report as html. Raises docutils.utils.SystemMessage for malformed text."""
    settings = {"halt_level": 2, "report_level": 2, "file_insertion_enabled": False, "raw_enabled": False}
    return publish_parts(rst, writer="html5", settings_overrides=settings)["fragment"]
