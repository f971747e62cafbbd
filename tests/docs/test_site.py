# SPDX-License-Identifier: MIT
"""The site of docs: it is built without a warning, and no link leads nowhere."""

from __future__ import annotations

import posixpath
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.waiting import HANG_S

TOP = Path(__file__).parents[2]


def build(top: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(site)]
    return subprocess.run(
        command, cwd=top, capture_output=True, text=True, check=False, timeout=HANG_S
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("docs") / "site"
    done = build(TOP, site)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return site


class Found(HTMLParser):
    """What a page links to, what it loads, and the names that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.names: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.names.add(given.get("id") or "")
        if tag == "a":
            self.links.add(given.get("href") or "")
        self.loaded.add(given.get("src") or "")
        if tag == "link" and given.get("rel") != "canonical":
            self.loaded.add(given.get("href") or "")


def target(page: str, link: str) -> str:
    """Where a link of a page leads: a file of the site."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(link)))
    return posixpath.join(path, "index.html") if link.endswith(("/", ".")) else path


def test_each_page_of_docs_is_in_it(site: Path) -> None:
    for page in (TOP / "docs").glob("*.md"):
        assert (site / page.stem / "index.html").is_file()
    assert (site / "index.html").is_file()


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Found]:
    return {str(p.relative_to(site)): Found(p) for p in site.rglob("*.html")}


def test_each_link_leads_to_something(site: Path, pages: dict[str, Found]) -> None:
    assert len(pages) > 20
    for page, found in pages.items():
        if page in ("404.html", "search.html"):
            continue  # their links begin at the top of a server
        for link in found.links | found.loaded:
            parts = urlsplit(link)
            if parts.scheme or not (parts.path or parts.fragment):
                continue
            there = target(page, parts.path) if parts.path else page
            assert (site / there).is_file(), f"{page}: {link}"
            if parts.fragment and there in pages:
                assert parts.fragment in pages[there].names, f"{page}: {link}"


def test_nothing_is_loaded_from_elsewhere(pages: dict[str, Found]) -> None:
    for found in pages.values():
        assert not [link for link in found.loaded if urlsplit(link).netloc]


def test_links_that_lead_nowhere_are_no_site(tmp_path: Path) -> None:
    """On a site of three pages, built as ours is."""
    (tmp_path / "docs").mkdir()
    shutil.copytree(TOP / "docs/generate", tmp_path / "docs/generate")
    shutil.copy(TOP / "docs/site.css", tmp_path / "docs")
    settings, _, _ = (TOP / "mkdocs.yml").read_text("utf-8").partition("\nnav:")
    nav = "nav: [README.md, cost.md, SECURITY.md]"
    (tmp_path / "mkdocs.yml").write_text(f"{settings}\n{nav}\n")
    (tmp_path / "README.md").write_text("# Start\n\n[x](docs/cost.md)\n")
    (tmp_path / "SECURITY.md").write_text("# Security\n")
    links = ("none.md", "../SECURITY.md#none", "../burst/none.py")
    text = "".join(f"\n[x]({link})\n" for link in links)
    (tmp_path / "docs/cost.md").write_text(f"# Cost\n{text}")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    warnings = [line for line in done.stderr.splitlines() if "WARNING" in line]
    assert len(warnings) == len(links), done.stderr
    for link in links:
        # It tells some links from the top of the site.
        named = ("cost.md", link.strip("./"))
        told = [line for line in warnings if all(name in line for name in named)]
        assert told, f"{link}: {done.stderr}"
