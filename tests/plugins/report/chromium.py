# SPDX-License-Identifier: MIT
"""A page in headless Chromium, where there is one."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.waiting import HANG_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
)
_LIGHT, _DARK = 1, 0
# The page itself runs no script, so it is measured from around it, in a frame of the
# width that is wanted: a window cannot be as narrow as a telephone.
_MEASURE = """<!DOCTYPE html><body><iframe style="border:0;width:{width}px;height:900px"
srcdoc="{page}"></iframe><pre></pre><script>addEventListener("load", () => {{
const inner = document.querySelector("iframe").contentDocument;
const root = inner.documentElement, edge = root.clientWidth;
const wide = [...inner.querySelectorAll("body *")].filter(
  (e) => !e.closest(".scroll") && e.getBoundingClientRect().right > edge + 1);
document.querySelector("pre").textContent = JSON.stringify({{
  wide: wide.map((e) => e.outerHTML.slice(0, 80)), scrolls: root.scrollWidth - edge,
  background: inner.defaultView.getComputedStyle(inner.body).backgroundColor,
  color: inner.defaultView.getComputedStyle(inner.body).color,
  bars: inner.querySelectorAll("svg.bar rect").length}}); }});</script></body>"""


def find_chromium() -> str:
    """Return the path of a Chromium; empty if there is none."""
    return next(filter(None, map(shutil.which, NAMES)), "")


def measure(page: str, width: int, directory: Path, *, dark: bool) -> Any:
    """Return what sticks out of a page, and its colours, in a frame of that width."""
    outer = directory / "outer.html"
    outer.write_text(_MEASURE.format(width=width, page=html.escape(page)), "utf-8")
    shown = _run(
        directory, dark, f"--window-size={width + 100},1000", "--dump-dom", outer
    )
    found = shown.partition("<pre>")[2].partition("</pre>")[0]
    return json.loads(html.unescape(found))


def pdf_pages(page: str, directory: Path) -> int:
    """Return on how many sheets of paper a page is printed."""
    source, printed = directory / "page.html", directory / "page.pdf"
    source.write_text(page, "utf-8")
    _run(directory, False, f"--print-to-pdf={printed}", source)
    return printed.read_bytes().count(b"/Type /Page\n")


def _run(directory: Path, dark: bool, *words: str | Path) -> str:
    *options, page = words
    scheme = f"--blink-settings=preferredColorScheme={_DARK if dark else _LIGHT}"
    home = f"--user-data-dir={directory / 'profile'}"
    argv = [find_chromium(), *_OPTIONS, scheme, home, *map(str, options)]
    done = subprocess.run(
        [*argv, Path(page).as_uri()],
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=HANG_S,
    )
    return done.stdout
