# SPDX-License-Identifier: MIT
"""flux submit --burst: what it submits in each mode, and what it refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from burst.lead import ServiceRequest
from tests.contract.serving import HOLDER
from tests.flux_instance import FluxInstance
from tests.intake.modes import BATCH
from tests.intake.user_cli import UserCli
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.flux

QUEUES = {"queues": {"batch": {}, "burst": {"requires": ["burst"]}}}
Answer = Callable[..., None]
WANTED = {"urgency": 16, "wanted": True}


@pytest.fixture
def site(instance: FluxInstance) -> Iterator[Answer]:
    """Have a daemon say how jobs come to it."""
    said: dict[str, Any] = {}

    def answer(request: ServiceRequest) -> dict[str, Any]:
        assert request.method == "intake"
        return said

    with closing(instance.lead()) as lead:

        def say(mode: str, **more: Any) -> None:
            said.update(
                mode=mode,
                property="burst",
                queue="burst",
                providers=["gke", "local"],
                **more,
            )
            lead.serve(answer, HOLDER)

        yield say


def refuses(user: UserCli, words: list[str], says: str) -> None:
    said = user.type("submit", *words, "true")
    assert said.status != 0
    assert says in said.error


def seen(user: UserCli, job: str) -> tuple[Any, str]:
    """Return `attributes.system` of a job, and its urgency."""
    return user.system(job), user.do("jobs", "-ano", "{urgency}", job)


def test_its_help_is_in_that_of_each_command(user: UserCli) -> None:
    for command in ("submit", "run", "alloc", "batch", "bulksubmit"):
        said = user.do(command, "--help")
        assert "--burst-max-price=PRICE" in said
        assert "Options provided by plugins" in said
    assert "flux jobs -o burst" in user.do("submit", "--help=burst")


MARKED: dict[str, list[tuple[list[str], tuple[str, dict[str, Any]]]]] = {
    "hold": [
        # It is held, with its urgency.
        (
            ["--burst-provider=gke", "--urgency=9"],
            ("0", {"provider": "gke", "urgency": 9, "wanted": True}),
        ),
        # The rules decide; it is held, as Flux would deny what is too large.
        (["--burst-policy=auto"], ("0", {"urgency": 16})),
        # What its user holds is not marked as held for the daemon.
        (["--urgency=hold"], ("0", {"wanted": True})),
    ],
    "scheduler": [
        # It is submitted plainly.
        (
            ["--burst-max-price=0.75", "--burst-where=together", "--burst-wait=10m"],
            (
                "16",
                {"max-price": 0.75, "wanted": True, "where": "together", "wait": 600.0},
            ),
        ),
        (["--burst-requeue"], ("16", {"wanted": True, "requeue": True})),
        # One with a tag is held in each mode, as it never runs on own nodes.
        (
            ["--burst-tag=night"],
            ("0", {"wanted": True, "urgency": 16, "tag": "night"}),
        ),
        # So is one for an instance elsewhere.
        (
            ["--burst-mode=isolated"],
            ("0", {"mode": "isolated", "urgency": 16, "wanted": True}),
        ),
    ],
}
"""By mode: options, and with which urgency and wishes the job is submitted."""


@pytest.mark.parametrize("mode", MARKED)
def test_a_burst_job_is_marked_with_its_wishes(
    user: UserCli, site: Answer, mode: str
) -> None:
    """Where no directories of followers are told, no working directory is warned of."""
    site(mode)
    for words, wanted in MARKED[mode]:
        said = user.type("submit", "--burst", *words, "-N4", "true")
        system, found = seen(user, said)
        assert (found, system["burst"]) == wanted, words
        assert system["burstable"] is True
        assert "constraints" not in system
        assert said.error == ""


@pytest.mark.parametrize("mode", ["hold", ""])
def test_the_command_may_follow_the_option(
    user: UserCli, site: Answer, mode: str
) -> None:
    """Without a daemon, too, where no name of a provider could be checked."""
    if mode:
        site(mode)
    system, _ = seen(user, job := user.submit("-N2", "--burst", "sleep", "12"))
    assert "provider" not in system["burst"]
    spec = json.loads(user.do("job", "info", job, "jobspec"))
    assert spec["tasks"][0]["command"] == ["sleep", "12"]


def test_no_wait_keeps_the_job_to_lent_nodes(user: UserCli, site: Answer) -> None:
    site("scheduler")
    system, _ = seen(user, user.submit("--burst", "--burst-wait=0", "true"))
    assert system["constraints"] == {"properties": ["burst"]}
    words = ("--burst", "--burst-wait=0", "--requires=burst-0")
    system, _ = seen(user, user.submit(*words, "true"))
    assert system["constraints"] == {
        "and": [{"properties": ["burst-0"]}, {"properties": ["burst"]}]
    }


@pytest.mark.parametrize("extra", [{**QUEUES, "policy": BATCH}])
def test_in_queue_mode_it_goes_to_the_queue(user: UserCli, site: Answer) -> None:
    """One that names the default queue, too. It may have constraints with guests."""
    site("queue", requires=True)
    for words in ([], ["--queue=batch"], ["--requires=burst-0"]):
        system, urgency = seen(user, user.submit("--burst", *words, "-N4", "true"))
        assert (system["queue"], urgency) == ("burst", "16")
        own = "'burst-0'" in str(system["constraints"])
        assert own is (words == ["--requires=burst-0"])
        assert own or system["constraints"] == {"properties": ["burst"]}


@pytest.mark.parametrize("extra", [QUEUES])
def test_what_a_job_of_the_queue_cannot_have_is_refused(
    user: UserCli, site: Answer
) -> None:
    site("queue")
    for words, says in (
        (["--burst", "--queue=batch"], "burst jobs go through queue burst"),
        (["--burst", "--requires=burst-0"], "leave --requires out"),
        (["--burst", "--burst-wait=1m"], "run on lent nodes only"),
    ):
        refuses(user, words, says)


BAD_OPTIONS = (
    (
        ["--burst", "--burst-provider=nosuch"],
        "no such provider; there are: gke, local",
    ),
    (["--burst=gke"], "ignored explicit argument 'gke'"),
    (["--burst", "--burst-policy=never"], "invalid choice"),
    (["--burst-wait=1m"], "--burst-wait goes with --burst"),
    (["--burst-provider=gke"], "--burst-provider goes with --burst"),
    (["--burst", "--burst-wait=soon"], "not a duration, such as 0, 90s, 10m"),
    (["--burst", "--burst-wait=inf"], "must be finite, such as 10m; leave"),
    (["--burst", "--burst-max-price=cheap"], "not a price, such as 0.75"),
    (["--burst", "--burst-max-price=nan"], "not a price, such as 0.75"),
    (["--burst", "--burst-where=here"], "invalid choice"),
)


def test_bad_options_are_refused(user: UserCli, site: Answer) -> None:
    site("scheduler")
    for words, says in BAD_OPTIONS:
        refuses(user, words, says)


def test_an_allocation_is_not_for_an_instance_elsewhere(user: UserCli) -> None:
    said = user.type("alloc", "--burst", "--burst-mode=isolated", "-N1", "true")
    assert said.status != 0
    assert "burst request --isolated" in said.error


def test_without_a_daemon_jobs_are_held_and_their_user_is_told_once(
    user: UserCli,
) -> None:
    words = ("--cc=1-2", "--burst", "--burst-provider=gke", "-N4", "true")
    said = user.type("submit", *words)
    assert said.status == 0
    assert said.error.count("no burst daemon serves this instance") == 1
    assert "burst lead batch" in said.error
    for job in said.split():
        system, urgency = seen(user, job)
        assert urgency == "0"
        assert system["burst"] == {
            "provider": "gke",
            "urgency": 16,
            "wanted": True,
        }


def test_with_a_daemon_that_hangs_jobs_are_held_too(
    user: UserCli, instance: FluxInstance
) -> None:
    gone = threading.Event()

    def hang(_: ServiceRequest) -> dict[str, Any]:
        gone.wait(HANG_S)
        return {}

    with closing(instance.lead()) as lead:
        lead.serve(hang, HOLDER)
        said = user.type("submit", "--burst", "-N4", "true")
        gone.set()
    assert said.status == 0
    assert "warning: the burst daemon does not answer; the job is held" in said.error
    assert seen(user, said.split()[0])[1] == "0"


def test_each_job_of_bulksubmit_and_each_copy_is_marked(
    user: UserCli, site: Answer
) -> None:
    site("hold")
    jobs = user.do("bulksubmit", "--burst", "-N{}", "true", ":::", "3", "4").split()
    jobs += user.do("submit", "--cc=1-2", "--burst", "-N4", "true").split()
    found = [seen(user, job) for job in jobs]
    assert [(system["burst"], urgency) for system, urgency in found] == [
        (WANTED, "0")
    ] * 4


def test_without_the_option_nothing_changes(user: UserCli) -> None:
    system, urgency = seen(user, user.submit("true"))
    assert urgency == "16"
    assert "burst" not in system
    assert "burstable" not in system


FOLLOWERS = {"directories": {"gke": ["/tmp", "/results"], "kube": ["/tmp", "/scratch"]}}


def test_a_directory_that_followers_may_lack_is_told_of(
    user: UserCli, site: Answer
) -> None:
    site("hold", **FOLLOWERS)
    here = ("--cwd=/home/ann", "true")
    said = user.type("submit", "--burst", *here)
    assert said.status == 0
    assert said.error.startswith(
        "warning: nodes of gke, kube have /home/ann only if their image has it"
    )
    assert "They have /tmp (--cwd)" in said.error
    named = user.type("submit", "--burst", "--burst-provider=gke", *here).error
    assert "nodes of gke have" in named
    assert "They have /results, /tmp (--cwd)" in named
    copies = user.type("submit", "--burst", "--cc=1-2", *here)
    assert len(copies.split()) == 2
    assert copies.error.count("warning") == 1
    many = user.type("bulksubmit", "--burst", "--cwd=/home", "true", ":::", "a", "b")
    assert many.error.count("warning") == 1


def test_a_directory_that_followers_have_is_not(user: UserCli, site: Answer) -> None:
    site("hold", **FOLLOWERS)
    for words in (
        ["--burst", "--burst-provider=gke", "--cwd=/results/run"],
        ["--burst", "--burst-provider=gke", "--cwd=/results"],
        ["--burst", "--burst-provider=local", "--cwd=/home/ann"],
        ["--burst", "--cwd=/tmp"],
        ["--burst", "--burst-mode=isolated", "--cwd=/home/ann"],
        ["--cwd=/home/ann"],
    ):
        assert user.type("submit", *words, "true").error == "", words


def test_what_is_told_to_a_user_of_flux_run_is_not_lost(
    user: UserCli, site: Answer
) -> None:
    """It becomes another program, and standard error is no terminal here."""
    site("scheduler", **FOLLOWERS)
    said = user.type("run", "--burst", "-n1", "--cwd=/home/ann", "true")
    assert said.status == 0
    assert said.error.startswith("warning: nodes of gke, kube have /home/ann only")
