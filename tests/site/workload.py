# SPDX-License-Identifier: MIT
"""Ordinary jobs of a site's users, and what Flux answered to each.

No job of it knows of bursts: it gets the same answers wherever they are possible and
where they are not.
"""

from __future__ import annotations

import msgspec

from tests.multiuser.lab import GUESTS
from tests.site.site import HOSTS, Site
from tests.support.waiting import wait_until

# By name: the user and what he submits. A job's output is nobody's, `-t` is its limit.
JOBS: dict[str, tuple[str, str]] = {
    "one-node": ("ann", "-N1 true"),
    "all-nodes": ("ann", "-N2 true"),
    "tasks": ("bob", "-n4 true"),
    "more-than-there-are": ("bob", "-N3 true"),
    "over-the-size-limit": ("ann", "-N12 true"),
    "over-the-time-limit": ("ann", "-N1 -t 3h true"),
    "debug-queue": ("bob", "--queue=debug -N1 true"),
    "debug-queue-too-large": ("bob", "--queue=debug -N2 true"),
    "over-the-limit-of-debug": ("ann", "--queue=debug -N1 -t 1h true"),
    "no-such-queue": ("ann", "--queue=nosuch -N1 true"),
    "host-by-name": ("ann", f"--requires=host:{HOSTS[1]} -N1 true"),
    "property": ("bob", "--requires=debug -N1 true"),
    "not-a-property": ("bob", "--requires=^debug -N1 true"),
    "no-such-property": ("ann", "--requires=nosuch -N1 true"),
    "fails": ("bob", "-N1 false"),
    "too-long": ("ann", "-N1 -t 1s sleep 600"),
    "canceled": ("bob", "-N1 sleep 600"),
    "held": ("ann", "--urgency=hold -N1 true"),
    "afterwards": ("ann", "--dependency=afterany:{one-node} -N1 true"),
}
# Whose constraint names one of the nodes.
_ON_ONE_NODE = ("debug-queue", "host-by-name", "property", "not-a-property")
# Where `feasibility` does not refuse it, Fluxion's easy and conservative keep what can
# never start.
_MAY_WAIT = {
    *("held", "no-such-property", "more-than-there-are", "debug-queue-too-large"),
    "over-the-size-limit",
}
# Where the first host runs no jobs, each of these is too large or for that host.
_ON_FIRST = ("all-nodes", "tasks", "not-a-property")
_FORM = "{name} {status} {ranks} {returncode} {exception.type}"


class Answers(msgspec.Struct):
    """What became of each job, by its name."""

    refused: dict[str, str]
    """What was said to those that were not taken."""
    ended: dict[str, str]
    """How the others ended, on which ranks and with which exception."""

    def __str__(self) -> str:
        said = {**self.refused, **self.ended}
        return "\n".join(f"{name}: {said[name]}" for name in JOBS)


def run_workload(site: Site) -> Answers:
    """Submit the jobs, wait for their end, and return the answers.

    Those of queue debug come once the others have ended: Fluxion does not look at the
    jobs of a queue again as nodes are freed by those of another queue.
    """
    told: dict[str, tuple[int, str]] = {}
    may_wait = _MAY_WAIT | set(_ON_FIRST if site.shape.head_excluded else ())
    for debug in (False, True):
        told |= _submit(site, debug)
        jobs = {name: said for name, (status, said) in told.items() if not status}
        if not debug:
            site.flux("bob", "job", "wait-event", jobs["canceled"], "start")
            site.flux("bob", "cancel", jobs["canceled"])
        wait_until(
            lambda: not set(site.active_jobs()) - may_wait,
            lambda: _tell(site),
            pause=0.2,
        )
    for name in site.active_jobs():
        # It may end meanwhile: Fluxion denies what waits once no other job is ahead.
        site.try_flux("root", "cancel", jobs[name])
    wait_until(lambda: not site.active_jobs(), lambda: _tell(site), pause=0.2)
    lines = site.flux("root", "jobs", "-ano", _FORM, *jobs.values()).splitlines()
    ended = {name: rest for name, _, rest in (line.partition(" ") for line in lines)}
    refused = {name: said for name, (status, said) in told.items() if status}
    told_of = {
        name: _where(how, name in may_wait, name in _ON_ONE_NODE)
        for name, how in ended.items()
    }
    return Answers(refused, told_of)


def _tell(site: Site) -> str:
    """Return what is seen where jobs do not end."""
    asked = ("jobs -A", "resource list", "resource drain", "queue list")
    said = [site.flux("root", *words.split()) for words in asked]
    return "\n\n".join([*said, site.log()])


def _submit(site: Site, debug: bool) -> dict[str, tuple[int, str]]:
    """Submit the jobs of queue debug, or the others.

    Return of each the exit status of its submission, and what that printed.
    """
    told: dict[str, tuple[int, str]] = {}
    for user in GUESTS:
        lines = []
        for name, (who, words) in JOBS.items():
            if who == user and debug == ("--queue=debug" in words):
                asked = words.replace("{one-node}", "$one_node")
                lines.append(f"out=$(flux submit --job-name={name} {asked} 2>&1)")
                lines.append(f'echo "$? {name} $(echo $out)"')
                if name == "one-node":
                    lines.append("one_node=$out")
        said = site.head.run(user, "sh", "-c", "\n".join(lines))
        for line in said.splitlines():
            status, name, rest = line.split(" ", 2)
            told[name] = int(status), rest
    return told


def _where(how: str, may_wait: bool, named: bool) -> str:
    """Leave out of an answer what is chance: which of several nodes it was.

    And of a job that can never start, whether Fluxion had denied it when what waits is
    canceled: it does so once no other job is ahead.
    """
    status, ranks, returncode, *rest = how.split(" ")
    if may_wait and not ranks and status in ("FAILED", "CANCELED"):
        return "never started"
    is_chance = not named and ranks in {str(rank) for rank in range(len(HOSTS))}
    # A task that does not end soon on SIGTERM gets SIGKILL.
    code = "killed" if status in ("TIMEOUT", "CANCELED") else returncode
    return " ".join([status, "own" if is_chance else ranks, code, *rest])
