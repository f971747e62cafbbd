# SPDX-License-Identifier: MIT
"""burst request --isolated and burst output, at a daemon that is played."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from burst.errors import BurstError
from burst.lead import ServiceRequest
from tests.cli.cli_harness import CliHarness, CommandResult
from tests.contract.serving import HOLDER, until_no_daemon

NAME = "burst-iso-0a1b2c"


class Played:
    """A daemon that answers as told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.state = "online"
        self.exit_status: int | None = None

    def answer(self, request: ServiceRequest) -> dict[str, Any]:
        if request.method == "request":
            self.asked.append(request.payload)
            text = f"2 nodes of far/nodes as {NAME}"
            return {"bursts": [NAME], "text": text, "why": "", "beside": ""}
        if request.method == "output":
            if request.payload["id"] not in (NAME, "f1"):
                raise BurstError("no isolated burst has that id")
            return {"burst": NAME, "exit_status": self.exit_status, "text": "hi\n"}
        row = {
            "id": NAME,
            "state": self.state,
            "hosts": f"{NAME}-[0-1]",
            "isolated": "interactive",
            "access": "kubectl exec p0",
            "result": "completed",
            "note": "",
        }
        return {"bursts": [row]}


@contextmanager
def serving(
    cli: CliHarness, answer: Callable[[ServiceRequest], dict[str, Any]]
) -> Iterator[None]:
    """Answer what the commands ask, and leave nobody who does."""
    with closing(cli.instance.lead()) as lead:
        lead.serve(answer, HOLDER)
        yield
    with closing(cli.instance.lead()) as lead:
        until_no_daemon(lead)


@pytest.fixture
def played(quiet: CliHarness) -> Iterator[Played]:
    found = Played()
    with serving(quiet, found.answer):
        yield found


def test_one_of_ones_own_is_told_how_to_get_to(
    quiet: CliHarness, played: Played
) -> None:
    lines = quiet.run("request", "-N2", "--isolated").lines
    assert lines[0].endswith(NAME)
    assert lines[1].startswith(f"{NAME}-[0-1] is an instance of its own after ")
    assert lines[2] == "kubectl exec p0"
    quiet.run("request", "-N2", "--isolated", "--service", "--provider", "far")
    kinds = [asked["isolated"]["kind"] for asked in played.asked]
    assert kinds == ["interactive", "service"]
    assert played.asked[1]["provider"] == "far"


def test_a_commands_output_and_status_are_its_own(
    quiet: CliHarness, played: Played
) -> None:
    played.state, played.exit_status = "inactive", 3
    said = quiet.run("request", "-N2", "--isolated", "hostname")
    assert said.status == 3
    assert said.stdout.endswith("hi\n")
    wanted = {"kind": "command", "command": ["hostname"]}
    assert played.asked[0]["isolated"] == wanted
    played.exit_status = 0
    assert quiet.run("request", "-N1", "--isolated", "true").status == 0


def test_a_listing_is_a_job_for_each_line(
    quiet: CliHarness, played: Played, tmp_path: Path
) -> None:
    played.state, played.exit_status = "inactive", 3
    listing = tmp_path / "jobs"
    listing.write_text("# two\n-N2 hostname\n\n  sh -c 'exit 3'\n")
    said = quiet.run("request", "-N2", "--isolated", "--batch", str(listing))
    assert said.status == 3
    assert said.stdout.endswith("hi\n")
    wanted = {"kind": "batch", "command": ["-N2 hostname", "sh -c 'exit 3'"]}
    assert played.asked[0]["isolated"] == wanted
    listing.write_text("# none\n")
    said = quiet.run("request", "-N2", "--isolated", "--batch", str(listing))
    assert "the listing has no command" in said.error
    assert len(played.asked) == 1


def test_it_need_not_be_waited_for(quiet: CliHarness, played: Played) -> None:
    said = quiet.run("request", "-N1", "--isolated", "--no-wait", "sleep").lines
    assert said == [f"2 nodes of far/nodes as {NAME}"]


