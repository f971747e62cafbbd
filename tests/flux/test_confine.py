# SPDX-License-Identifier: MIT
"""Constraints that the daemon changes, on a real Flux: what keeps, moves and forges."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pytest

from burst.config import IntakeSettings
from burst.flux import FluxLead
from burst.flux_setup.running_instance import read_jobs_in
from burst.flux_setup.setup_files import (
    IntakeChoice,
    lead_tables,
    single_directory,
)
from burst.model.jobid import JobId, parse_jobid
from burst.model.lead import JobState
from tests.flux_instance import FLUX, FluxInstance
from tests.flux_pool import FluxPool
from tests.intake.modes import CONFINING, QUEUES
from tests.intake.user_cli import SCHEDULER as SCHEDULER_FILE
from tests.intake.user_cli import UserCli
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.flux

GUESTS = {"access": {"allow-guest-user": True}}
ITS = frozenset({2, 3})


SITES = {"batch": {"requires": ["local"]}, "debug": {"requires": ["local"]}}
HOLD, QUEUE, SCHEDULER = (
    {**GUESTS, **CONFINING[mode]} for mode in ("hold", "queue", "scheduler")
)


@pytest.fixture
def instance(flux_pool: FluxPool, extra: Mapping[str, Any]) -> Iterator[FluxInstance]:
    """Give a lead that was told to have these tables, too."""
    with flux_pool.lend() as instance:
        instance.reload_config(extra)
        yield instance


@pytest.fixture
def user(instance: FluxInstance) -> UserCli:
    return UserCli(instance)


def look(lead: FluxLead, job: str) -> Any:
    return lead.observe().jobs[parse_jobid(job)]


NEVER_LENT = {"or": [{"properties": ["^burst"]}]}


@pytest.mark.parametrize("extra", [HOLD])
def test_every_job_of_a_lead_with_guests_is_confined_when_it_comes(
    user: UserCli,
) -> None:
    plain = user.submit("true")
    asking = user.submit(
        "--setattr=burstable", "--requires=burst", "--urgency=hold", "true"
    )
    assert user.constraint(plain) == {"and": [NEVER_LENT]}
    own = {"properties": ["burst"]}
    assert user.constraint(asking) == {"and": [NEVER_LENT, own]}
    user.do("cancel", asking)


@pytest.mark.parametrize("extra", [QUEUE])
def test_in_its_queue_a_burst_job_cannot_be_moved_by_its_user(
    user: UserCli, instance: FluxInstance
) -> None:
    """Nor from any other queue; the daemon moves it, with its nodes."""
    user.do("queue", "start", "-qburst-ready")
    job = user.submit("--setattr=burstable", "-qburst", "--requires=burst-0", "true")
    plain = user.submit("-qbatch", "true")
    for each in job, plain:
        said = user.type("update", each, "queue=burst-ready")
        assert "non-queue constraints" in said.error
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        before = look(lead, job)
        assert before.confined_to == frozenset()
        number = parse_jobid(job)
        assert not lead.move({number: "burst-ready"}, {number: ITS})
        moved = look(lead, job)
        assert (moved.queue, moved.confined_to) == ("burst-ready", ITS)
        assert moved.request == before.request
        assert not lead.move({number: "burst"}, {number: frozenset()})
        back = look(lead, job)
        assert (back.queue, back.confined_to) == ("burst", frozenset())
        assert back.request == before.request
        assert lead.move({JobId(7): "burst"}, {JobId(7): ITS}).keys() == {7}
    # If somebody starts its queue, it waits for nodes, and is not denied.
    user.do("queue", "start", "-qburst")
    wait_until(lambda: user.state(job) == "SCHED", "the job to be shown to Flux")
    assert user.type("job", "wait-event", "-t0.5", job, "exception").status != 0
    user.do("cancel", job, plain)


@pytest.mark.parametrize("extra", [HOLD])
def test_a_restart_and_a_reload_keep_what_a_job_may_have(
    user: UserCli, instance: FluxInstance
) -> None:
    # By its own constraint it keeps off the own node that is up.
    words = ("--setattr=burstable", "--urgency=hold", "--requires=burst", "-N2")
    job = user.submit(*words, "true")
    with closing(instance.lead()) as lead:
        lead.confine({parse_jobid(job): ITS})
    user.do("module", "reload", "-f", "sched-simple")
    instance.stop()
    instance.start()
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        assert look(lead, job).confined_to == ITS
        lead.release({parse_jobid(job): 16})
        for host in "burst-1-0", "burst-1-1":
            instance.start_follower(host)
        wait_until(lambda: {6, 7} <= lead.observe().online, "two other followers")
        plain = user.submit("--urgency=31", "true")
        user.ended(plain)
        assert look(lead, job).state is JobState.SCHED
        for host in "burst-0-0", "burst-0-1":
            instance.start_follower(host)
        user.ended(job)
    assert user.do("jobs", "-ano{ranks}", job) == "[2-3]"


@pytest.mark.parametrize("extra", [SCHEDULER])
def test_in_mode_scheduler_nobody_may_write_what_the_daemon_writes(
    user: UserCli,
) -> None:
    plain, spec = user.spec("true"), user.spec("--setattr=burstable", "true")
    part = {"or": [{"properties": ["^burst"]}, {"ranks": ["2-9"]}]}
    for forged in part, {"and": [part]}, {"and": [{"and": [part]}]}:
        for each in plain, spec:
            said = user.submit_spec(each, forged)
            assert "only the burst daemon may set this" in said.error
    owns: list[Any] = [{"properties": ["a"]}, {"or": [{"properties": ["a"]}]}]
    for own in (*owns, {"and": []}):
        assert user.submit_spec(spec, own).status == 0


DEEP: Any = {"properties": ["a"]}
for _ in range(100):
    DEEP = {"and": [DEEP]}
LONG = ",".join(f"lead-{n % 2}" for n in range(20))
NO_CONSTRAINTS: list[Any] = [
    *({"not": []}, {"or": {"ranks": ["2"]}}, {"and": "x"}, {"and": [None]}, {"": []}),
    *({"or": [{"properties": ["^burst"]}, {"not": []}]}, {"properties": ["a", 5]}),
    *("x", [1], {"ranks": ["x"]}, {"hostlist": ["a[0-"]}, {"ranks": 2}, DEEP),
    {"properties": ["a"], "or": [{"ranks": ["2"]}]},
    # A scheduler would take long to evaluate these, for each rank.
    *({"ranks": ["0-1000000"]}, {"not": [{"ranks": ["1000000"]}]}),
    *({"ranks": ["0-9"] * 300}, {"or": [{"or": [{"ranks": ["2"]}] * 20}] * 20}),
    *({"hostlist": ["lead-[0-1]," * 1000]}, {"or": [{"hostlist": [LONG]}] * 60}),
    # Each value is right, and all of them together are none.
    *({"ranks": ["0", "0"]}, {"ranks": ["0-1", "1"]}, {"ranks": ["[0]", "1"]}),
    {"or": [{"properties": ["a"]}, {"not": [{"ranks": ["0", "[]"]}]}]},
]


@pytest.mark.parametrize("extra", [HOLD])
def test_what_is_no_constraint_is_refused_where_there_are_guests(
    user: UserCli,
) -> None:
    """Flux's scheduler ends at some of these, and the lead with it."""
    spec = user.spec("true")
    for wrong in NO_CONSTRAINTS:
        assert user.submit_spec(spec, wrong).status, wrong
    right: list[Any] = [{"and": []}, {"or": [{"not": [{"ranks": ["2-5"]}]}]}]
    right += [{"hostlist": ["lead-[0-1]"]}, {"properties": ["^burst", "local"]}]
    right += [{"ranks": ["0", "1-2"]}, {"hostlist": ["lead-0", LONG]}]
    for own in right:
        said = user.submit_spec(spec, own)
        assert said.status == 0, said.error
        user.ended(said)


