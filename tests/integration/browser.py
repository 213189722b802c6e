"""A real headless Chromium: what it shows, and how wide a page really is in it."""

from __future__ import annotations

import html
import json
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
WHY_NOT = "no Chromium on PATH; on Debian: apt-get install chromium"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
DARK = ("--blink-settings=preferredColorScheme=0",)
LIGHT = ("--blink-settings=preferredColorScheme=1",)

MEASURE = """<!doctype html><title>no</title>
<iframe id="frame" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>
const frame = document.getElementById("frame");
frame.onload = () => {{
  const doc = frame.contentDocument;
  const boxes = [...doc.querySelectorAll("svg")].map(e => e.getBoundingClientRect());
  const words = [...doc.querySelectorAll("p, li, dd, td, .axis span")];
  const text = words.map(e => parseFloat(getComputedStyle(e).fontSize));
  document.body.dataset.told = JSON.stringify({{
    wide: doc.documentElement.scrollWidth, charts: boxes.length,
    narrowest: Math.min(...boxes.map(b => b.width)), lowest: Math.min(...boxes.map(b => b.height)),
    smallest: Math.min(...text), font: getComputedStyle(doc.body).fontFamily,
  }});
}};
</script>
"""


@dataclass(frozen=True)
class Picture:
    """Pixels of a screenshot, row by row."""

    width: int
    height: int
    pixels: list[tuple[int, int, int]]

    @property
    def background(self) -> float:
        """Lightness of the first pixel, 0 to 255."""
        return sum(self.pixels[0]) / 3

    @property
    def colours(self) -> int:
        """How many different colours there are."""
        return len(set(self.pixels))

    def share(self, colour) -> float:
        """The share of pixels of exactly this colour."""
        return self.pixels.count(colour) / len(self.pixels)


def screenshot(page: Path, out: Path, *, width: int, height: int, dark: bool) -> Picture:
    """Open a page and take its picture."""
    scheme = DARK if dark else LIGHT
    _run(*scheme, f"--window-size={width},{height}", f"--screenshot={out}", page.resolve().as_uri())
    return read_png(out.read_bytes())


def measure(page: Path, folder: Path, *, width: int) -> dict[str, float]:
    """How a page lies in a window of a width: its real width, its charts, its smallest text (CSS pixels)."""
    wrapper = folder / f"measure{width}.html"
    wrapper.write_text(MEASURE.format(width=width, page=html.escape(page.read_text())))
    dom = _run("--virtual-time-budget=4000", "--dump-dom", wrapper.resolve().as_uri())
    told = re.search(r'data-told="([^"]*)"', dom)
    assert told, dom[:400]
    return dict(json.loads(html.unescape(told[1])))


def _run(*arguments: str) -> str:
    assert BROWSER is not None
    done = subprocess.run(
        [BROWSER, *FLAGS, *arguments], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def read_png(data: bytes) -> Picture:
    """Decode a PNG of 8 bits a channel that is not interlaced, as Chromium writes it."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, header = 8, b"", b""
    while at < len(data):
        (size,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        header, packed = (body if kind == b"IHDR" else header), packed + (body if kind == b"IDAT" else b"")
        at += size + 12
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    assert (depth, interlaced) == (8, 0)
    channels = {2: 3, 6: 4}[colour]
    rows = _unfiltered(zlib.decompress(packed), width * channels, channels)
    pixels = [tuple(row[index : index + 3]) for row in rows for index in range(0, width * channels, channels)]
    return Picture(width, height, pixels)


def _unfiltered(raw: bytes, stride: int, channels: int) -> list[bytearray]:
    rows, above = [], bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        kind, row = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for index in range(stride if kind else 0):
            left = row[index - channels] if index >= channels else 0
            corner = above[index - channels] if index >= channels else 0
            row[index] = (row[index] + _predicted(kind, left, above[index], corner)) & 255
        rows.append(row)
        above = row
    return rows


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind == 4:
        guess = left + up - corner
        return min((left, up, corner), key=lambda value: abs(guess - value))
    return {1: left, 2: up, 3: (left + up) // 2}[kind]
