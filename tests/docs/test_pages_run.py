# SPDX-License-Identifier: MIT
"""The commands on the pages for sites are run, in the order of the page.

A page that has one block with a mark has a mark above each (`tests.docs.doc_pages`).
BURST, JOB stand for a burst and a job that are there, as they do for a reader.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from burst.model.jobid import format_f58
from tests.cli.cli_harness import BURST, CliHarness, DaemonProcess, open_harness
from tests.docs.doc_pages import PAGES, TOP, Block, blocks
from tests.embedded_instance import EmbeddedInstance, embedded_instance
from tests.flux_instance import FLUX, MISSING, FluxInstance, flux_instance
from tests.intake.user_cli import FILES
from tests.support.waiting import HANG_S, wait_until

_MARKED = [page for page in PAGES if any(block.mark for block in blocks(page))]
_PLACES = {
    "lead": "a lead with a daemon, a burst and a held job",
    "lead with Flux": "the same with Flux",
    "lead with Flux, its daemon stopped": "the same, later",
    "Flux alone": "a shell with Flux, and no lead",
    "a copy of the repository": "a shell there",
}
_NEED_FLUX = [place for place in _PLACES if "Flux" in place]
_ANY_STATUS = ", any status"


class Reader:
    """Who reads a page and types what it says."""

    def __init__(self, directory: Path, closing: ExitStack) -> None:
        self._directory = directory
        self._closing = closing
        self._leads: dict[str, tuple[CliHarness, DaemonProcess, dict[str, str]]] = {}
        (directory / "home").mkdir()
        (directory / "examples").symlink_to(TOP / "examples")

    def type(self, block: Block) -> None:
        """Run the commands of a block. Fails where one of them does."""
        place = block.said.removesuffix(_ANY_STATUS)
        assert place in _PLACES, block
        environment = {
            **os.environ,
            "HOME": str(self._directory / "home"),
            "PATH": f"{Path(BURST).parent}:{os.environ['PATH']}",
        }
        text = block.commands
        if place.startswith("lead"):
            stand_ins, more = self._lead(place)
            text = re.sub(r"\b(BURST|JOB)\b", lambda found: stand_ins[found[1]], text)
            environment |= more
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self._directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )
        is_good = done.returncode == 0 or block.said.endswith(_ANY_STATUS)
        assert is_good, (block, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr

    def _lead(self, place: str) -> tuple[dict[str, str], dict[str, str]]:
        kind = "flux" if "Flux" in place else "embedded"
        if kind not in self._leads:
            self._leads[kind] = self._start(kind)
        cli, daemon, names = self._leads[kind]
        if place.endswith("stopped") and daemon.process.poll() is None:
            daemon.end()
        # As the lead's `env`, which a reader's shell has read.
        found = {"FLUX_CLI_PLUGINPATH_OVERRIDE": str(FILES)}
        return names, {"FLUX_URI": cli.uri, "BURST_CONFIG": str(cli.config), **found}

    def _start(self, kind: str) -> tuple[CliHarness, DaemonProcess, dict[str, str]]:
        instance: FluxInstance | EmbeddedInstance
        if kind == "flux":
            instance = self._closing.enter_context(flux_instance())
        else:
            instance = self._closing.enter_context(embedded_instance())
        cli = self._closing.enter_context(open_harness(instance))
        daemon = self._closing.enter_context(cli.daemon())
        assert cli.run("request", "-N2").status == 0
        job = format_f58(instance.submit(nodes=9))
        wait_until(lambda: job in cli.status()["held"], "the job to be held")
        return cli, daemon, {"BURST": cli.status()["bursts"][0]["id"], "JOB": job}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with ExitStack() as closing:
        yield Reader(tmp_path, closing)


def pages() -> Iterator[object]:
    for page in _MARKED:
        is_flux = any(place in _NEED_FLUX for place in places(page))
        skip = pytest.mark.skipif(not FLUX, reason=MISSING)
        marks = [pytest.mark.flux, skip] if is_flux else []
        yield pytest.param(page, marks=marks, id=page.stem)


def places(page: Path) -> set[str]:
    return {block.said.removesuffix(_ANY_STATUS) for block in blocks(page)}


@pytest.mark.parametrize("page", list(pages()))
def test_what_a_page_says_can_be_done(page: Path, reader: Reader) -> None:
    for block in blocks(page):
        assert block.mark, f"{page}: say how this is run, or why not: {block.commands}"
        if block.mark == "run":
            reader.type(block)
        else:
            assert len(block.said) > 10, block


def test_a_command_that_fails_is_found(reader: Reader) -> None:
    for wrong in ("burst explain nonsense", "false | true", "burst down"):
        block = Block(TOP, wrong, "run", "a copy of the repository")
        with pytest.raises(AssertionError):
            reader.type(block)


def test_pages_are_found() -> None:
    assert len(_MARKED) >= 6
