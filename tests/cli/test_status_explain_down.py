# SPDX-License-Identifier: MIT
"""Commands that ask a daemon, as a person types them."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from burst import __version__
from burst.cli.colours import plain_text
from burst.cli.listing import money
from burst.cli.status import bill, notices, some_jobs
from burst.errors import BurstError
from burst.lead import ServiceRequest
from burst.model.jobid import JobId, format_f58
from tests.cli.cli_harness import CliHarness
from tests.cli.conftest import Shared
from tests.contract.instance import SLEEP
from tests.contract.serving import HOLDER
from tests.embedded_instance import EmbeddedInstance
from tests.plugins.watch.watch_answers import answer, offer_row, provider_row
from tests.support.waiting import HANG_S, wait_until


@contextmanager
def burst_of(cli: CliHarness, *words: str) -> Iterator[str]:
    """Ask for a burst and yield its id once it is online; take it down in any case."""
    said = cli.run("request", *words).lines
    burst_id = said[0].rpartition(" ")[2]
    try:
        yield burst_id
    finally:
        cli.run("down", burst_id)


@contextmanager
def job_of(instance: EmbeddedInstance, nodes: int) -> Iterator[JobId]:
    job = instance.submit(nodes=nodes, command=SLEEP)
    try:
        yield job
    finally:
        instance.cancel(job)


def test_a_status_shows_bursts_slots_and_what_to_know_of(shared: Shared) -> None:
    _, cli, daemon = shared
    lines = cli.run("status").lines
    assert lines[:3] == [
        "no bursts",
        "",
        "SLOT     RANKS  NODES           STATE  BURST",
    ]
    assert lines[3] == "burst-0  2-5    4 cores, 1 GPU  free   -"
    assert len(lines) == 5
    found = cli.run("status", "--json").json
    assert found["daemon"]["pid"] == daemon.process.pid
    assert found["lead"]["uri"] == cli.uri
    assert [slot["name"] for slot in found["slots"]] == ["burst-0", "burst-1"]
    assert found["bursts"] == []


def test_nodes_are_requested_shown_and_taken_down(served: CliHarness) -> None:
    said = served.run("request", "-N2").lines
    burst_id = said[0].rpartition(" ")[2]
    assert said[0].startswith("2 nodes of local/local as burst-0-")
    assert said[1].startswith("burst-0-[0-1] joined as ranks 2-3 after ")
    form = "{id} {online}/{nodes} {state:>7} {ranks}"
    assert served.run("status", "-o", form).lines == [f"{burst_id} 2/2  online 2-3"]
    title, row, *_ = served.run("status").lines
    assert title.split()[:4] == ["BURST", "PROVIDER", "STATE", "FOR"]
    assert row.split()[:3] == [burst_id, "local/local", "online"]
    assert served.run("status", "-n").lines[0].startswith(f"{burst_id} ")
    error = served.run("status", "-o", "{id} {stat}").error
    assert error.startswith("-o: no field 'stat'; the fields are access, age, cost,")
    assert "write it as" in served.run("status", "-o", "{id").error
    assert "write it as" in served.run("status", "-o", "{nodes.x}").error
    done = served.run("down", burst_id, "--note", "enough").lines
    assert done[0].startswith(f"{burst_id} is gone after ")
    assert done[0].endswith(": canceled")
    assert served.row(burst_id)["note"] == "enough"
    assert "no bursts" in served.run("status").lines
    assert burst_id in served.run("status", "-a").stdout
    assert served.run("down", burst_id).error == (
        f"burst {burst_id} has ended; burst status --all shows it"
    )


def test_without_waiting_it_is_only_on_its_way(served: CliHarness) -> None:
    (line,) = served.run("request", "-N1", "--no-wait").lines
    burst_id = line.rpartition(" ")[2]
    served.wait_for_state(burst_id, "online")
    assert served.run("down", burst_id, "--no-wait").lines == [
        f"{burst_id} is being taken down"
    ]
    served.wait_for_state(burst_id, "inactive")


def test_hosts_may_be_named_and_no_burst_that_there_is_not(served: CliHarness) -> None:
    with burst_of(served, "-N2", "--slot", "burst-1-[1-3]") as burst_id:
        assert served.row(burst_id)["hosts"] == "burst-1-[1-2]"
        # Before any is taken down.
        error = served.run("down", burst_id, "burst-9").error
    # Those of the tests before may be on their way.
    head, _, live = error.partition("; live bursts: ")
    assert head == "there is no burst 'burst-9'"
    assert burst_id in live.split(", ")


def test_of_several_each_is_taken_down_though_some_cannot(served: CliHarness) -> None:
    with burst_of(served, "-N1") as first, burst_of(served, "-N1") as second:
        # Whole ids may be those of bursts whose records cannot be read.
        unknown = "burst-9-000000", "burst-8-000000"
        said = served.run("down", unknown[0], first, unknown[1], second)
        assert [line.split()[0] for line in said.stdout.splitlines()] == [first, second]
        told = re.findall(r"burst-\d-0{6}: there is no burst burst-\d-0{6}", said.error)
        assert told == [f"{each}: there is no burst {each}" for each in unknown]


def test_a_refusal_is_told_though_the_daemon_goes_before_the_end(
    quiet: CliHarness,
) -> None:
    refused, other, gone = "burst-9-000000", "burst-8-000000", threading.Event()

    def reply(request: ServiceRequest) -> dict[str, Any]:
        if request.method == "status":
            gone.set()
            row = {"id": other, "state": "drain", "note": "x", "online": 1, "nodes": 1}
            return {"bursts": [row]}
        if request.payload["burst"] == refused:
            raise BurstError("it is odd")
        return {}

    def serve() -> None:
        with closing(lead):
            gone.wait(HANG_S)

    lead = quiet.instance.lead()
    lead.serve(reply, HOLDER)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(serve)
        told = quiet.run("down", refused, other).error
    assert told.startswith(f"{refused}: it is odd; {other}: no daemon serves")


def test_a_daemon_of_another_version_is_told(quiet: CliHarness) -> None:
    row = {"id": "burst-0-000000", "state": "online", "result": None}
    answers: dict[str, Any]
    answers = {"ping": {"version": "0.0.1"}, "status": {"bursts": [row]}}
    with closing(quiet.instance.lead()) as lead:
        lead.serve(lambda request: answers[request.method], HOLDER)
        told = quiet.run("status").error
        assert told.startswith("the daemon is burst 0.0.1, and this command is")
        answers["ping"]["version"] = __version__
        with pytest.raises(KeyError):
            quiet.run("status")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("-N30",),
            "30 nodes: it needs 30 nodes; the most that it could ever have is 8",
        ),
        (("-N1", "--slot", "burst-0-["), "give hosts of a rank slot: burst-0-[0-3]"),
    ],
)
def test_what_cannot_be_had_is_refused_with_the_reason(
    words: tuple[str, ...], text: str, served: CliHarness
) -> None:
    assert text in served.run("request", *words).error
    # The burst of an earlier test may just have gone: its ranks are undrained after it.
    assert not [row for row in served.status()["bursts"] if row["state"] != "inactive"]
    wait_until(lambda: served.status()["slots"][0]["state"] == "free", "a free slot")


def test_a_job_that_nobody_can_help_is_told_why_and_can_be_released(
    shared: Shared,
) -> None:
    instance, cli, _ = shared
    with job_of(instance, 9) as job:
        name = format_f58(job)
        wait_until(lambda: name in cli.status()["held"], "the job to be held")
        lines = cli.run("explain", name).lines
        assert "the most that it could ever have is 8" in lines[1]
        # A forecast, which may be there by now, stands between the two.
        assert "held by burst; its urgency was 16 (burst release)" in "\n".join(lines)
        planned = cli.run("plan").lines
        assert planned[0] == "nothing to burst"
        assert planned[2].split() == ["JOB", "NEEDS", "VERDICT", "WHY"]
        assert planned[3].split()[0] == name
        assert cli.run("plan", "-o", "{id} {verdict}").lines == [f"{name} too-large"]
        (row,) = cli.run("plan", "--json").json["jobs"]
        (refusal,) = row["refusals"]
        assert "at most 8 nodes for the job; 9 needed" in refusal["why"]
        assert f"held: {name}" in cli.run("status").lines
        assert cli.run("release", name).lines == [f"released: {name}"]
        wait_until(lambda: instance.info(job).urgency == 16, "its urgency")
        assert cli.run("release", "--all").lines == ["released: nothing is held"]
        assert "is not held by burst" in cli.run("release", name).error
        for words in ((), ("--all", name)):
            assert "give JOBS, or --all" in cli.run("release", *words).stderr


def test_orphans_are_listed_and_deleted_when_told(served: CliHarness) -> None:
    cli = served
    assert cli.run("gc").lines == ["no orphans"]
    orphan = cli.make_orphan()

    def listed() -> list[tuple[str, str, str]]:
        rows = cli.run("gc", "--json").json["orphans"]
        return [(row["id"], row["provider"], row["hosts"]) for row in rows]

    # The daemon may look before its follower was started.
    wait_until(lambda: listed() == [(orphan, "local", "burst-1-0")], listed)
    assert any(line.startswith(f"orphan {orphan} ") for line in cli.run("status").lines)
    assert cli.run("gc", "-o", "{id}: {why}").lines == [
        f"{orphan}: burst has no record of it"
    ]
    deleted = cli.run("gc", "--yes")
    assert deleted.status == 0
    told = f"{orphan} of provider local: it is gone"
    assert told in deleted.stderr.splitlines()
    wait_until(lambda: not cli.run("gc", "--json").json["orphans"], "its end")


def test_a_provider_that_was_disabled_is_enabled_again(served: CliHarness) -> None:
    home = served.home
    home.mkdir(mode=0o700, exist_ok=True)
    made = "its deletion continues: burst status"
    while not (error := error_where_others_may_write(served)).endswith(made):
        # The daemon found it before the request did, and made no burst.
        home.chmod(0o700)
        served.run("enable", "local")
        wait_until(served.is_known, "its offers")
    burst_id = error.partition(" ")[0]
    assert "others may write there" in error
    status = served.run("status").stdout
    home.chmod(0o700)
    assert "provider local is disabled: " in status
    assert "; burst enable local" in status
    assert served.run("enable", "local").lines == ["local is tried again from now on"]
    wait_until(
        lambda: "disabled" not in served.run("status").stdout,
        lambda: served.run("status").stdout,
    )
    served.wait_for_state(burst_id, "inactive")
    error = served.run("enable", "local").error
    assert error == (
        "provider local has no failures to forget;"
        " burst status shows which providers are disabled"
    )
    error = served.run("enable", "nope").error
    assert error == "there is no provider nope; the settings have local"


def error_where_others_may_write(cli: CliHarness) -> str:
    cli.home.chmod(0o777)
    return cli.run("request", "-N1").error


def test_what_doctor_would_call_wrong_is_told_with_a_reload(served: CliHarness) -> None:
    usual = {"type": "local", **served.options}
    served.write(
        providers={"local": usual, "a": {"type": "local", "dir": "/proc/none"}}
    )
    try:
        said = served.run("reload")
        assert said.lines == ["reloaded; changed: providers.a"]
        assert "wrong: provider a: /proc/none" in said.stderr
        assert "set dir to a directory that this user may write" in said.stderr
    finally:
        served.write()
        assert "wrong: " not in served.run("reload").stderr


def test_how_a_job_ended_is_told_also_once_the_daemon_has_forgotten_it(
    shared: Shared,
) -> None:
    instance, cli, _ = shared
    with closing(instance.lead()) as lead:
        job = instance.submit(nodes=9, urgency=0)
        lead.fail_job(job, "no offer has 9 nodes")
        well = instance.submit(slots=1)
        instance.output(well)
    told = "  burst made it fail: no offer has 9 nodes"
    assert told in cli.run("explain", format_f58(job)).lines
    assert "  it completed" in cli.run("explain", format_f58(well)).lines
    found = cli.run("explain", format_f58(well), "--json").json
    assert (found["state"], found["result"]) == ("inactive", "completed")
    for name in (job, well):
        lines = cli.run("explain", format_f58(name)).lines
        assert "released" not in "".join(lines)


def test_a_job_that_the_daemon_never_saw_has_the_same_fields(
    instance: EmbeddedInstance, cli: CliHarness
) -> None:
    with closing(instance.lead()) as lead:
        failed = instance.submit(nodes=9, urgency=0)
        lead.fail_job(failed, "no offer has 9 nodes")
    waits = instance.submit(nodes=9)
    with cli.daemon():
        found = cli.run("explain", format_f58(failed), "--json").json
        assert found["why"] == "burst made it fail: no offer has 9 nodes"
        other = cli.run("explain", format_f58(waits), "--json").json
        assert found.keys() - other.keys() == {"result"}
        assert not other.keys() - found.keys()


def test_an_idle_burst_its_cost_and_its_story_are_told(served: CliHarness) -> None:
    with burst_of(served, "-N2") as name:
        wait_until(lambda: served.row(name)["idle"] is not None, "it to be idle")
        said = served.run("status")
        assert re.search(r"idle [0-9.]+s, down in (1h00m|59m[0-9]{2}s)$", said.lines[1])
        assert "RESULT" not in said.lines[0]
        assert "2 of 8 nodes" in said.lines
        error = served.run("request", "-N30").error
        assert error.endswith(
            f"already idle and ready for jobs: {name} (2 nodes of local)"
        )
        beside = served.run("request", "-N1", "--no-wait")
        other = beside.lines[0].rpartition(" ")[2]
        assert f"ready for jobs: {name} (2 nodes of local)" in beside.stderr
        served.run("down", other)
        lines = served.run("explain", name).lines
    assert lines[:2] == [
        f"{name}: online",
        "  2 nodes of local/local: burst-0-[0-1] as ranks 2-3",
    ]
    assert "until all were online" in "".join(lines)
    assert "jobs that ended: none" in lines
    ended = served.run("explain", name, "--json").json
    assert (ended["state"], ended["result"]) == ("inactive", "canceled")
    assert served.row(name)["online"] == 2
    assert ended["note"] == served.row(name)["note"] != ""
    assert "RESULT" in served.run("status", "-a").lines[0]


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        *((0.0, "0.00"), (14.2, "14.20"), (0.0042, "0.0042")),
        *((0.015, "0.02"), (0.00001, "0.00001"), (-0.5, "-0.50")),
    ],
)
def test_money_is_shown_to_the_hundredth_or_its_first_digits(
    amount: float, shown: str
) -> None:
    assert money(amount) == shown


@pytest.mark.parametrize(
    ("nodes", "of", "told"),
    [(1, None, "1 node"), (2, None, "2 nodes"), (1, 1, "1 of 1 node")],
)
def test_nodes_are_counted(nodes: int, of: int | None, told: str) -> None:
    assert bill({"nodes": nodes, "of": of, "per_hour": 0, "cost": 0}) == told


def test_of_many_jobs_on_a_burst_some_are_shown() -> None:
    assert [some_jobs(list("abcd"[:n])) for n in (0, 1, 3, 4)] == [
        *("-", "a", "a,b,c", "a,b,c +1")
    ]


def test_of_what_offers_no_burst_is_made_is_told_and_why() -> None:
    refused = [
        {"slot": "burst-0", "nodes": 2, "until": 160.0, "why": "pods need a label"},
        {"slot": "", "nodes": 0, "until": 130.0, "why": "a rule forbids it"},
        {"slot": "burst-1", "nodes": 1, "until": 99.0, "why": "over"},
    ]
    offer = offer_row(
        online=None, set_aside_until=110.0, set_aside_why="full", refused=refused
    )
    nothing: dict[str, Any] = {"budgets": (), "held": list("abcd"), "orphans": ()}
    nothing |= {"totals": {"nodes": 0}, "unreadable": {}, "banks_unverified": ""}
    rows = [provider_row("far", offers=[offer], breaker_until=1900.0)]
    slots = [
        {"name": "burst-0", "state": "free"}
        | {"drained": {"bad fan": "3", "dust": "4-5"}},
        {"name": "x", "state": "occupied", "drained": {}},
    ]
    found = answer(now=100.0, providers=rows, slots=slots, **nothing)
    told = [plain_text(line) for line in notices(found)]
    assert told == [
        "rank 3 of slot burst-0 is drained by hand: bad fan; when that no longer holds:"
        " flux resource undrain 3",
        "ranks 4-5 of slot burst-0 are drained by hand: dust; when that no longer"
        " holds: flux resource undrain 4-5",
        "slot x is in use, and not by a burst; burst doctor says by what",
        "provider far gets no new bursts for 30m: its calls failed in a row; burst"
        " enable far ends that",
        "offer far/n2 is set aside for 10s: full",
        "offer far/n2: bursts of 2 nodes in slot burst-0 are refused for 1m: pods need"
        " a label",
        "offer far/n2: all bursts are refused for 30s: a rule forbids it",
        "held: a,b,c +1",
    ]
