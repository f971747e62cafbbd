# SPDX-License-Identifier: MIT
"""What a site's program says, and what the provider makes of it."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from burst.errors import (
    InsufficientCapacity,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.model.finding import Level
from burst.provider import Failure, FollowerStatus, Phase
from tests.plugins.command.says import BURST, Says, row


@pytest.fixture
def says(tmp_path: Path) -> Says:
    return Says(tmp_path)


@pytest.mark.parametrize(
    ("word", "status", "error"),
    [
        ("begin", os.EX_DATAERR, SpecRefused),
        ("begin", os.EX_UNAVAILABLE, InsufficientCapacity),
        ("begin", os.EX_TEMPFAIL, Transient),
        ("begin", os.EX_NOPERM, Refused),
        ("begin", 1, Transient),
        ("list", os.EX_DATAERR, Transient),
        ("list", os.EX_NOPERM, Refused),
        ("end", os.EX_UNAVAILABLE, Transient),
        ("end", os.EX_CONFIG, Refused),
        ("end", 137, Transient),
    ],
)
def test_an_exit_status_says_which_error_it_is(
    says: Says, word: str, status: int, error: type[ProviderError]
) -> None:
    provider = says.provider()
    listed = json.dumps([row()]) if word == "end" else "[]"
    says.script(
        f'[ "$1" != {word} ] || {{ echo "no such luck" >&2; exit {status}; }}\n'
        f"echo {shlex.quote(listed)}"
    )
    spec = says.spec()
    calls: dict[str, Callable[[], object]] = {
        "begin": lambda: provider.provision(spec),
        "list": provider.observe,
        "end": lambda: provider.reap(spec.burst_id),
    }
    with pytest.raises(ProviderError, match="no such luck") as raised:
        calls[word]()
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        ("", "did not print a list of bursts.*it printed ''"),
        ("Welcome to the site", "it printed 'Welcome"),
        ('[{"name": "a.b.c"}]', "missing required field `state`"),
        ('[{"name": "a.b.c", "state": "odd"}]', "Invalid enum value 'odd'"),
        ('[{"name": "a.b.c", "state": "failed", "reason": ""}]', "unknown field"),
        ('[{"name": "job", "state": "failed"}]', "the name 'job', a name that"),
        ('[{"name": "a.b./c", "state": "failed"}]', "the name 'a.b./c', a name that"),
    ],
)
def test_an_unreadable_list_is_no_list(says: Says, printed: str, why: str) -> None:
    """What is missing in a list counts as gone, and its files would be removed."""
    says.script(f"echo {shlex.quote(printed)}")
    for call in (
        lambda: says.provider().observe(),
        lambda: says.provider().reap(says.spec().burst_id),
        lambda: says.provider().provision(says.spec()),
    ):
        with pytest.raises(Transient, match=why):
            call()


def test_what_is_listed_twice_is_ended(says: Says) -> None:
    """So that no second set of nodes stays because nobody may end it."""
    provider, spec = says.provider(), says.spec()
    provider.provision(spec)
    says.lists(row(), row(), *[{"name": "others.site.b", "state": "running"}] * 2)
    with pytest.raises(Transient, match=f"printed owner.site.{BURST} more than once"):
        provider.observe()
    assert len(provider.list_all()) == 2
    provider.reap(spec.burst_id)
    assert says.asked("end")["name"] == f"owner.site.{BURST}"
    says.lists(row(), *[{"name": "others.site.b", "state": "running"}] * 2)
    assert len(provider.observe()) == 1, "what others list twice is no fault of ours"


def test_a_program_that_does_not_end_is_killed(says: Says) -> None:
    says.script("sleep 600")
    with pytest.raises(Transient, match=r"did not end within 0.2 s"):
        says.provider(limit=0.2).observe()


def test_what_it_is_asked_to_begin(says: Says) -> None:
    provider = says.provider(arguments={"queue": "long"})
    provider.provision(says.spec(userids=(1000,), lease_end=time.time() + 599.5))
    place = says.path / "shared" / "owner.site" / BURST
    asked = says.asked("begin")
    seconds = asked.pop("seconds")
    assert isinstance(seconds, int)
    assert 500 < seconds <= 600
    assert asked == {
        "name": f"owner.site.{BURST}",
        "hosts": ["burst-0-0", "burst-0-1"],
        "cores": 4,
        "gpus": 0,
        "start": f"{place}/start",
        "log": f"{place}/log",
        "users": [1000],
        "arguments": {"queue": "long"},
    }
    assert says.asked("list") == {
        "dir": f"{says.path}/shared",
        "arguments": {"queue": "long"},
    }
    provider.provision(says.spec(burst_id="burst-1-0a1b2c"))
    assert says.asked("begin")["seconds"] == 0, "without a lease it has no end"


def test_the_status_is_what_it_lists_and_what_the_log_says(says: Says) -> None:
    provider = says.provider()
    provider.provision(says.spec())
    says.lists(
        row(
            "failed",
            why="the machine is down",
            cause="reclaimed",
            nodes=[{"host": "burst-0-1", "state": "failed", "reclaimed": True}],
        )
    )
    (says.path / "shared" / "owner.site" / BURST / "log").write_text("the last line\n")
    [status] = provider.observe()
    assert (status.phase, status.failure) == (Phase.FAILED, Failure.RECLAIMED)
    assert status.why == "the machine is down: the last line"
    assert status.followers == (
        FollowerStatus("burst-0-0", Phase.FAILED, "the machine is down"),
        FollowerStatus("burst-0-1", Phase.FAILED, reclaimed=True),
    )


def test_what_is_not_listed_is_told_as_begun_or_not(says: Says) -> None:
    provider = says.provider()
    says.script('[ "$1" = list ] && echo "[]" || { echo "no luck" >&2; exit 75; }')
    with pytest.raises(Transient):
        provider.provision(says.spec())
    [status] = provider.observe()
    assert (status.phase, status.why) == (
        Phase.PENDING,
        f"`begin` has not succeeded yet: `/bin/sh {says.path}/program begin` failed:"
        " no luck",
    )
    says.lists()
    provider.provision(says.spec())
    [status] = provider.observe()
    assert status.phase is Phase.FAILED
    assert status.why == "the program does not list it any more"


@pytest.mark.parametrize(
    ("script", "level", "what"),
    [
        ("echo '[]'", Level.OK, "lists 0 bursts"),
        ("echo nothing", Level.WRONG, "did not print a list of bursts"),
        ("exit 78", Level.WRONG, "failed: exit status 78"),
    ],
)
def test_the_doctor_lists(says: Says, script: str, level: Level, what: str) -> None:
    says.script(script)
    found = says.provider().examine(None)[-1]
    assert found.level is level
    assert what in found.what
