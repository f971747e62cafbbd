# SPDX-License-Identifier: MIT
"""From adoption to the next burst after a failure, on sites as laboratories have them.

Each scheduler with each intake mode that it allows; jobs are two guests'.
"""

from __future__ import annotations

import pytest

from tests.multiuser.lab import OWNER, UIDS
from tests.site.adopted import ADOPTED, LENT, Adopted, files, lines_of_page, type_line
from tests.site.flux_host import CONFIG
from tests.site.site import HOSTS
from tests.site.workload import Answers, run_workload
from tests.site.worlds import named
from tests.support.waiting import wait_until

pytestmark = pytest.mark.site

_ID = ("sh", "-c", "id -u; hostname")
_NIGHT = CONFIG / "night.toml"
_SLEEP = ("sleep", "inf")
# More than the site has itself.
_NODES = len(HOSTS) + 1
# Sites for what is done after a failure: each mode, both schedulers, an excluded head,
# whole nodes. The policy of Fluxion's queues makes no difference to it.
_FAILING = named("simple-scheduler", "easy-hold", "conservative-queue")
_RESTARTED = named("simple-scheduler", "conservative-queue")


def test_ordinary_jobs_get_the_answers_that_they_got_before(
    adopted: Adopted, before: Answers
) -> None:
    told = adopted.doctor()
    assert "wrong" not in told
    for words in ("flux-imp run prolog", "the lead has [systemd] enable"):
        assert words in told
    # Advice to exclude a host is for one that is not.
    excluded = adopted.site.shape.head_excluded
    assert ("on its own node or on other followers" in told) is not excluded
    for job in adopted.waited:
        assert adopted.wait_for_end("bob", job).returncode == 0, "it waited meanwhile"
    assert str(run_workload(adopted.site)) == str(before)
    assert adopted.states() == {}, "nothing was rented for them"


def test_guests_have_one_burst_after_another(adopted: Adopted) -> None:
    """A burst job may name the default queue."""
    for user, queue in (("ann", ()), ("bob", ("--queue=batch",))):
        job = adopted.submit(user, *queue, f"-N{_NODES}", *_ID)
        done = adopted.wait_for_end(user, job)
        assert done.returncode == 0, adopted.tell(user, job)
        assert done.stdout.split().count(str(UIDS[user])) == _NODES, done.stdout
        adopted.wait_until_reaped()
    assert len(adopted.states()) == 2


@pytest.mark.parametrize("world", named("simple-queue", "easy-queue"), indirect=True)
def test_in_mode_queue_a_burst_job_of_another_queue_runs_there(
    adopted: Adopted,
) -> None:
    words = ("submit", "--setattr=burstable", "--queue=debug", "-t", "5m")
    # `debug` has one node.
    job = adopted.site.flux("bob", *words, "-N1", "true")
    assert adopted.wait_for_end("bob", job).returncode == 0, adopted.tell("bob", job)
    done = adopted.site.try_flux("bob", *words, "-N2", "true")
    assert done.returncode, done.stdout
    assert "submit it with flux submit --burst, without --queue" in done.stderr


@pytest.mark.parametrize("world", named("simple-hold"), indirect=True)
def test_a_queue_that_comes_while_the_daemon_runs(adopted: Adopted) -> None:
    site, night = adopted.site, ("--queue=night", f"-N{LENT}", "true")
    site.head.write(_NIGHT, "[queues.night]\n")
    try:
        site.flux(OWNER, "config", "reload")
        job = adopted.submit("ann", *night)
        wait_until(
            lambda: "its queue night is stopped" in adopted.explain("ann", job),
            lambda: adopted.tell("ann", job),
            pause=0.3,
        )
        assert set(adopted.states().values()) <= {"inactive"}, "for a stopped queue"
        assert "queue night is stopped" in adopted.doctor()
        site.flux(OWNER, "queue", "start", "--quiet", "night")
        done = adopted.wait_for_end("ann", job)
        assert done.returncode == 0, adopted.tell("ann", job)
    finally:
        site.root("rm", "-f", str(_NIGHT))
        site.flux(OWNER, "config", "reload")


