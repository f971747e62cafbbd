# SPDX-License-Identifier: MIT
"""What the provider asks of the `flux` program, and what its answers mean."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_flux.jobs import count_nodes
from burst_flux.settings import FluxSettings
from burst_flux.states import SETTLES_S

from burst.config import convert
from burst.errors import (
    ConfigError,
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.model.finding import Level
from burst.model.shape import Shape
from burst.provider import BurstId, Failure, Phase
from tests.plugins.flux.flux_program import Other, job


@pytest.fixture
def other(tmp_path: Path) -> Other:
    return Other(tmp_path)


def test_the_options_of_a_job_are_those_of_the_settings(other: Other) -> None:
    place = other.place / f"files/{other.spec.owner}.other/{other.spec.burst_id}"
    options = ("--bank=physics", "--requires=bigmem")
    other.provider(queue="batch", gpus=1, options=options).provision(
        msgspec.structs.replace(other.spec, shape=Shape(4, 1))
    )
    [words] = other.flux.calls("submit")
    assert words.split(" ") == [
        *("submit", "--quiet", f"--job-name={other.name}", "--time-limit=3600s"),
        *("--dependency=singleton", "--cwd=/", "--env=-*", "--rlimit=-*", "--label-io"),
        *("--setopt=cpu-affinity=off", "--setopt=gpu-affinity=off"),
        *("--setopt=pmi=off", "--setopt=exit-timeout=none", "--signal=SIGTERM@30s"),
        *("--nodes=2", "--ntasks=2", f"--env=PATH={os.environ['PATH']}"),
        *("--cores-per-task=4", "--gpus-per-task=1", "--exclusive", "--queue=batch"),
        *("--bank=physics", "--requires=bigmem", f"--output={place}/log", "sh"),
        f"{place}/task",
    ]
    other.flux.jobs()
    shared = msgspec.structs.replace(other.spec, burst_id=BurstId("burst-1-b"))
    other.provider(exclusive=False).provision(shared)
    assert "--exclusive" not in other.flux.calls("submit")[-1]


def test_a_job_lasts_a_minute_more_than_its_lease(other: Other) -> None:
    """A broker that gets SIGTERM while it leaves does not end."""
    [offer] = other.provider().offers()
    assert offer.lifetime == 3540.0
    leased = msgspec.structs.replace(other.spec, lease_end=1100.0)
    other.provider(lambda: 1000.0).provision(leased)
    [words] = other.flux.calls("submit")
    assert "--time-limit=160s" in words.split()


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("job submission is disabled: no more today", InsufficientCapacity),
        ("unsatisfiable request: need 4 nodes", SpecRefused),
        ("requested duration exceeds policy limit", SpecRefused),
        ("Invalid queue batch: not a valid queue", Refused),
        ("unrecognized arguments: --no-such-option", Refused),
        ("Connection reset by peer", Transient),
    ],
)
def test_what_flux_submit_says_is_in_its_class(
    other: Other, says: str, error: type[ProviderError]
) -> None:
    other.flux.fail("submit", says)
    with pytest.raises(error, match=says[:20]) as caught:
        other.provider().provision(other.spec)
    assert type(caught.value) is error


def test_nodes_with_fewer_cores_are_refused_without_a_job(other: Other) -> None:
    """Flux starts a job with --exclusive on such nodes all the same."""
    spec = msgspec.structs.replace(other.spec, shape=Shape(8))
    with pytest.raises(SpecRefused, match="the instance has 0 nodes of 9 cores, and"):
        other.provider(cores=9).provision(spec)
    assert other.flux.calls("submit") == []
    other.provider(cores=8).provision(spec)
    assert len(other.flux.calls("submit")) == 1


def test_what_prints_no_r_or_no_jobs_is_for_a_while(other: Other) -> None:
    with pytest.raises(Transient, match="did not print R"):
        count_nodes("{}", Shape(1))
    other.flux.answer("jobs", "Welcome")
    with pytest.raises(Transient, match="did not print a list"):
        other.provider().observe()


def test_a_job_that_ends_is_canceled_no_more(other: Other) -> None:
    """Flux would send SIGTERM again, by which a broker that leaves does not end."""
    provider = other.provider()
    provider.provision(other.spec)
    second = job(other.name, "DEPEND", dependencies=["singleton"], t_submit=2.0)
    other.flux.jobs(second, job(other.name, "RUN"), job("another", "RUN"))
    provider.reap(other.spec.burst_id)
    other.flux.jobs(job(other.name, "CLEANUP"))
    provider.reap(other.spec.burst_id)
    assert other.flux.calls("cancel") == ["cancel f1 f1"]
    [status] = provider.observe()
    assert status.phase is Phase.PENDING
    other.flux.jobs(ended=[job(other.name, "INACTIVE")])
    with pytest.raises(NotFound):
        provider.reap(other.spec.burst_id)
    assert provider.observe() == []


def test_a_job_that_ended_meanwhile_is_no_error(other: Other) -> None:
    other.flux.jobs(job(other.name, "RUN"))
    other.flux.fail("cancel", "f1: job is inactive")
    other.provider().reap(other.spec.burst_id)


def test_how_a_job_ended_is_asked_once(other: Other) -> None:
    provider = other.provider()
    provider.provision(other.spec)
    ended = {"type": "cancel", "severity": 0, "note": "by ann"}
    other.flux.jobs(ended=[job(other.name, "INACTIVE", exception=ended)])
    before = len(other.flux.calls("jobs"))
    for _ in range(2):
        [status] = provider.observe()
        assert status.why == "Flux job f1 was canceled: by ann"
    assert len(other.flux.calls("jobs")) == before + 3


def test_a_job_that_began_between_two_questions_is_told(other: Other) -> None:
    """The list of those that live was asked for before."""
    other.provider().provision(other.spec)
    other.flux.jobs(job("another", "RUN"), ended=[job(other.name, "RUN", t_run=1.0)])
    [status] = other.provider().observe()
    assert status.phase is Phase.RUNNING


def test_a_queue_that_is_stopped_for_a_moment_ends_no_burst_that_has_waited_for_long(
    other: Other,
) -> None:
    now = [3600.0]
    provider = other.provider(lambda: now[0])
    provider.provision(other.spec)
    other.flux.jobs(job(other.name, "SCHED", t_submit=1.0))
    looks = [
        (0.0, "started", Phase.PENDING),
        (1.0, "stopped", Phase.PENDING),
        (SETTLES_S - 1, "stopped", Phase.PENDING),
        (1.0, "started", Phase.PENDING),
        (1.0, "stopped", Phase.PENDING),
        (SETTLES_S, "stopped", Phase.FAILED),
    ]
    seen = []
    for later, scheduling, _ in looks:
        now[0] += later
        other.flux.answer("queue", f"enabled|{scheduling}")
        [status] = provider.observe()
        seen.append((later, scheduling, status.phase))
    assert seen == looks
    assert status.failure is Failure.CAPACITY


def test_what_cannot_be_a_burst_has_nothing_to_reap(other: Other) -> None:
    with pytest.raises(NotFound):
        other.provider().reap(BurstId("../up"))


def test_force_forgets_what_an_instance_had_that_is_gone(other: Other) -> None:
    provider = other.provider()
    provider.provision(other.spec)
    other.flux.fail("jobs", "No such file or directory")
    with pytest.raises(Transient):
        provider.reap(other.spec.burst_id)
    with pytest.raises(NotFound):
        provider.force_reap(other.spec.burst_id)
    assert not (other.place / f"files/{other.spec.owner}.other").exists()


def test_nothing_of_the_job_that_the_daemon_runs_in_is_given_on(
    other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUX_JOB_ID", "f9")
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("FLUX_SSH", "/usr/bin/ssh")
    other.provider().observe()
    lines = other.flux.environment().splitlines()
    assert sorted(line for line in lines if line.startswith(("FLUX", "PMI"))) == [
        "FLUX_SSH=/usr/bin/ssh",
        "FLUX_URI=local:///other",
    ]


def test_a_uri_is_resolved_again_once_it_does_not_answer(other: Other) -> None:
    provider = other.provider(uri="f1234")
    provider.observe()
    provider.observe()
    assert other.flux.calls("uri") == ["uri f1234"]
    assert "FLUX_URI=local:///resolved" in other.flux.environment()
    other.flux.fail("jobs", "Connection refused")
    for _ in range(2):
        with pytest.raises(Transient):
            provider.observe()
    assert len(other.flux.calls("uri")) == 2


def test_nodes_of_the_leads_own_job_are_not_counted(other: Other) -> None:
    lead = msgspec.structs.replace(other.spec.lead, uri="local:///lead/run/local")
    spec = msgspec.structs.replace(other.spec, lead=lead)
    host = socket.gethostname()
    here = {"ranks": "2-3", "nodelist": host, "jobid": "f7"}
    own = job("lead", "RUN", uri=f"ssh://{host}/lead/run/local", **here)
    elsewhere = job("lead", "RUN", uri="ssh://n1/lead/run/local", ranks="0-1")
    other.flux.jobs(elsewhere, job("waits", "SCHED"), own)
    *_, last = other.provider(max_nodes=3).examine(lead)
    told = "3 of its nodes have 4 cores, beside those of job f7, in which the lead runs"
    assert (last.level, last.what) == (Level.OK, told)
    *_, last = other.provider().examine(lead)
    assert (last.level, last.what) == (Level.WRONG, f"{told}, and max_nodes is 4")
    # The rest of its nodes may be for a burst that has no node alone.
    *_, last = other.provider(exclusive=False).examine(lead)
    assert last.what.startswith("5 of its nodes")
    refused = r"has 1 nodes of 8 cores beside job f7, in which the lead runs, and"
    with pytest.raises(SpecRefused, match=refused):
        other.provider(cores=8).provision(msgspec.structs.replace(spec, shape=Shape(8)))


def test_a_job_on_the_leads_host_may_be_the_leads(other: Other) -> None:
    here = {"ranks": "2", "nodelist": f"n1,{socket.gethostname()}", "jobid": "f7"}
    other.flux.jobs(job("lead", "RUN", **here))
    *_, told, last = other.provider().examine(other.spec.lead)
    assert told.level is Level.NOTE
    assert told.what.startswith("job f7 has nodes on this host; if the lead runs in it")
    assert last.what == "5 of its nodes have 4 cores"
    # What is a burst's is known.
    other.flux.jobs(job(other.name, "RUN", **here))
    assert told not in other.provider().examine(other.spec.lead)


def test_the_doctor_tells_of_queue_lead_itself_and_no_answer(other: Other) -> None:
    other.flux.answer("queue", "disabled|stopped")
    found = other.provider(queue="batch").examine(None)
    assert "its queue batch is disabled and stopped" in [each.what for each in found]
    found = other.provider().examine(None)
    assert "its queue is disabled and stopped" in [each.what for each in found]
    itself = msgspec.structs.replace(other.spec.lead, uri="local:///other")
    found = other.provider().examine(itself)
    assert "uri is the lead itself" in [each.what for each in found]
    other.flux.fail("getattr", "No such file or directory")
    *_, last = other.provider().examine(None)
    assert (last.level, "No such file" in last.what) == (Level.WRONG, True)


GOOD = {"uri": "..", "dir": "/shared", "cores": 4, "max_nodes": 2, "time": "1h"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"uri": ""}, "uri: is empty"),
        ({"dir": "/a{{id}}"}, "not an absolute path"),
        ({"time": "90s"}, "is less than 2m"),
        ({"time": "inf"}, "or has no end"),
        ({"options": ["-q", "batch"]}, "does not begin with --"),
        ({"options": ["--job-name=x"]}, "set by a key of this table"),
        ({"options": ["--cc=1-2"]}, "set by a key of this table"),
        ({"options": ["--dry-run"]}, "set by a key of this table"),
        ({"cores": 0}, "cores"),
    ],
)
def test_what_cannot_work_is_refused(wrong: dict[str, Any], says: str) -> None:
    own = {"options": ["--requires=bigmem", "--setattr=project=a", "--urgency=9"]}
    assert convert(FluxSettings, {**GOOD, **own}, "burst.toml").exclusive
    with pytest.raises(ConfigError, match=says):
        convert(FluxSettings, {**GOOD, **wrong}, "burst.toml")
