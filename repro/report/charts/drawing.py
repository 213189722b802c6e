"""What all charts are drawn with."""

from __future__ import annotations

from html import escape

WIDE = 1000
"""Units of a chart's width; it is stretched to the room that there is."""


def svg(drawn: str, title: str, height: int) -> str:
    """A drawing that is stretched to its box; `title` is what a screen reader says of it, escaped."""
    box = f'viewBox="0 0 {WIDE} {height}" preserveAspectRatio="none" role="img"'
    return f"<svg {box}><title>{title}</title>{drawn}</svg>"


def figure(body: str, told: str) -> str:
    """A drawing (HTML) with what it tells (text) below it."""
    return f"<figure>{body}<figcaption>{escape(told)}</figcaption></figure>"
