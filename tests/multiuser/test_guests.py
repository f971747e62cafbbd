# SPDX-License-Identifier: MIT
"""What guests can and cannot do at a daemon, by their own uids and connectors."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from burst.model.jobid import EXAMPLE
from tests.intake.modes import CONFINING
from tests.multiuser.apart import serve
from tests.multiuser.guest_calls import FORGED
from tests.multiuser.lab import GUESTS, OWNER, UIDS
from tests.multiuser.system_instance import SystemInstance
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.multiuser

SEED = int(os.environ.get("BURST_GUESTS_SEED") or 1)
"""The same in each run: a gate is not to depend on a draw; a soak test sets others."""
SECONDS = float(os.environ.get("BURST_GUESTS_SECONDS") or 4.0)
"""For how long guests do what they can; a soak test sets more."""
KEPT: dict[str, Any] = {"deadlines": {"idle": "10m"}}
_ID = re.compile(r"ƒ[1-9A-HJ-NP-Za-km-z]+")
_BURST = re.compile(r"burst-\d-[0-9a-f]{6}")
_CALLS = ("python", "-m", "tests.multiuser.guest_calls")
_LONG = ("-N3", "--setattr=burstable", "sleep", "inf")


def states(system: SystemInstance) -> dict[str, str]:
    """The state of each burst, as its owner sees it."""
    return {row["id"]: row["state"] for row in system.bursts()}


def running(system: SystemInstance, job: str) -> bool:
    return system.jobs("{status_abbrev}", job) == ["R"]


def wait_for_start(system: SystemInstance, job: str) -> None:
    """Wait until a job runs."""
    wait_until(
        lambda: running(system, job),
        lambda: system.flux(OWNER, "job", "eventlog", job),
    )


def forged_call(
    system: SystemInstance, user: str, method: str, payload: dict[str, Any]
) -> tuple[int, str]:
    """Call the service by a bare RPC, which no command line has checked."""
    script = (
        "import sys, json, flux\n"
        "try: print(json.dumps([0, flux.Flux().rpc(sys.argv[1],"
        " json.loads(sys.argv[2])).get_str()]))\n"
        "except OSError as e: print(json.dumps([e.errno, str(e)]))\n"
    )
    words = ("python", "-c", script, f"burst.{method}", json.dumps(payload))
    found: list[Any] = json.loads(system.flux(user, *words))
    return found[0], str(found[1])


def test_a_guest_can_do_nothing_to_another_by_commands_or_bare_rpcs(
    system: SystemInstance,
) -> None:
    system.write_settings(**KEPT)
    with system.daemon():
        job = system.flux("ann", "submit", *_LONG)
        wait_for_start(system, job)
        (burst,) = states(system)

        mine = system.status("ann")
        assert [row["jobs"] for row in mine["bursts"]] == [[job]]
        assert system.status("bob")["bursts"] == []
        told = system.burst("bob", "status", "-a", "--json")
        assert job not in told
        assert burst not in told
        for words in (
            *(("explain", job), ("explain", burst), ("output", job)),
            *(("release", job), ("request", "--job", job), ("request", "-N1")),
            *(("down", burst), ("down", "--force", burst), ("plan",)),
            *(("resize", burst, "1"), ("gc",), ("gc", "--yes"), ("enable", "local")),
            *(("reload",), ("ensemble", "status"), ("ensemble", "down", "x")),
            ("request", "-N1", "--isolated", "id"),
        ):
            done = system.try_burst("bob", *words)
            assert done.returncode != 0, (words, done.stdout)
            assert "Traceback" not in done.stderr
        pretended = {"userid": UIDS[OWNER], "owner": True, "rolemask": 1}
        for method in ("down", "release", "request-job", "gc", "reload", "resize"):
            payload = {"burst": burst, "id": job, "ids": [job], "nodes": 1, "yes": True}
            number, text = forged_call(system, "bob", method, payload | pretended)
            assert number in (errno.EPERM, errno.EINVAL), (method, text)
        # Nor by saying that he is another: what Flux's own tests do, as the owner.
        as_owner = {"FLUX_HANDLE_USERID": str(UIDS[OWNER]), "FLUX_HANDLE_ROLEMASK": "1"}
        script = "import flux; flux.Flux().rpc('burst.gc', {'yes': True}).get()"
        done = system.try_flux("bob", "python", "-c", script, **as_owner)
        assert done.returncode != 0, done.stdout
        memo = system.try_flux("bob", "job", "memo", job, "burst.state=gone")
        assert memo.returncode != 0
        assert states(system) == {burst: "online"}
        assert running(system, job)
        system.flux("ann", "cancel", job)


def test_forged_attributes_and_environment_give_no_rights(
    system: SystemInstance,
) -> None:
    system.write_settings(limits={"max_nodes_per_user": 3})
    with system.daemon():
        jobs = [
            system.flux(
                "bob", "submit", "-N3", "--setattr=burstable", forged, "id", "-u"
            )
            for forged in FORGED
        ]

        def is_known(job: str) -> bool:
            live = [b for b in system.bursts() if b["state"] != "inactive"]
            assert sum(b["nodes"] for b in live) <= 3
            return not system.try_burst(OWNER, "explain", job).returncode

        # One that the daemon cannot read is left alone; it gets no more than others.
        for job in jobs:
            wait_until(partial(is_known, job), f"{job} to be known")
            found = json.loads(system.burst(OWNER, "explain", job, "--json"))
            assert found["userid"] == UIDS["bob"]
            assert not found.get("tag")
        system.flux(OWNER, "cancel", "--all", "--user=all")


def test_a_guest_requests_a_burst_that_is_his_alone(system: SystemInstance) -> None:
    system.write_settings(guests={"request_nodes": 2}, **KEPT)
    with system.daemon():
        system.burst("bob", "request", "-N2")
        (burst,) = states(system)
        assert states(system) == {burst: "online"}
        over = system.try_burst("bob", "request", "-N1")
        assert "you have 2, and ask for 1 more" in over.stderr
        assert system.status("ann")["bursts"] == []
        refused = system.try_burst("ann", "down", burst)
        assert "is not a burst that you requested" in refused.stderr
        assert states(system) == {burst: "online"}
        done = system.try_flux(
            "bob", "run", "-N2", "--setattr=burstable", "--requires=burst", "id", "-u"
        )
        assert done.stdout.split() == [str(UIDS["bob"])] * 2, done
        system.burst("bob", "down", burst)
        assert states(system) == {burst: "inactive"}


def test_a_flood_of_one_guest_delays_neither_the_owner_nor_another(
    system: SystemInstance,
) -> None:
    with system.daemon() as daemon:
        limit = 3 * max(_seconds(system, user) for user in (OWNER, "bob")) + 2.0
        logs, floods = [], []
        began = time.monotonic()
        for number in range(3):
            logs.append(Path(system.directory / f"flood-{number}"))
            with logs[-1].open("wb") as log:
                words = (*_CALLS, system.uri, "flood", "0", f"{HANG_S}")
                floods.append(system.lab.start("ann", *words, log=log))
        wait_until(
            lambda: all("many were refused\n" in log.read_text() for log in logs),
            lambda: [log.read_text()[-500:] for log in logs],
        )
        # A daemon that a flood holds up is late each time, a busy machine now and then.
        took = {user: _answer_times(system, user, limit) for user in (OWNER, "bob")}
        assert all(flood.poll() is None for flood in floods), "each floods it still"
        for flood in floods:
            flood.terminate()
        for flood in floods:
            assert flood.wait(HANG_S) == 0, [log.read_text()[-500:] for log in logs]
        lasted = time.monotonic() - began
        found = [json.loads(log.read_text().splitlines()[-1]) for log in logs]
        assert daemon.process.poll() is None
        refused = sum(each["found"].get(str(errno.EAGAIN), 0) for each in found)
        sent = sum(each["sent"] for each in found)
        # 200 calls at once and 20 a second are 40 reports and 4 a second.
        assert sent - refused < 40 + 4 * lasted + 40
        assert refused > 1000
        assert all(min(times) <= limit for times in took.values()), (limit, took)
        assert "Traceback" not in daemon.log()


def _answer_times(system: SystemInstance, user: str, limit: float) -> list[float]:
    """How long each of a user's calls took, until one was answered within the limit.

    All are of one process: to start one takes long on a busy machine.
    """
    words = (*_CALLS, system.uri, "ask", "0", f"{limit}")
    return list(json.loads(system.lab.run(user, *words))["took"])


def test_subordinate_user_ids_of_a_guest_are_no_further_users(
    system: SystemInstance,
) -> None:
    """Nodes would be rented for each of them, and the IMP would start no job there."""
    system.lab.run("root", "sh", "-c", "echo ann:700000:65536 >> /etc/subuid")
    asked = ("-N3", "--requires=burst", "--cwd=/", "--setattr=burstable", "true")
    with system.daemon():
        jobs = [system.flux(f"{700000 + n}", "submit", *asked) for n in range(2)]
        whys = "its user 700000 is a subordinate user id of ann (subuid(5))"
        wait_until(
            lambda: whys in system.try_burst(OWNER, "explain", jobs[0]).stdout,
            lambda: system.try_burst(OWNER, "explain", jobs[0]),
        )
        for method in ("intake", "status", "explain", "report"):
            errnum, text = forged_call(system, "700000", method, {"id": jobs[0]})
            assert errnum == errno.EPERM
            assert "700000 is a subordinate user id of ann" in text
        told = system.try_burst("700001", "status")
        assert told.returncode == 1
        assert "run burst outside of the user namespace" in told.stderr
        job = system.flux("ann", "submit", *asked)
        assert system.wait_for_end("ann", job).returncode == 0
        wait_until(
            lambda: [burst["jobs"] for burst in system.bursts()] == [[]],
            lambda: f"its job to be over: {system.bursts()}",
        )
        assert len(system.bursts()) == 1, "ann's own"
    for refused in jobs:
        system.flux(OWNER, "cancel", refused)


def _seconds(system: SystemInstance, user: str) -> float:
    """How long `burst status` takes a user."""
    began = time.monotonic()
    system.status(user)
    return time.monotonic() - began


@pytest.mark.parametrize("extra", [CONFINING["scheduler"]], ids=["users apart"])
def test_hostile_guests_at_random(system: SystemInstance) -> None:
    sys.stdout.write(f"BURST_GUESTS_SEED={SEED} BURST_GUESTS_SECONDS={SECONDS:g}\n")
    limits = {"max_nodes_per_user": 4}
    allowed = {"guests": {"request_nodes": 3}, "limits": limits}
    with serve(system, "scheduler", **allowed) as daemon:
        job = system.flux(OWNER, "submit", *_LONG)
        wait_for_start(system, job)
        (owners,) = states(system)
        # A job may run before the tick that sees its burst online.
        wait_until(lambda: states(system)[owners] == "online", system.bursts)
        logs = {guest: system.directory / f"calls-{guest}" for guest in GUESTS}
        users = []
        for number, guest in enumerate(GUESTS):
            words = (*_CALLS, system.uri, "random", f"{SEED + number}", f"{SECONDS}")
            with logs[guest].open("wb") as log:
                env = {"FLUX_URI": system.uri}
                users.append(
                    system.lab.start(guest, *words, job, owners, log=log, env=env)
                )
        while any(user.poll() is None for user in users):
            for guest in GUESTS:
                assert _nodes(system, guest) <= 4
            assert running(system, job)
            assert states(system)[owners] == "online"
        assert daemon.process.poll() is None, daemon.log()
        assert "Traceback" not in daemon.log()
        whose = dict(
            line.split() for line in system.jobs("{id} {userid}") if line.strip()
        )
        for guest in GUESTS:
            told = json.loads(logs[guest].read_text())
            assert told["found"].get("0"), told["found"]
            assert told["found"].get(str(errno.EPERM)), told["found"]
            text = "\n".join(told["texts"])
            assert "internal error" not in text
            named = {*_ID.findall(text)} - {EXAMPLE}
            assert {whose.get(name) for name in named} <= {str(UIDS[guest])}
            theirs = {row["id"] for row in _rows(system, guest)}
            assert set(_BURST.findall(text)) <= theirs
        shown = [{row["id"] for row in _rows(system, guest)} for guest in GUESTS]
        assert not shown[0] & shown[1]
        system.flux(OWNER, "cancel", "--all", "--user=all")
        for name, state in states(system).items():
            if state != "inactive":
                system.try_burst(OWNER, "down", "--no-wait", name)
        wait_until(
            lambda: set(states(system).values()) == {"inactive"},
            lambda: str(system.bursts()),
        )
    assert not list(Path(system.directory, "p").rglob("local"))


def _nodes(system: SystemInstance, guest: str) -> int:
    """How many nodes a guest is told of."""
    live = [row for row in _rows(system, guest) if row["state"] != "inactive"]
    return sum(row["nodes"] for row in live)


def _rows(system: SystemInstance, guest: str) -> list[Any]:
    """The rows of what a guest is shown, once he has not called too often."""
    told: list[str] = []

    def is_told() -> bool:
        done = system.try_burst(guest, "status", "-a", "--json")
        assert not done.returncode or "too often" in done.stderr, done.stderr
        told.append(done.stdout)
        return not done.returncode

    wait_until(is_told, "an answer to a guest")
    return list(json.loads(told[-1])["bursts"])


def test_root_starts_no_followers_and_the_doctor_judges_as_the_owner_alone(
    system: SystemInstance,
) -> None:
    """Followers would be brokers of root, on which the owner could run anything as
    root; by root's rights the doctor took their directory for others', to be removed.
    """
    command = ("python", "-m", "burst", "daemon", "-c", str(system.settings))
    done = system.lab.try_run("root", *command, "--uri", system.uri)
    assert done.returncode == 1, done
    assert "flux owns the instance, and this is uid 0" in done.stderr
    assert not (system.directory / "p").exists()
    for user in ("root", GUESTS[0]):
        done = system.try_burst(user, "doctor", "-c", str(system.settings), "--json")
        assert done.returncode == 1, done
        (found,) = json.loads(done.stdout)["findings"]
        assert found["about"] == "user"
        assert found["what"].startswith("the instance and its daemon run as flux")
        assert f"command runs as {user}, " in found["what"]
        assert "runuser -u flux -- burst doctor" in found["advice"]
    told = system.try_burst(OWNER, "doctor", "-c", str(system.settings), "--json")
    about = {each["about"] for each in json.loads(told.stdout)["findings"]}
    assert {"lead", "ranks", "daemon"} <= about
