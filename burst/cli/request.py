# SPDX-License-Identifier: MIT
"""`burst request`: bursts that a user asks for, ahead of jobs or isolated."""

from __future__ import annotations

import functools
import time
from typing import Any

import click

from burst.cli.listing import Row, print_text
from burst.cli.output import show_output
from burst.cli.progress import show_wait
from burst.cli.tags import check_tag
from burst.cli.target import Target, target_options
from burst.cli.typed_names import complete_job, complete_provider, complete_slot
from burst.cli.wait_for_burst import wait_for_burst
from burst.errors import BurstError
from burst.model.listing import parse_listing

# Seconds that the next tick may take to decide on a job.
_DECIDED_S = 30.0
_LOOK_S = 0.1
# Verdicts from before the request, and those that end within a tick or two.
_UNDECIDED = (
    "not-burstable",
    "not-worth",
    "not-forecast",
    "not-yet-read",
    "bank-unread",
)
# Verdicts on a job that waits and needs no burst.
_STARTS_HERE = ("local", "starting")
_WAITS = ("depend", "priority", "sched")
_COMING = ("new", "provision", "join")
_LIVE = (*_COMING, "online")


@click.command()
@click.option("-N", "--nodes", type=int, default=None, help="Number of nodes.")
@click.option(
    "--job",
    default="",
    shell_complete=complete_job,
    help="Burst for this waiting job, even if it saves less than its rule asks for.",
)
@click.option(
    "--provider",
    default="",
    shell_complete=complete_provider,
    help="Name of a provider; default: any.",
)
@click.option(
    "--slot",
    default="",
    shell_complete=complete_slot,
    help="Rank slot to use, as a hostlist.",
)
@click.option(
    "--tag",
    default="",
    callback=check_tag,
    help="Only jobs with this tag may use the nodes, which stay until burst down.",
)
@click.option(
    "--least",
    type=click.IntRange(min=0),
    default=0,
    help="If not all nodes can be made, make fewer, but at least this many.",
)
@click.option("--offer", default="", help="Name of an offer; default: any.")
@click.option(
    "--image",
    default="",
    help="With --provider and --tag: the container image of the nodes.",
)
@click.option("--no-wait", is_flag=True, help="Return without waiting for the nodes.")
@click.option(
    "--isolated",
    is_flag=True,
    help="Make an isolated instance, which runs COMMAND or waits for you.",
)
@click.option(
    "--service",
    is_flag=True,
    help="With --isolated: run the service from the provider's settings.",
)
@click.option(
    "--batch",
    type=click.File("rb"),
    default=None,
    help="With --isolated: run each line of this file as a job there. A line has the"
    " arguments of flux submit. - reads standard input.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@target_options
def request(
    target: Target, job: str, command: tuple[str, ...], no_wait: bool, **wanted: Any
) -> None:
    """Burst ahead of jobs: have nodes ready before a job asks for them.

    With --job, a burst is made for a job that waits, even if it saves less than the
    site's rule asks for; limits, budgets and the rule's prices still apply. The job's
    user and the instance owner may do that. If no burst can be made now, the exit
    status is 1, and the request is kept while the job waits.

    The nodes stay until they are idle for `[deadlines] idle`. With --isolated, they run
    COMMAND once on each node, or the jobs of --batch, and are taken down afterwards.
    Without COMMAND and --batch, they stay until `burst down`, and the command to reach
    them is printed.

    With --tag TAG, the nodes are for your jobs of flux submit --burst --burst-tag=TAG
    alone, and stay until `burst down` or the end of their lease. Such a job waits for
    nodes with its tag: it is given no others, and none are bought for it.
    """
    if job:
        if command or any(wanted.values()):
            raise click.UsageError("--job can be used with --no-wait only")
        _burst_for(job, target, no_wait)
        return
    if wanted["nodes"] is None:
        raise click.UsageError("give a number of nodes with -N, or a job with --job")
    asked = _asked(command, **wanted)
    with target.lead() as lead:
        with show_wait("waiting for the daemon"):
            made = lead.call("request", asked)
        for note in filter(None, (made["why"], made["beside"])):
            click.echo(note, err=True)
        if no_wait:
            click.echo(made["text"])
            return
        # An iterator, so that only the wait for the first burst prints the line.
        said = iter([made["text"]])
        for burst in made["bursts"]:
            ends = bool(command or wanted["batch"])
            until = "inactive" if ends else "online"
            look = functools.partial(lead.call, "status", {})
            row = wait_for_burst(look, burst, until, said, runs=ends)
            if ends:
                show_output(lead.call("output", {"id": burst}))
            elif wanted["isolated"]:
                click.echo(row.access)


def _asked(
    command: tuple[str, ...], nodes: int, provider: str, isolated: bool, **more: Any
) -> dict[str, Any]:
    """Return the request for the daemon. Raises UsageError."""
    if more["least"] > nodes:
        raise click.UsageError("--least is more than -N")
    asked: dict[str, Any] = {
        "nodes": nodes,
        "provider": provider,
        "least": more["least"],
        "offer": more["offer"],
    }
    service, slot, listing = more["service"], more["slot"], more["batch"]
    kinds = [
        kind
        for kind, given in (
            ("command", command),
            ("batch", listing),
            ("service", service),
        )
        if given
    ]
    if not isolated:
        if kinds:
            raise click.UsageError("COMMAND, --batch and --service need --isolated")
        return {**asked, "slot": slot, "tag": more["tag"], "image": more["image"]}
    if slot or more["tag"] or more["image"] or len(kinds) > 1:
        raise click.UsageError(
            "--isolated cannot be used with --slot, --tag or --image, and takes one of"
            " COMMAND, --batch and --service"
        )
    try:
        "".join(command).encode()
    except UnicodeEncodeError as error:
        raise click.UsageError("COMMAND is not UTF-8, but jobspecs are") from error
    words = parse_listing(listing.read()) if listing else command
    kind = kinds[0] if kinds else "interactive"
    return {**asked, "isolated": {"kind": kind, "command": list(words)}}


def _burst_for(job: str, target: Target, no_wait: bool) -> None:
    """Request a burst for a job, and print what the daemon decides.

    Raises BurstError if the job has no burst then, and needs one.
    """
    with target.lead() as lead:
        with show_wait("waiting for the daemon"):
            lead.call("request-job", {"id": job})
            ends = time.monotonic() + _DECIDED_S
            found = lead.call("explain", {"id": job})
            while found["verdict"] in _UNDECIDED and time.monotonic() < ends:
                time.sleep(_LOOK_S)
                found = lead.call("explain", {"id": job})
        live = [each for each in found["bursts"] if each["state"] in _LIVE]
        needs = found["state"] in _WAITS and found["verdict"] not in _STARTS_HERE
        if needs and not live:
            raise _nothing_made(found)
        print_text([f"{found['id']}: {found['why']}"])
        for refusal in found["refusals"]:
            print_text([f"  {refusal['offer']}: {refusal['why']}"])
        for burst in () if no_wait else live:
            if burst["state"] in _COMING:
                wait_for_burst(lambda: lead.call("status", {}), burst["id"])


def _nothing_made(found: Row) -> BurstError:
    """Return the error for a request for a job that has no burst now."""
    told = f"{found['id']}: no burst is made for it now: {found['why']}"
    details = "; ".join(f"{each['offer']}: {each['why']}" for each in found["refusals"])
    return BurstError(
        f"{told} ({details})" if details else told,
        f"the request is kept while the job waits (burst explain {found['id']})",
    )
