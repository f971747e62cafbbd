# SPDX-License-Identifier: MIT
"""What only a real Flux does: modules reloaded, queues, torpid brokers, other ranks."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest

from burst.errors import LeadError, LeadGone, NoDaemon, Unreadable
from burst.flux import FluxLead, connect
from burst.flux.handle import Handle
from burst.flux.ranks import read_ranks
from burst.flux.rpc import RpcClient
from burst.flux.scheduler_status import LostFrees, SchedulerStatus
from burst.model.jobid import JobId
from burst.model.lead import Bootstrap, HostEntry, JobState, LeadView, QueueView
from burst.model.shape import Shape
from tests.contract.instance import BURST_SHAPE, SLEEP, rank_of
from tests.contract.serving import HOLDER, answer
from tests.contract.watching import Watch
from tests.flux_instance import FLUX, FluxInstance
from tests.support.waiting import HANG_S, wait_until

pytestmark = pytest.mark.flux

RANK = rank_of("burst-0-0")


@pytest.fixture
def lead(instance: FluxInstance) -> Iterator[FluxLead]:
    with closing(instance.lead()) as lead:
        yield lead


@pytest.fixture
def watch(lead: FluxLead) -> Watch:
    return Watch(lead)


def until_readable(watch: Watch) -> None:
    def is_read() -> bool:
        with contextlib.suppress(Unreadable):
            watch.lead.observe()
            return True
        return False

    wait_until(is_read, "the lead to be readable")


def test_without_a_scheduler_ranks_are_unreadable_and_what_runs_stays_allocated(
    instance: FluxInstance, watch: Watch
) -> None:
    instance.start_follower("burst-0-0")
    watch.online(RANK)
    job = instance.submit(slots=1, cores=4, command=SLEEP)
    watch.state(job, JobState.RUN)
    instance.flux("module", "remove", "sched-simple")
    # One that was asked a moment ago is not asked again at once.
    with closing(instance.lead()) as new:
        fresh = Watch(new)
        with pytest.raises(Unreadable, match="no scheduler"):
            new.observe()
        instance.flux("module", "load", "sched-simple")
        until_readable(fresh)
        assert new.observe().allocated == {RANK}


CONFIG = {
    "tbon": {"torpid_max": "2s", "torpid_min": "1s"},
    "resource": {"exclude": "burst-0-1"},
}


@pytest.mark.parametrize("extra", [CONFIG])
def test_a_follower_that_hangs_is_torpid_and_an_excluded_one_is_told(
    instance: FluxInstance, watch: Watch
) -> None:
    assert watch.lead.observe().excluded == {rank_of("burst-0-1")}
    assert watch.lead.identity().excluded == {rank_of("burst-0-1")}
    instance.start_follower("burst-0-0")
    watch.online(RANK)
    os.kill(instance.pid("burst-0-0"), signal.SIGSTOP)
    view = watch.until(lambda view: RANK in view.torpid, "torpid")
    assert RANK in view.online
    os.kill(instance.pid("burst-0-0"), signal.SIGCONT)
    watch.until(lambda view: not view.torpid, "lively again")


def test_a_follower_asks_the_daemon_and_is_none(
    instance: FluxInstance, watch: Watch
) -> None:
    instance.start_follower("burst-0-0")
    watch.online(RANK)
    with closing(connect(instance.follower_uri("burst-0-0"))) as there:
        with pytest.raises(NoDaemon):
            there.call("echo", {})
        watch.lead.serve(answer, HOLDER)
        assert there.call("echo", {"a": 1})["payload"] == {"a": 1}
        with pytest.raises(LeadError, match=r"this is rank 2 .*run it on the lead"):
            there.identity()
        with pytest.raises(LeadError, match="this is rank 2"):
            there.listen(lambda: None)
        with pytest.raises(LeadError, match="this is rank 2"):
            there.serve(answer, HOLDER)


def drained_for_good(job: JobId, view: LeadView) -> bool:
    """Tell whether the rank is drained, and the job runs there or never will."""
    known = job in view.jobs and bool(view.jobs[job].ranks)
    return RANK in view.drained and (known or RANK not in view.allocated)


def test_a_drained_rank_that_is_not_allocated_gets_no_job(
    instance: FluxInstance, watch: Watch
) -> None:
    """Drain while the scheduler allocates, over and over: LeadView's promise holds.

    Asking the job manager alone breaks it here nearly every time.
    """
    instance.start_follower("burst-0-0")
    watch.online(RANK)
    user = Handle(instance.uri)
    drain = {"targets": str(RANK), "mode": "update", "reason": "burst: idle"}
    found: set[bool] = set()
    turns = itertools.count()
    ends = time.monotonic() + HANG_S
    while (turn := next(turns)) < 40 or len(found) < 2:
        assert time.monotonic() < ends, f"the two never met: {found}"
        job = instance.submit(slots=1, cores=4, urgency=0, command=SLEEP)
        if turn % 4 == 0:
            watch.lead.drain(frozenset({RANK}), "burst: idle")
        user.send("resource.drain", drain)
        user.send("job-manager.urgency", {"id": job, "urgency": 16})
        # It counts as allocated until the scheduler has been asked.
        view = watch.until(partial(drained_for_good, job), "drained")
        found.add(RANK in view.allocated)
        if RANK not in view.allocated:
            instance.output(instance.submit(slots=1, burstable=False, urgency=31))
            assert not watch.lead.observe().allocated
        instance.cancel(job)
        watch.until(lambda view: not view.allocated, "free")
        watch.lead.undrain(frozenset({RANK}))
    user.close()


def test_a_broker_that_stops_for_a_while_takes_what_was_sent_meanwhile(
    instance: FluxInstance,
) -> None:
    handle = Handle(instance.uri)
    broker = instance.pid("lead-0")
    os.kill(broker, signal.SIGSTOP)
    going_on = threading.Timer(0.3, os.kill, (broker, signal.SIGCONT))
    going_on.start()
    pad = "x" * 5000  # in all, more than the socket holds
    answers = RpcClient(handle).ask_all(
        ("job-manager.ping", {"pad": pad, "n": n}) for n in range(900)
    )
    going_on.join()
    handle.close()
    assert [answer["n"] for answer in answers if isinstance(answer, dict)] == [
        *range(900)
    ]


def test_the_environment_names_the_lead_which_is_observed_once_it_is_listened_to(
    instance: FluxInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUX_URI", instance.uri)
    with closing(connect("")) as lead:
        assert lead.identity().uri == instance.uri
        with pytest.raises(Unreadable, match="call listen first"):
            lead.observe()
    with pytest.raises(LeadGone, match="was not found"):
        connect(f"local://{instance.directory}/none")


def test_an_instance_without_a_bootstrap_table_connects() -> None:
    with tempfile.TemporaryDirectory(prefix="bf-", dir="/tmp") as directory:
        uri = f"local://{directory}/local"
        options = [f"-Srundir={directory}", f"-Slocal-uri={uri}", "-Shostname=alone"]
        broker = subprocess.Popen([FLUX, "broker", *options, "sleep", "inf"])
        try:
            identity = identity_of(uri)
        finally:
            end(broker)
    assert identity.hosts == ("alone",)
    assert identity.bootstrap == Bootstrap(hosts=(HostEntry("alone"),))
    assert identity.endpoint == ""
    assert identity.certificate == ""


def end(broker: subprocess.Popen[bytes]) -> None:
    """Tell it to end until it does: one that is just starting drops SIGTERM."""
    while broker.poll() is None:
        broker.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            broker.wait(2)


def identity_of(uri: str) -> Any:
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            with closing(connect(uri)) as lead:
                return lead.identity()
        except LeadError:  # it takes connections before it has resources
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_a_queue_that_a_person_stops_or_disables_is_told_with_the_reason(
    instance: FluxInstance, watch: Watch
) -> None:
    # Without a pending job, too: others than burst's may wait.
    assert watch.lead.observe().queues == {"": QueueView()}
    instance.reload_config({"queues": {"long": {}}})
    wait_until(lambda: watch.lead.observe().queues.keys() == {"long"}, "the queue")
    of = {"name": "long", "all": False}
    instance.rpc("job-manager.queue-start", {**of, "start": True})
    instance.submit(nodes=9, attributes={"queue": "long"})
    assert watch.lead.observe().queues["long"] == QueueView()

    why = "no starts today"
    instance.rpc("job-manager.queue-start", {**of, "start": False, "reason": why})
    stopped = QueueView(started=False, reason=why)
    assert watch.lead.observe().queues["long"] == stopped

    why = "no jobs today"
    instance.rpc("job-manager.queue-start", {**of, "start": True})
    instance.rpc("job-manager.queue-enable", {**of, "enable": False, "reason": why})
    disabled = QueueView(enabled=False, reason=why)
    assert watch.lead.observe().queues["long"] == disabled


def test_what_the_scheduler_keeps_for_a_job_that_ended_is_unfreed_until_its_reload(
    instance: FluxInstance, watch: Watch, caplog: pytest.LogCaptureFixture
) -> None:
    """So a lead comes back whose scheduler was not told of the end of a job."""
    instance.start_follower("burst-0-0")
    watch.online(RANK)
    # The job manager knows no job of this id, so that it never sends a `free`.
    asked = {"id": 1, "priority": 16, "userid": os.getuid(), "t_submit": time.time()}
    one_core = {"type": "core", "count": 1}
    slot = {"type": "slot", "count": 1, "label": "task", "with": [one_core]}
    system = {"duration": 0, "constraints": {"properties": ["burst"]}}
    spec = {
        "version": 1,
        "resources": [slot],
        "tasks": [{"command": ["true"], "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": system},
    }
    instance.rpc("sched.alloc", {**asked, "jobspec": spec})

    known = SchedulerStatus(LostFrees(limit_s=0.5))
    with closing(Handle(instance.uri)) as handle:
        client = RpcClient(handle)
        first = read_ranks(client, known)
        assert first.allocated == {RANK}
        assert first.unfreed == set()
        assert first.granting == {RANK: Shape(1)}
        time.sleep(0.6)
        lost = read_ranks(client, known)
        assert lost.allocated == set()
        assert lost.granting == {}
        assert lost.unfreed == {RANK}
        assert lost.free[RANK] == Shape(3, 1)
        assert "loaded again: flux module reload sched-simple" in caplog.text
        instance.flux("module", "reload", "sched-simple")
        until_readable(watch)
        # It is asked for a hundredth of its time, so not at once where it was slow.
        wait_until(lambda: not read_ranks(client, known).unfreed, "no core to be lost")
        mended = read_ranks(client, known)
    assert mended.free[RANK] == BURST_SHAPE
