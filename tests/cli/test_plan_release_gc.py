# SPDX-License-Identifier: MIT
"""`burst plan`, `release` and `gc` where no daemon serves the lead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from burst.cli.gc import show_found
from burst.cli.listing import Listing
from burst.cli.release import tell_released
from burst.errors import BurstError
from burst.lead import JobFailures
from burst.model.jobid import JobId, format_f58
from tests.cli.cli_harness import CliHarness
from tests.cli.conftest import Quiet
from tests.support.waiting import wait_until


@pytest.fixture
def held(unserved: Quiet) -> Iterator[JobId]:
    """A job that a daemon held before it ended."""
    instance, cli = unserved
    job = instance.submit(nodes=9, urgency=20)
    with cli.daemon() as daemon:
        wait_until(
            lambda: format_f58(job) in cli.status()["held"], "the job to be held"
        )
        daemon.end()
    yield job
    instance.cancel(job)


def test_a_plan_without_a_daemon_says_what_one_would_do(unserved: Quiet) -> None:
    instance, cli = unserved
    cli.write(
        providers={"local": {"type": "local", "price": 7.0, **cli.options}},
        prices={"local.local": 0.5},
    )
    job = instance.submit(nodes=3)
    large = instance.submit(nodes=5)
    try:
        lines = cli.run("plan").lines
        found = cli.run("plan", "--json").json
        form = "{id} {needs}: {verdict}"
        formed = cli.run("plan", "-o", form).lines
        drawn = cli.run("plan", "--timeline").lines
    finally:
        cli.write()
        instance.cancel(job)
        instance.cancel(large)
    titles, *rows = (line.split() for line in lines[:3])
    assert " ".join(titles) == "BURST PROVIDER NODES RANKS PER HOUR PRICE JOBS"
    names = [format_f58(job), format_f58(large)]
    assert [row[1:] for row in rows[:1]] == [
        ["local/local", "3", "2-4", "1.5", "by", "[prices]", names[0]]
    ]
    assert [row["priced_by"] for row in found["bursts"][:1]] == ["site"]
    (why,) = (row["why"] for row in found["jobs"] if row["id"] == names[0])
    assert why.endswith(", at 0.5 per node-hour by [prices]")
    assert [row["holder"] for row in found["timeline"]][:1] == ["planned"]
    assert f"would get the ranks for {names[0]}" in drawn[1]
    # The large one needs more slots than are free: they may be kept for it.
    verdicts = {"proposed", "turned-down", "reserved"}
    assert {row["verdict"] for row in found["jobs"]} <= verdicts
    assert f"{names[0]} 3 whole nodes, 3 slots of 1 core: proposed" in formed
    with closing(instance.lead()) as lead:
        assert not [key for key in lead.store().load() if key.startswith("burst/")]


def test_a_plan_tells_of_each_offer_that_was_turned_down(unserved: Quiet) -> None:
    instance, cli = unserved
    job = instance.submit(nodes=3, provider="gke")
    try:
        lines = cli.run("plan").lines
    finally:
        instance.cancel(job)
    assert lines[0] == "nothing to burst"
    assert f"{format_f58(job)}: local/local: the job asks for provider gke" in lines


def test_jobs_that_a_daemon_left_held_are_released_without_one(
    unserved: Quiet, held: JobId
) -> None:
    instance, cli = unserved
    name = format_f58(held)
    assert instance.info(held).urgency == 0
    assert cli.run("release", name).lines == [f"released: {name}"]
    assert instance.info(held).urgency == 20
    told = (
        f"{name} is not held by burst; if its user holds it,"
        f" flux job urgency {name} default releases it"
    )
    assert cli.run("release", name).error == told
    assert cli.run("release", "--all").lines == ["released: nothing is held"]


def test_what_is_no_job_is_refused(quiet: CliHarness) -> None:
    assert "not a job id: '?'" in quiet.run("release", "?").error


def test_jobs_that_stay_held_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    failures: JobFailures = {JobId(1): "no answer"}
    with pytest.raises(BurstError, match=r"not released: ƒ2: no answer; run it again"):
        tell_released(["ƒ3"], failures)
    assert capsys.readouterr().out == "released: ƒ3\n"
    with pytest.raises(BurstError):
        tell_released([], failures)
    assert capsys.readouterr().out == ""


def test_orphans_are_listed_and_deleted_without_a_daemon(quiet: CliHarness) -> None:
    cli = quiet
    assert cli.run("gc").lines == ["no orphans"]
    orphan = cli.make_orphan()
    title, row = cli.run("gc").lines
    assert title.split() == ["ORPHAN", "PROVIDER", "HOSTS", "WHY"]
    assert row.split()[:3] == [orphan, "local", "burst-1-0"]
    assert cli.provider().observe()
    said = cli.run("gc", "--yes")
    assert f"{orphan} of provider local is being deleted" in said.stderr
    assert said.stderr.endswith(f"{orphan} of provider local is gone\n")
    found = cli.run("gc", "--json").json
    assert found.pop("looked_at") == ["local"]
    # As the fields that a daemon gives.
    empty = {"orphans", "asked", "reaps", "left", "failed", "deleting"}
    assert found.keys() == empty
    assert not any(found.values())


def test_what_is_left_is_an_error_once_all_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = {"orphans": [], "looked_at": ["a"], "failed": {}, "left": {"b": "denied"}}
    with pytest.raises(BurstError, match="not deleted: b: denied"):
        show_found(found, Listing(as_json=True))
    assert json.loads(capsys.readouterr().out) == found


def test_a_daemon_without_providers_has_looked_nowhere_for_orphans(
    cli: CliHarness,
) -> None:
    cli.write(providers={})
    with cli.daemon() as daemon:
        said = cli.run("gc")
        assert said.status == 1
        assert said.stdout == ""
        assert "none was asked: there may be orphans" in said.error
        assert "in the daemon's settings, then burst reload" in said.error
        assert '"looked_at": []' in cli.run("gc", "--json").stdout
    assert f"no burst can be made: enable one in {cli.config}" in daemon.log


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "f1"),
        ("request", "-N1"),
        ("down", "burst-0-aaaaaa"),
        ("enable", "local"),
        ("reload",),
    ],
)
def test_what_needs_a_daemon_says_how_to_start_one(
    words: tuple[str, ...], unserved: Quiet
) -> None:
    error = unserved[1].run(*words).error
    assert error == (
        "no daemon serves this lead; start one: systemctl start burst where its unit"
        " is installed, else burst daemon -c FILE; or ask the instance's owner"
    )


@pytest.mark.parametrize("command", ["status", "plan", "gc", "release"])
def test_a_lead_that_is_not_there_is_named(command: str, quiet: CliHarness) -> None:
    words = ("--all",) if command == "release" else ()
    said = quiet.run(command, *words, "--uri", f"embedded://{quiet.directory}/none")
    assert f"{quiet.directory}/none" in said.error
