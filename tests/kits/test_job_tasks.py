# SPDX-License-Identifier: MIT
"""What is said of a burst whose followers are tasks of a job, by job and files."""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.errors import Refused, SpecRefused
from burst.kits.job_tasks import (
    JobSeen,
    JobTasks,
    check_spec,
    job_prefix,
    owned_bursts,
    time_limit,
)
from burst.model.shape import Shape
from burst.provider import BurstId, Failure, Offer, Phase
from burst.testing import example_lead, example_spec
from tests.support.commands import run_captured
from tests.support.waiting import HANG_S, wait_until

ID = BurstId("burst-0-000000")


class Burst:
    """The files of a burst of two followers, whose job is seen somehow."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.place = place
        spec = example_spec(example_lead(place), 0, "nodes")
        (place / "spec.json").write_bytes(msgspec.json.encode(spec))

    def seen(self, seen: JobSeen) -> tuple[Phase, str, list[tuple[Phase, str]]]:
        status = JobTasks(self.place).status(ID, seen)
        followers = [(each.phase, each.lost) for each in status.followers]
        return status.phase, status.why, followers


@pytest.fixture
def burst(tmp_path: Path) -> Burst:
    return Burst(tmp_path / "burst")


def test_a_follower_that_ended_is_told_with_the_end_of_its_log(burst: Burst) -> None:
    (burst.place / "burst-0-1.ended").write_text("137\n")
    (burst.place / "log").write_text("0: joined\n1: a disk is broken\n")
    phase, why, followers = burst.seen(JobSeen(Phase.RUNNING))
    what = "has ended with status 137"
    assert phase is Phase.FAILED
    assert why == f"burst-0-1 {what}: a disk is broken"
    assert followers == [(Phase.RUNNING, ""), (Phase.FAILED, what)]


def test_how_a_follower_ended_is_there_whole_at_once(tmp_path: Path) -> None:
    spec = example_spec(example_lead(tmp_path), 0, "nodes")
    files = JobTasks(tmp_path / "burst")
    files.write(spec, "false", "RANK")
    ended = files.place / f"{spec.hosts[1]}.ended"
    ended.write_text("earlier\n")
    with ended.open() as seen:
        run_captured(["env", "RANK=1", "sh", str(files.task)])
        assert seen.read() == "earlier\n", "no file is changed under who reads it"
    assert ended.read_text() == "1\n"


def test_how_a_follower_ended_is_told_though_a_signal_comes_meanwhile(
    tmp_path: Path,
) -> None:
    spec = example_spec(example_lead(tmp_path), 0, "nodes")
    files = JobTasks(tmp_path / "burst")
    files.write(spec, "false", "RANK")
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "mv"
    program.write_text(f'#!/bin/sh\nkill -TERM 0\nexec {shutil.which("mv")} "$@"\n')
    program.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    with subprocess.Popen(
        ["sh", files.task],
        env={**os.environ, "PATH": path, "RANK": "0"},
        start_new_session=True,
    ) as task:
        status = task.wait(HANG_S)
    assert status != 128 + signal.SIGTERM
    assert (files.place / f"{spec.hosts[0]}.ended").read_text() == f"{status}\n"


def test_a_signal_to_the_task_alone_reaches_its_follower(tmp_path: Path) -> None:
    """As of a Slurm that signals the first process of a task."""
    flux, ready = tmp_path / "flux", tmp_path / "ready"
    flux.write_text(
        f"#!/bin/sh\ntrap 'exit 5' TERM\ntouch {ready}\nwhile :; do sleep 0.05; done\n"
    )
    flux.chmod(0o755)
    files = JobTasks(tmp_path / "burst")
    files.write(example_spec(example_lead(tmp_path), 0, "nodes"), str(flux), "RANK")
    env = {**os.environ, "RANK": "0"}
    with subprocess.Popen(["sh", files.task], env=env) as task:
        wait_until(ready.exists, "the follower")
        task.terminate()
        assert task.wait(HANG_S) == 5, "the follower's own status"


def test_a_job_that_ended_after_its_start_has_lost_its_followers(burst: Burst) -> None:
    seen = JobSeen(Phase.FAILED, "was canceled")
    assert burst.seen(seen) == (Phase.FAILED, "was canceled", [(Phase.FAILED, "")] * 2)
    (burst.place / "log").write_text("0: one\n1: two\n")
    lost = [(Phase.FAILED, "was canceled")] * 2
    assert burst.seen(seen) == (Phase.FAILED, "was canceled: one\ntwo", lost)


def test_why_followers_do_not_join_is_told_once_they_should_have(burst: Burst) -> None:
    version = "overlay.hello: client (0.87.0) version mismatched with server (0.88.0)"
    (burst.place / "log").write_text(f"1: overlay.err[4]: {version}\n")
    assert burst.seen(JobSeen(Phase.RUNNING, ran=9.0))[1] == ""
    phase, why, _ = burst.seen(JobSeen(Phase.RUNNING, ran=11.0))
    assert phase is Phase.RUNNING
    assert why.startswith("burst-0-1 ")
    assert "0.87.0" in why


def test_of_a_job_that_failed_the_first_explained_follower_is_told(
    burst: Burst,
) -> None:
    (burst.place / "log").write_text(
        "0: srun: killed\n1: unable to resolve upstream peer head: no such host\n"
    )
    _, why, _ = burst.seen(JobSeen(Phase.FAILED, "failed"))
    assert why.startswith("failed: burst-0-1: it cannot resolve the lead's host name")


def test_followers_whose_nodes_were_taken_for_others_are_told(burst: Burst) -> None:
    seen = JobSeen(Phase.FAILED, "was preempted", Failure.RECLAIMED)
    status = JobTasks(burst.place).status(ID, seen)
    assert status.failure is Failure.RECLAIMED
    assert all(follower.reclaimed for follower in status.followers)


def test_a_submission_is_known_by_its_note_or_by_what_its_tasks_write(
    burst: Burst,
) -> None:
    files = JobTasks(burst.place)
    files.log.write_text("0: one\n")
    # Who begins followers may end them again, and say that it has failed.
    assert files.submission() is None
    files.task.touch()
    assert files.submission() == ""
    files.note_submission("17")
    assert files.submission() == "17"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"burst_id": "../up"}, "cannot be a directory name"),
        ({"offer": "gold"}, "no offer 'gold' with 2 nodes"),
        ({"hosts": ("a", "b", "c")}, "no offer 'nodes' with 3 nodes"),
        ({"shape": Shape(3, 0)}, "set cores and gpus of the provider"),
    ],
)
def test_what_the_offer_does_not_have_is_refused(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    spec = example_spec(example_lead(tmp_path), 0, "nodes")
    spec = msgspec.structs.replace(spec, shape=Shape(2, 0))
    offer = Offer(name="nodes", shape=Shape(2, 0), max_nodes=2)
    check_spec(spec, offer)
    with pytest.raises(SpecRefused) as caught:
        check_spec(msgspec.structs.replace(spec, **changes), offer)
    assert says in str(caught.value)


@pytest.mark.parametrize(("end", "limit"), [(0.0, 60.0), (130.0, 30.0), (900.0, 60.0)])
def test_a_job_ends_with_its_lease(end: float, limit: float) -> None:
    assert time_limit(end, 60.0, now=100.0) == limit
    with pytest.raises(SpecRefused, match="lease has ended"):
        time_limit(100.0, 60.0, now=100.0)


def test_a_burst_without_files_has_what_its_job_says(tmp_path: Path) -> None:
    status = JobTasks(tmp_path / "gone").status(ID, JobSeen(Phase.ENDING, "is ending"))
    assert (status.phase, status.why) == (Phase.ENDING, "is ending")
    assert status.followers == ()


def test_jobs_of_all_owners_are_told_with_the_leases_of_their_files(
    tmp_path: Path,
) -> None:
    spec = example_spec(example_lead(tmp_path), 0, "nodes")
    content = msgspec.json.encode(msgspec.structs.replace(spec, lease_end=7.0))
    (tmp_path / "ann.far").mkdir(mode=0o700)
    (tmp_path / "ann.far" / "burst-0-1").mkdir()
    (tmp_path / "ann.far" / "burst-0-1" / "spec.json").write_bytes(content)
    names = [
        *[job_prefix("ann", "far") + "burst-0-1"] * 2,
        job_prefix("bob", "near") + "burst-0-2",
        *("burst.bob.near", "burst.bob.near.a/b", "other.bob.near.c", "a banner"),
    ]
    # Of a lead that is lost: its job has ended, and its certificate is still there.
    (tmp_path / "ann.far" / "burst-0-0").mkdir()
    (tmp_path / "others").mkdir()
    # As of another user: it neither tells a lease nor hides what there is.
    (tmp_path / "bob.near" / "burst-0-2").mkdir(parents=True)
    (tmp_path / "bob.near" / "burst-0-2" / "spec.json").write_bytes(content)
    (tmp_path / "bob.near").chmod(0o777)
    found = owned_bursts(names, tmp_path)
    assert [msgspec.structs.astuple(each) for each in found] == [
        ("ann", "far", "burst-0-0", 0.0),
        ("ann", "far", "burst-0-1", 7.0),
        ("bob", "near", "burst-0-2", 0.0),
    ]


def test_a_refused_directory_hides_no_job(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    found = owned_bursts([job_prefix("bob", "near") + "burst-0-1"], tmp_path)
    assert [each.burst_id for each in found] == ["burst-0-1"]
    with pytest.raises(Refused, match="others may write"):
        owned_bursts([], tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")
def test_the_directory_of_another_user_hides_no_job(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "ann.far").mkdir(mode=0o700)
    os.chown(tmp_path / "ann.far", 1, -1)
    found = owned_bursts([job_prefix("bob", "near") + "burst-0-1"], tmp_path)
    assert [each.burst_id for each in found] == ["burst-0-1"]
