# SPDX-License-Identifier: MIT
"""The pictures of the README: that they can be made again, and those that are there."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.demo.pictures import DOCS, draw_pictures
from tests.plugins.report.report_answers import (
    MADE,
    report_answer,
    report_burst,
    report_job,
)
from tests.plugins.watch.watch_answers import answer

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 60_000
NAMES = ("watch", "timeline")


def words(picture: Path) -> str:
    """Return the text of a picture, once it is known to be one that fetches nothing."""
    text = picture.read_text(encoding="utf-8")
    assert len(text) < LARGEST
    assert re.findall("https?://[^\"' ]*", text) == ["http://www.w3.org/2000/svg"]
    assert "url(" not in text.replace("url(#", "")
    assert "@font-face" not in text
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    found = " ".join(part.text or "" for part in root.iter(f"{SVG}text"))
    return found.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("name", NAMES)
def test_those_in_the_readme_are_there_and_fetch_nothing(name: str) -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")

    assert f"(docs/{name}.svg)" in readme
    assert "burst-0-" in words(DOCS / f"{name}.svg")


def test_they_can_be_made_again(tmp_path: Path) -> None:
    stages = ("provision", "join", "online", "reap", "inactive")
    states = [{"state": each, "at": MADE + at} for at, each in enumerate(stages)]
    ran = {"started": MADE + 2, "finished": MADE + 3}
    names = ["burst-0-aaaaaa", "burst-1-bbbbbb"]
    bursts = [report_burst(name, states=states, ended=MADE + 4) for name in names]
    jobs = [report_job(f"ƒ{name[6]}", bursts=[name], **ran) for name in names]
    draw_pictures(tmp_path, answer(), report_answer(bursts=bursts, jobs=jobs))

    screen, timeline = (words(tmp_path / f"{name}.svg") for name in NAMES)

    for told in ("burst-0-aaaaaa", "online ", "leased", "gke"):
        assert told in screen
    assert len(re.findall("burst-[01]-[0-9a-f]{6}", timeline)) == 2
    assert timeline.count("job ƒ") == 2
    assert "online" in timeline
