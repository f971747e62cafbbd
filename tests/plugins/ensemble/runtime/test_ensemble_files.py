# SPDX-License-Identifier: MIT
"""Ensembles that the daemon starts by itself, each once."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision
from burst_ensemble.core.commands import KEPT_ENDED
from burst_ensemble.runtime.files import environment_of

from tests.plugins.ensemble.runtime.ensemble_site import MEMBER, EnsembleSite, Scripted

FILE = """
name = "sweep"
checkSeconds = "1s"

[[members]]
name = "a"
max = {most}
"""


class OwnSite(EnsembleSite):
    """A daemon that runs as who runs the test: so does what a file names."""

    user = os.geteuid()


class Given:
    """A daemon whose settings name one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.site = OwnSite(
            ensemble={"files": [str(file)], "environment": {"PATH": "/opt/bin"}}
        )
        self.site.algorithms["a"] = self.says = Scripted()

    def write(self, most: int = 2) -> None:
        self.file.write_text(FILE.format(most=most))

    @property
    def started(self) -> float | None:
        found = self.site.store.read().get("sweep")
        return found.record.started if found else None

    def wait(self) -> None:
        """Until the file is looked at again."""
        self.site.sim.tick(7, seconds=10.0)
        self.site.ensembles.look()
        self.site.step(2)

    def end(self) -> None:
        self.says.says = MemberDecision(end=True, why="done")
        self.site.step(8)
        self.says.says = MemberDecision()
        assert self.site.sim.engine.snapshot.records.live == []


@pytest.fixture
def given(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Given:
    caplog.set_level(logging.INFO)
    return Given(tmp_path / "sweep.toml")


def test_it_is_started_and_its_jobs_have_the_variables_of_the_settings(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    given.write()
    given.site.step(3)
    assert given.site.live("a") == 1
    start = given.site.store.read()["sweep"].start
    kept = environment_of(dict(os.environ), {})
    assert start.environment == {**kept, "PATH": "/opt/bin"}
    assert environment_of({"PATH": "/bin", "TOKEN": "x"}, {}) == {"PATH": "/bin"}
    given.wait()
    assert caplog.text.count("ensemble sweep is started, as") == 1
    assert "on record" not in caplog.text


def test_neither_a_restart_nor_its_end_starts_it_again(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    given.write()
    given.site.step(3)
    began = given.started
    given.site.restart()
    given.wait()
    assert (given.started, given.site.live("a")) == (began, 1)
    given.end()
    given.site.restart()
    given.wait()
    given.wait()
    assert given.started == began
    assert given.site.sim.engine.snapshot.records.live == []
    assert caplog.text.count("is started") == 1
    # Once by each daemon after the first.
    assert caplog.text.count("is on record already") == 2
    assert "WARNING" not in caplog.text


def test_a_changed_file_is_told_and_not_started(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    given.write()
    given.site.step(3)
    given.end()
    began = given.started
    given.write(most=3)
    given.wait()
    given.wait()
    assert given.started == began
    assert caplog.text.count("use another name there to start it") == 1
    given.file.write_text(FILE.format(most=3).replace("sweep", "second"))
    given.wait()
    known = given.site.store.read()
    assert known.keys() == {"sweep", "second"}


def test_a_file_that_cannot_be_used_is_told_once_and_tried_again(
    given: Given, caplog: pytest.LogCaptureFixture
) -> None:
    given.site.step(2)
    given.wait()
    assert caplog.text.count("is not started") == 1
    assert str(given.file) in caplog.text
    given.write(most=9)
    given.wait()
    assert "no rank slot of 9 nodes" in caplog.text
    given.file.write_text(f'{FILE.format(most=2)}offer = "gone"\n')
    given.wait()
    assert ":8: members.0.offer: provider local has no offer gone" in caplog.text
    given.write()
    del given.site.algorithms["a"]
    given.wait()
    assert "is not started: KeyError('a')" in caplog.text
    given.site.algorithms["a"] = given.says
    given.wait()
    assert given.site.live("a") == 1


def test_what_was_started_meanwhile_is_not_started_again(given: Given) -> None:
    given.site.up(members=[MEMBER])
    began = given.started
    known = given.site.store.read()
    new = msgspec.structs.replace(known["sweep"].start, userid=1, is_kept=True)
    given.site.sim.tick(2)
    given.site.begin(new)
    assert given.site.store.read() == known
    assert given.started == began


def test_it_is_on_record_however_many_others_end(given: Given) -> None:
    given.write()
    given.site.step(3)
    given.end()
    began = given.started
    for number in range(KEPT_ENDED + 3):
        given.site.up(name=f"other-{number}", members=[MEMBER])
        given.site.down(f"other-{number}")
        given.site.step()
    known = given.site.store.read()
    # It, the one that was started last, and of the others the last.
    assert len(known) == 2 + KEPT_ENDED
    assert "other-0" not in known
    given.wait()
    assert given.started == began