@pytest.mark.parametrize("world", named("simple-queue"), indirect=True)
def test_followers_that_wait_for_a_job_on_their_host_say_so(adopted: Adopted) -> None:
    assert "come online only once no job runs on this host" in adopted.doctor()
    own = adopted.site.flux("bob", "submit", f"--requires=host:{HOSTS[0]}", *_SLEEP)
    adopted.wait_for_event("bob", own, "start")
    job = adopted.submit("ann", f"-N{LENT}", "true")
    wait_until(
        lambda: "of a job, runs on its host" in adopted.explain("ann", job),
        lambda: adopted.tell("ann", job),
        pause=0.3,
    )
    adopted.site.flux("bob", "cancel", own)
    assert adopted.wait_for_end("ann", job).returncode == 0, adopted.tell("ann", job)


@pytest.mark.parametrize("world", named("simple-queue"), indirect=True)
def test_a_host_that_was_not_given_the_frobnicator_is_told(adopted: Adopted) -> None:
    path, away = "/etc/flux/burst/frob-burst.py", "/etc/flux/away.py"
    node = adopted.site.boxes[-1]
    node.run("root", "mv", path, away)
    try:
        assert f"wrong {HOSTS[-1]} lacks {path}" in adopted.doctor()
    finally:
        node.run("root", "mv", away, path)
    assert "lacks" not in adopted.doctor()


@pytest.mark.parametrize("world", named("easy-queue"), indirect=True)
def test_one_queue_with_fcfs_is_told(adopted: Adopted) -> None:
    assert "Fluxion's policy fcfs denies a job with a constraint" in adopted.doctor()
    before = files(adopted.site)
    for mode in ("scheduler", "hold"):
        setup = ("burst", "setup", "--system", "--dry-run", "--mode", mode)
        done = adopted.site.head.try_run("root", *setup)
        assert done.returncode == 1, done.stdout
        assert "ERROR" in done.stderr
    (adopt,) = [line for line in lines_of_page() if "lead adopt" in line]
    done = adopted.site.head.try_run(
        "root", "sh", "-ec", adopt.replace("--mode queue", "--mode hold")
    )
    assert done.returncode == 1, done.stdout
    assert "Fluxion schedules by fcfs" in done.stderr
    assert files(adopted.site) == before


@pytest.mark.parametrize("world", _FAILING, indirect=True)
def test_a_daemon_that_is_killed_goes_on_and_a_lost_follower_ends_its_burst(
    adopted: Adopted,
) -> None:
    # On lent nodes only, so that any follower is one of the job's.
    job = adopted.submit("ann", f"-N{LENT}", "--requires=burst", "sleep", "inf")
    adopted.wait_for_event("ann", job, "start")
    burst = adopted.online_burst()  # one that fails before sets its offer aside
    old = adopted.pid()
    adopted.site.root("kill", "-9", str(old))
    wait_until(lambda: adopted.pid() not in (0, old), adopted.site.log, pause=0.2)
    adopted.wait_until_served()
    assert adopted.states()[burst] == "online"
    assert "sleep" in adopted.site.active_jobs()
    adopted.site.root("kill", "-9", str(adopted.followers()[0]))
    assert adopted.wait_for_end("ann", job).returncode
    adopted.wait_until_reaped()
    # It was a unit of the systemd that followers share with the lead's broker.
    # Processes that are killed may end a little later.
    ask = ("pgrep", "-u", "ann")
    wait_until(
        lambda: adopted.site.head.try_run("root", *ask).stdout == "",
        adopted.site.log,
        pause=0.2,
    )
    after = adopted.submit("bob", f"-N{LENT}", "true")
    assert adopted.wait_for_end("bob", after).returncode == 0


@pytest.mark.parametrize("world", _RESTARTED, indirect=True)
def test_after_a_restart_of_the_lead_nothing_is_left_and_the_next_burst_works(
    adopted: Adopted,
) -> None:
    job = adopted.submit("ann", f"-N{_NODES}", "sleep", "inf")
    adopted.wait_for_event("ann", job, "start")
    adopted.online_burst()
    waits = adopted.submit("bob", f"-N{LENT}", "true")
    adopted.site.restart()
    adopted.wait_until_served()
    assert adopted.wait_for_end("bob", waits).returncode == 0
    adopted.wait_until_reaped()


