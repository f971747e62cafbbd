# SPDX-License-Identifier: MIT
"""The pictures of the README: that they can be made again, and those that are there."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.cli.cli_harness import open_harness
from tests.demo.pictures import DOCS, DemoObserver, draw_pictures
from tests.embedded_instance import embedded_instance
from tests.plugins.report.report_answers import (
    MADE,
    report_answer,
    report_burst,
    report_job,
)
from tests.plugins.watch.watch_answers import answer
from tests.support.waiting import wait_until

SVG = "{http://www.w3.org/2000/svg}"
LARGEST = 60_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pictures")
    stages = ("provision", "join", "online", "reap", "inactive")
    states = [{"state": each, "at": MADE + at} for at, each in enumerate(stages)]
    ran = {"started": MADE + 2, "finished": MADE + 3}
    names = ["burst-0-aaaaaa", "burst-1-bbbbbb"]
    bursts = [report_burst(name, states=states, ended=MADE + 4) for name in names]
    jobs = [report_job(f"ƒ{name[6]}", bursts=[name], **ran) for name in names]
    draw_pictures(directory, answer(), report_answer(bursts=bursts, jobs=jobs))
    return directory


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


@pytest.mark.parametrize("name", ["watch.svg", "timeline.svg"])
def test_those_in_the_readme_are_there_and_fetch_nothing(name: str) -> None:
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")

    assert f"(docs/{name})" in readme
    assert "burst-0-" in words(DOCS / name)


def test_a_demo_is_looked_at_while_its_daemon_serves() -> None:
    environment: dict[str, str] = {}
    story: Any = SimpleNamespace(processes=SimpleNamespace(environment=environment))
    seen = DemoObserver(story)
    seen.start()
    try:
        with embedded_instance() as instance, open_harness(instance) as cli:
            environment["FLUX_URI"] = cli.uri
            with cli.daemon():
                burst = cli.run("request", "-N2").lines[0].rpartition(" ")[2]
                wait_until(lambda: online(seen.screen) == [burst], "it online")
                cli.run("down", burst)
                wait_until(lambda: online(seen.report) == [], "its end")
    finally:
        seen.stop()
    assert online(seen.screen) == [burst], "the best picture is kept"
    assert [row["id"] for row in seen.report["bursts"]] == [burst]


def online(found: dict[str, Any]) -> list[str]:
    rows = found.get("bursts", [])
    return [row["id"] for row in rows if row["state"] == "online"]


def test_the_screen_shows_bursts_online_and_slots(made: Path) -> None:
    told = words(made / "watch.svg")

    assert "burst-0-aaaaaa" in told
    assert told.count("online ") >= 1
    assert "leased" in told
    assert "gke" in told


def test_the_timeline_shows_both_bursts_and_their_jobs(made: Path) -> None:
    told = words(made / "timeline.svg")

    assert len(re.findall("burst-[01]-[0-9a-f]{6}", told)) == 2
    assert told.count("job ƒ") == 2
    assert "online" in told