def test_the_output_of_a_job_is_printed(quiet: CliHarness, played: Played) -> None:
    played.exit_status = 0
    assert quiet.run("output", "f1").stdout == "hi\n"
    assert "no isolated burst" in quiet.run("output", "f2").error


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("hostname",), "COMMAND, --batch and --service need --isolated"),
        (("--service",), "COMMAND, --batch and --service need --isolated"),
        (("--batch", "-"), "COMMAND, --batch and --service need --isolated"),
        (("--isolated", "echo", os.fsdecode(b"\xe9")), "COMMAND is not UTF-8"),
        (("--isolated", "--slot", "burst-0-0"), "--isolated cannot be used with"),
        (("--isolated", "--tag", "night"), "--isolated cannot be used with"),
        (("--isolated", "--image", "x"), "--slot, --tag or --image"),
        (("--tag", "sweep/a"), "letters, digits and signs other than /"),
        (("--tag", "a b"), "letters, digits and signs other than /"),
        (("--tag", "größe"), "letters, digits and signs other than /"),
        (("--isolated", "--service", "hostname"), "one of COMMAND, --batch"),
        (("--isolated", "--batch", "-", "hostname"), "one of COMMAND, --batch"),
        (("--least", "2"), "--least is more than -N"),
    ],
)
def test_what_does_not_go_together_is_refused(
    quiet: CliHarness, words: tuple[str, ...], why: str
) -> None:
    said = quiet.run("request", "-N1", *words)
    assert said.status == 2
    assert why in said.stderr


def test_a_job_is_requested_alone(quiet: CliHarness) -> None:
    for words in (("--job", "f1", "-N2"), ("--job", "f1", "--isolated"), ()):
        said = quiet.run("request", *words)
        assert said.status == 2
        assert "--job" in said.stderr


def requested(quiet: CliHarness, *told: dict[str, Any]) -> CommandResult:
    """Request a burst for a job about which the daemon tells this, one by one."""
    answers = iter(told)
    rest = {"id": "f1", "state": "sched", "refusals": [], "bursts": []}

    def answer(request: ServiceRequest) -> dict[str, Any]:
        asked = request.method == "explain"
        return {**rest, **next(answers)} if asked else {"id": "f1"}

    with serving(quiet, answer):
        said = quiet.run("request", "--job", "f1", "--no-wait")
    assert not list(answers)
    return said


def test_a_request_for_a_job_that_comes_to_nothing_is_an_error(
    quiet: CliHarness,
) -> None:
    """It is decided by a later tick, and stays on record."""
    said = requested(
        quiet,
        {"verdict": "not-burstable", "why": "it is not marked"},
        {"verdict": "not-worth", "why": ""},
        {
            "verdict": "turned-down",
            "why": "every offer was turned down",
            "refusals": [{"offer": "a/b", "why": "is too small"}],
            "bursts": [{"id": NAME, "state": "reap"}],
        },
    )
    assert said.error == (
        "f1: no burst is made for it now: every offer was turned down (a/b: is too"
        " small); the request is kept while the job waits (burst explain f1)"
    )
    assert not said.stdout
    said = requested(quiet, {"verdict": "not-ready", "why": "it waits for its begin"})
    assert said.error.startswith("f1: no burst is made for it now: it waits for its b")


@pytest.mark.parametrize(
    "told",
    [
        {"verdict": "proposed", "bursts": [{"id": NAME, "state": "new"}]},
        {"verdict": "assigned", "bursts": [{"id": NAME, "state": "online"}]},
        {"verdict": "local"},
        {"verdict": "starting"},
        {"verdict": "running", "state": "run"},
        {"verdict": "", "state": "gone"},
    ],
)
def test_a_request_for_a_job_that_has_nodes_or_needs_none_succeeds(
    quiet: CliHarness, told: dict[str, Any]
) -> None:
    assert requested(quiet, {**told, "why": "so it is"}).lines == ["f1: so it is"]