# What is on record of a drain has no part in how jobs come in.
@pytest.mark.parametrize("world", named("simple-hold", "easy-queue"), indirect=True)
def test_a_burst_that_drains_as_the_lead_is_restarted_is_reaped(
    adopted: Adopted,
) -> None:
    job = adopted.submit("ann", f"-N{_NODES}", "sleep", "inf")
    adopted.wait_for_event("ann", job, "start")
    burst = adopted.online_burst()
    adopted.site.root("runuser", "-u", OWNER, "--", "burst", "down", "--no-wait", burst)
    wait_until(lambda: adopted.states()[burst] == "drain", adopted.site.log, pause=0.2)
    adopted.site.restart()
    adopted.wait_until_served()
    adopted.wait_until_reaped()
    # Its ranks are drained no more: the next burst has them.
    after = adopted.submit("bob", f"-N{LENT}", "--requires=burst", "true")
    assert adopted.wait_for_end("bob", after).returncode == 0


@pytest.mark.parametrize("world", named("simple-queue"), indirect=True)
def test_queues_that_are_all_stopped_pause_bursts_over_a_restart_too(
    adopted: Adopted,
) -> None:
    site = adopted.site
    site.flux(OWNER, "queue", "stop", "--all", "--quiet")
    try:
        job = adopted.submit("ann", f"-N{_NODES}", "true")
        # The daemon that starts prepares queues before it serves.
        site.restart()
        adopted.wait_until_served()
        wait_until(
            lambda: "queue burst-ready is stopped" in adopted.explain("ann", job),
            lambda: adopted.tell("ann", job),
            pause=0.3,
        )
        assert set(adopted.states().values()) <= {"inactive"}
    finally:
        site.flux(OWNER, "queue", "start", "--all", "--quiet")
    assert adopted.wait_for_end("ann", job).returncode == 0, adopted.tell("ann", job)


# The last, as no site that can burst is left.
@pytest.mark.parametrize("world", named("simple-queue"), indirect=True)
def test_what_the_page_types_is_taken_out_again(
    adopted: Adopted, before: Answers
) -> None:
    """The site's files and answers are at its end as they were before docs/adopt.md."""
    site = adopted.site
    adopted.take_back_settings()
    lines = lines_of_page()
    said = ""
    for line in lines[lines.index(ADOPTED) :]:
        if line.startswith("flux run "):
            assert "\n0 wrong" in said, said
            # Where users log in, which is not the host of rank 0.
            done = site.boxes[-1].try_run("ann", "sh", "-ec", line)
            assert done.returncode == 0, (done.stderr, site.log())
            assert done.stdout.split() == ["ann"] * 3
            site.boxes[-1].run("ann", "flux", "jobs", "-a", "-o", "burst")
            _end_burst(adopted)
        else:
            said = type_line(site, line)
    here, elsewhere = adopted.files
    assert files(site) == here, said
    site.distribute()
    # What a site's means leave of empty directories is theirs; a file's line has more.
    left = set(files(site, host=-1)) - set(elsewhere)
    assert not [line for line in left if " " in line]
    # Between this and the restart users submit as before.
    for box in site.boxes:
        assert box.run("bob", "flux", "run", "-N1", "id", "-un").strip() == "bob"
    site.restart()
    assert str(run_workload(site)) == str(before)


def _end_burst(adopted: Adopted) -> None:
    """End the one that lives, as the page says; before that it is in the way."""
    site, live = adopted.site, adopted.online_burst()
    unadopt = ("burst", "lead", "unadopt", str(CONFIG))
    refused = site.head.try_run("root", *unadopt)
    assert refused.returncode == 1
    assert f"bursts live: {live}" in refused.stderr
    site.root("burst", "down", live)
    waits = site.flux("ann", "submit", "--burst", "--urgency=hold", "true")
    refused = site.head.try_run("root", *unadopt)
    assert f"queues that are removed: {waits}; flux cancel {waits}" in refused.stderr
    site.flux("ann", "cancel", waits)
    assert set(adopted.states().values()) == {"inactive"}