def lend_rank_2(instance: FluxInstance) -> None:
    """Start a follower, and wait until the lead has it."""
    instance.start_follower("burst-0-0")
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        wait_until(lambda: 2 in lead.observe().online, "the follower")


def test_where_guests_are_let_in_later_lent_nodes_are_nobodys_from_then_on(
    user: UserCli, instance: FluxInstance
) -> None:
    user.use_scheduler()
    lend_rank_2(instance)
    words = ("--setattr=burstable", "--requires=burst", "true")
    user.ended(user.submit(*words))
    with closing(instance.lead()) as lead:
        assert not lead.identity().access.allow_guest_user
        instance.reload_config(GUESTS)
        assert lead.read_access().allow_guest_user
        assert lead.identity().access.allow_guest_user
    job = user.submit(*words)
    user.ended(user.submit("--setattr=burstable", "true"))
    assert user.stats()["burst_jobs"] == 1
    assert user.state(job) == "SCHED"
    user.do("cancel", job)


def test_a_reload_while_the_scheduler_starts_holds_up_neither(
    user: UserCli, instance: FluxInstance
) -> None:
    """The module `config` waits for all others, and answers nobody meanwhile."""
    user.do("module", "remove", "sched-simple")
    words = [FLUX, "module", "load", SCHEDULER_FILE]
    environment = {**os.environ, "FLUX_URI": instance.uri}
    with subprocess.Popen(words, env=environment) as loading:
        time.sleep(0.1)
        instance.reload_config(GUESTS)
        assert loading.wait(HANG_S) == 0
    user.ended(user.submit("true"))


def test_a_configuration_that_cannot_be_read_is_refused_and_ends_no_scheduler(
    user: UserCli, instance: FluxInstance
) -> None:
    user.use_scheduler()
    for wrong in "x", ["x"]:
        tables = {**GUESTS, "ingest": {"frobnicator": {"burst": wrong}}}
        with pytest.raises(AssertionError, match="cannot be read"):
            instance.reload_config(tables)
    user.ended(user.submit("true"))


