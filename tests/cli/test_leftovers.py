# SPDX-License-Identifier: MIT
"""`burst gc --provider`: what lost leads left is found and deleted by its tags."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burst.cli.leftovers import say_left
from burst.errors import BurstError
from burst.provider import BurstSpec
from tests.cli.cli_harness import CommandResult, burst
from tests.plugins.local.harness import LocalHarness, open_bench

HOUR = 3600.0
Run = Callable[..., CommandResult]


@pytest.fixture
def local() -> Iterator[LocalHarness]:
    with open_bench() as local:
        yield local


@pytest.fixture
def gc(local: LocalHarness, tmp_path: Path) -> Run:
    """Return a function that types the command.

    `lead` is a table of its settings, `more` more keys of the provider's.
    """

    def run(
        *words: str, lead: str = "", name: str = "here", more: str = ""
    ) -> CommandResult:
        path = tmp_path / "burst.toml"
        table = f'type = "local"\ndir = "{local.settings.dir}"\n{more}\n'
        path.write_text(f"{lead}\n[providers.here]\n{table}")
        return burst("gc", "-c", str(path), "--provider", name, *words)

    return run


def start(local: LocalHarness, number: int, lease_end: float) -> BurstSpec:
    spec = local.spec(number, nodes=1, lease_end=lease_end)
    local.provider().provision(spec)
    return spec


def nothing_in(local: LocalHarness) -> list[str]:
    return [f"nothing is left in {local.provider().place()}"]


def listed(said: CommandResult) -> list[str]:
    return [row["id"] for row in said.json["bursts"]]


def test_what_has_expired_is_deleted_without_a_lead(
    local: LocalHarness, gc: Run
) -> None:
    # The followers of the first end by themselves; their files stay.
    expired = start(local, 0, time.time() - HOUR)
    lives = start(local, 1, time.time() + HOUR)
    for_ever = start(local, 2, 0.0)
    found = gc("--any-owner", "--json")
    assert set(listed(found)) == {s.burst_id for s in (expired, lives, for_ever)}
    assert {row["owner"] for row in found.json["bursts"]} == {local.owner}
    assert listed(gc("--any-owner", "--expired", "--json")) == [expired.burst_id]

    said = gc("--any-owner", "--expired", "--yes")
    assert "ended 1h ago" in said.lines[1] or "ended 60m ago" in said.lines[1]
    assert " is gone" in said.stderr
    left = {status.burst_id for status in local.provider().observe()}
    assert left == {lives.burst_id, for_ever.burst_id}
    assert local.pids(lives.burst_id)
    assert gc("--any-owner", "--expired").lines == nothing_in(local)


def test_of_one_owner_all_is_deleted(local: LocalHarness, gc: Run) -> None:
    lives = start(local, 0, time.time() + HOUR)
    assert gc("--owner", "another-lead", "--yes").lines == nothing_in(local)
    assert local.pids(lives.burst_id)

    said = gc("--yes", lead=f'[lead]\nowner = "{local.owner}"')
    assert said.lines[1].split()[:3] == [lives.burst_id, "here", local.owner]
    assert not local.pids(lives.burst_id)
    assert gc("--any-owner", "--json").json == {"bursts": [], "left": {}}


def test_a_provider_that_is_disabled_by_now_may_have_bursts(
    local: LocalHarness, gc: Run
) -> None:
    lives = start(local, 0, time.time() + HOUR)
    said = gc("--owner", local.owner, "--yes", more="enabled = false")
    assert said.status == 0, said.error
    assert not local.pids(lives.burst_id)


def test_a_lease_that_has_just_ended_is_left_to_its_daemon(
    local: LocalHarness, gc: Run
) -> None:
    start(local, 0, time.time() - 60)
    assert gc("--any-owner", "--expired").lines == nothing_in(local)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--any-owner", "--yes"), "--any-owner --yes needs --expired"),
        (("--any-owner", "--owner", "x"), "give --owner or --any-owner, not both"),
        ((), "whose? The settings have no lead.owner: give --owner TAG"),
    ],
)
def test_what_could_hit_another_leads_bursts_is_refused(
    words: tuple[str, ...], told: str, gc: Run
) -> None:
    said = gc(*words)
    assert said.status == 2
    assert told in said.stderr


def test_a_provider_that_there_is_not(gc: Run) -> None:
    error = gc("--any-owner", name="nowhere").error
    assert error == (
        "there is no provider nowhere in the settings; there are here; use -c to name"
        " the daemon's settings file, in which it is"
    )


def test_what_is_left_is_an_error_and_the_same_command_continues() -> None:
    say_left({})
    with pytest.raises(BurstError) as raised:
        say_left({"burst-0-0fba13": "403 Forbidden"})
    told = "not deleted: burst-0-0fba13: 403 Forbidden; run it again: it continues"
    assert str(raised.value) == told


def test_owners_and_leases_go_with_a_provider() -> None:
    said = burst("gc", "--expired")
    assert said.status == 2
    assert "--owner, --any-owner and --expired need --provider" in said.stderr
