# SPDX-License-Identifier: MIT
"""Links to a heading lead there also on GitHub, which names headings in its own way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.doc_pages import PAGES

_FENCED = re.compile(r"^[ ]*```.*?^[ ]*```$", re.M | re.S)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
_NAMED = re.compile(r'<a id="([^"]+)"')
_LINK = re.compile(r"\]\(([^)#:\s]*)#([^)\s]+)\)")


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def slug(heading: str) -> str:
    """Return the name that GitHub gives the heading: each space is a hyphen."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def names(page: Path) -> set[str]:
    text = prose(page)
    return {slug(each) for each in _HEADING.findall(text)} | set(_NAMED.findall(text))


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the page and the name of each link to a part of a page."""
    for path, name in _LINK.findall(prose(page)):
        there = (page.parent / path).resolve() if path else page
        if there.suffix == ".md":
            yield there, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name + page.stem)
def test_each_link_to_a_heading_leads_to_one(page: Path) -> None:
    lost = [link for link in links(page) if link[1] not in names(link[0])]
    assert not lost


def test_a_heading_has_the_name_that_github_gives_it() -> None:
    assert slug('`[providers.NAME]` of type "vm"') == "providersname-of-type-vm"
    assert slug('`[providers.NAME], type = "vm"`') == "providersname-type--vm"


def test_links_are_found() -> None:
    assert len([link for page in PAGES for link in links(page)]) > 100