@pytest.mark.parametrize("extra", [GUESTS])
def test_what_came_around_the_frobnicator_gets_no_lent_nodes(
    user: UserCli, instance: FluxInstance
) -> None:
    """As by a broker whose own file lacks it; Flux's scheduler ends at one of these."""
    user.use_scheduler()
    lend_rank_2(instance)
    spec = user.spec("-N1", "true")
    lent: Any = {"properties": ["burst"]}
    wrong: list[Any] = [{"properties": "^burst"}, {"not": []}, [lent]]
    wrong += [{"ranks": ["0-1000000"]}, {"ranks": ["0", "0"]}]
    for own in (lent, {"or": [lent]}, {"and": [lent]}, *wrong):
        said = user.submit_spec(spec, own)
        if said.status == 0:  # the validator refuses some
            user.event(str(said), "exception")
    own_nodes: list[Any] = [{"properties": ["^burst"]}, {}]
    for own in (*own_nodes, {"and": [{"properties": ["local"]}]}):
        said = user.submit_spec(spec, own)
        user.ended(str(said))
        assert user.hosts(str(said)) == "lead-0"
    too_many = user.submit("-N3", "true")
    user.event(too_many, "exception")


@pytest.mark.parametrize("extra", [{**SCHEDULER, "queues": SITES}])
def test_in_mode_scheduler_other_jobs_change_their_queue_as_ever(
    user: UserCli,
) -> None:
    user.use_scheduler()
    job = user.submit("-qbatch", "--urgency=hold", "true")
    user.do("update", job, "queue=debug")
    user.do("cancel", job)


@pytest.mark.parametrize("extra", [{}])
def test_jobs_from_before_there_were_queues_get_into_that_of_ordinary_jobs(
    user: UserCli, instance: FluxInstance
) -> None:
    user.do("queue", "stop")
    waits, held = user.submit("true"), user.submit("--urgency=hold", "true")
    first = user.submit(f"--dependency=afterany:{waits}", "true")
    kept = user.submit("--requires=^nosuch", "true")
    places = single_directory(instance.directory)
    intake = IntakeSettings(mode="queue")
    choice = IntakeChoice(intake=intake, local_queue="batch")
    added = lead_tables(places, choice)
    instance.reload_config({name: added[name] for name in ("queues", "policy")})
    # Flux has no command for it.
    assert "named queue is required" in user.type("update", waits, "queue=batch").error
    with closing(instance.lead()) as lead:
        lead.prepare_queues(intake)
    there = {parse_jobid(job) for job in (waits, held, first, kept)}
    assert set(read_jobs_in(instance.uri, added["queues"])) == there
    user.do("queue", "start", "--queue=batch")
    user.do("job", "urgency", held, "default")
    for job in (waits, held, first, kept):
        user.ended(job)
        assert instance.job_line("{queue} {result}", job) == "batch COMPLETED"
        assert user.constraint(job)["and"][0] == NEVER_LENT
    assert user.constraint(kept)["and"][1] == {"properties": ["^nosuch"]}


@pytest.mark.parametrize("extra", [{"queues": SITES}])
def test_a_site_says_itself_what_becomes_of_jobs_without_a_queue(
    user: UserCli, instance: FluxInstance
) -> None:
    instance.reload_config({"queues": {}})
    job = user.submit("--urgency=hold", "true")
    instance.reload_config({"queues": {**QUEUES, **SITES}})
    with closing(instance.lead()) as lead:
        lead.prepare_queues(IntakeSettings(mode="queue"))
    assert instance.job_line("{queue}", job) == ""
    user.do("cancel", job)


@pytest.mark.parametrize("extra", [{**HOLD, "queues": SITES}])
def test_in_mode_hold_no_job_of_a_site_with_guests_changes_its_queue(
    user: UserCli,
) -> None:
    """docs/adopt.md says so, and `burst doctor`."""
    job = user.submit("-qbatch", "--urgency=hold", "true")
    said = user.type("update", job, "queue=debug")
    assert "non-queue constraints" in said.error
    user.do("cancel", job)


_ANY_NODE = {"free": {}, "night": {"requires": ["^burst"]}, **SITES}


@pytest.mark.parametrize("extra", [{**CONFINING["hold"], "queues": _ANY_NODE}])
def test_a_queue_of_any_nodes_requires_that_they_are_not_lent_or_keeps_its_jobs(
    user: UserCli,
) -> None:
    """Without guests, too; as doctor says."""
    night = user.submit("-qnight", "--urgency=hold", "true")
    user.move(night, "batch")
    user.move(night, "night")
    assert user.constraint(night) == {"properties": ["^burst"]}
    free = user.submit("-qfree", "--urgency=hold", "true")
    assert "non-queue" in user.type("update", free, "queue=batch").error
    user.do("cancel", night, free)


@pytest.mark.parametrize("extra", [{"queues": SITES}])
def test_flux_moves_no_job_of_a_queue_that_is_gone(
    user: UserCli, instance: FluxInstance
) -> None:
    """So a job of such a queue is told to be submitted anew."""
    job = user.submit("-qdebug", "--urgency=hold", "true")
    instance.reload_config({"queues": {"batch": {}}})
    said = user.type("update", job, "queue=batch")
    assert "'debug' is not a valid queue" in said.error
