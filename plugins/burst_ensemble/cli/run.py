# SPDX-License-Identifier: MIT
"""`burst ensemble run`, `up`, `status`, `submit`, `resize` and `down`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from burst import log
from burst.cli.colours import state_style
from burst.cli.listing import (
    Column,
    Listing,
    Row,
    counted,
    fsd,
    listing_options,
    print_json,
    print_rows,
)
from burst.cli.progress import show_wait
from burst.cli.target import Target, target_options
from burst.lead import Lead
from burst.model.decision import moment
from burst.runtime.connect import connect
from burst.wakeup import on_signals
from burst_ensemble.cli.check import served_providers, warn_of_endless
from burst_ensemble.core.record import spec_tables
from burst_ensemble.runtime.client import ask_ensembles
from burst_ensemble.runtime.files import environment_of
from burst_ensemble.runtime.process import EnsembleProcess
from burst_ensemble.runtime.read_file import read_ensemble

_EVERY_S = 0.5


@click.command()
@target_options
def run(target: Target) -> None:
    """Run ensembles in a process of its own, beside the daemon.

    For settings with in_daemon = false under [ensemble]. It asks the daemon for nodes,
    and keeps its records at the lead: if it, the daemon or the lead is started again,
    it continues where it was. It runs on the lead's host as the user of the instance.
    """
    settings = target.settings()
    log.start(settings.daemon.log)
    process = EnsembleProcess(settings, lambda: connect(settings.lead.uri))
    on_signals(process.stop, signal.SIGTERM, signal.SIGINT)
    process.run()


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@target_options
def up(file: Path, target: Target) -> None:
    """Start the ensemble of FILE. To see what FILE means, use `burst ensemble check`.

    Its jobs run as the user of the daemon and have these variables of your environment,
    and no others: PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TZ, LD_LIBRARY_PATH,
    PYTHONPATH, VIRTUAL_ENV.
    """
    with target.lead() as lead:
        loaded, algorithms = read_ensemble(file, served_providers(lead))
        warn_of_endless(loaded.spec, algorithms)
        environment = environment_of(os.environ, {})
        asked = {"tables": spec_tables(loaded.spec), "environment": environment}
        row = ask_ensembles(lead, "ensemble-up", asked)
    members = ", ".join(row["members"])
    click.echo(f"ensemble {row['name']} is started: {members}")
    click.echo(f"burst ensemble status {row['name']} shows it", err=True)


@click.command()
@click.argument("name", default="")
@target_options
@listing_options
def status(name: str, target: Target, listing: Listing) -> None:
    """Show the ensembles and their members, or those of NAME.

    --json prints the state of each member in the words of the Ensemble Operator:
    nodes, queue, waiting, nextJobs; and member, jobs.
    """
    with target.lead() as lead:
        found = ask_ensembles(lead, "ensemble-status", {"name": name})["ensembles"]
    if listing.as_json:
        print_json({"ensembles": found})
        return
    if not found:
        click.echo("there is no ensemble; burst ensemble up FILE starts one")
    for row in found:
        print_ensemble(row, listing)


@click.command()
@click.argument("name")
@click.argument("member")
@click.argument("jobs")
@click.option("--count", type=int, default=1, help="Number of jobs; default: 1.")
@target_options
def submit(name: str, target: Target, **asked: str | int) -> None:
    """Submit further jobs of the entry JOBS for MEMBER of the ensemble NAME.

    For a job that is not in the file, use flux submit --burst
    --burst-tag=NAME/MEMBER.
    """
    with target.lead() as lead:
        ask_ensembles(lead, "ensemble-submit", {"name": name, **asked})
    what = counted(int(asked["count"]), "job")
    click.echo(f"submitting {what} of {asked['jobs']} for {asked['member']}")


@click.command()
@click.argument("name")
@click.argument("member")
@click.argument("nodes", type=int)
@target_options
def resize(name: str, member: str, nodes: int, target: Target) -> None:
    """Have MEMBER of the ensemble NAME grow or shrink to NODES now.

    Its algorithms continue to decide, and may change the size again.
    """
    asked = {"name": name, "member": member, "nodes": nodes}
    with target.lead() as lead:
        ask_ensembles(lead, "ensemble-resize", asked)
    what = f"{name}/{member} is to have {counted(nodes, 'node')}"
    click.echo(f"{what}, until its algorithms say otherwise")


@click.command()
@click.argument("name")
@click.option("--note", default="", help="Reason, kept in the record.")
@click.option("--no-wait", is_flag=True, help="Return without waiting for the end.")
@target_options
def down(name: str, note: str, target: Target, *, no_wait: bool) -> None:
    """End the ensemble NAME, for good: waiting jobs are canceled.

    Running jobs continue to their end; then the nodes are taken down.
    """
    with target.lead() as lead:
        ask_ensembles(lead, "ensemble-down", {"name": name, "note": note})
        click.echo(f"ensemble {name} is being taken down")
        if not no_wait:
            _wait_for_end(lead, name)
            click.echo(f"ensemble {name} has ended; nothing of it is left")


def print_ensemble(row: Row, listing: Listing) -> None:
    """Print one ensemble and its members."""
    words = (
        f"{row['name']}: {row['state']} since {moment(row['ended'] or row['started'])}"
    )
    spent = f", {row['spent']:g} spent" if row["spent"] else ""
    why = f": {row['why']}" if row["why"] else ""
    click.echo(f"{words}{spent}{why}")
    print_rows(list(row["members"].values()), _MEMBERS, listing)


def _wait_for_end(lead: Lead, name: str) -> None:
    asked = {"name": name}
    try:
        with show_wait(f"{name}: ending") as show:
            while True:
                (row,) = ask_ensembles(lead, "ensemble-status", asked)["ensembles"]
                if row["state"] == "ended":
                    return
                show(_line(row))
                time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        click.echo(
            f"\n{name} is still being taken down; burst ensemble status shows it",
            err=True,
        )
        raise


def _line(row: Row) -> str:
    left = [
        f"{burst['id']} {burst['state']}"
        for member in row["members"].values()
        for burst in member["member"]["bursts"]
    ]
    return f"{row['name']}: {', '.join(left) or 'its jobs are being canceled'}"


def _jobs(row: Row) -> str:
    queue = row.get("queue")
    tallies = [group["tally"] for group in row["jobs"].values()]
    ended = sum(tally["finished"] for tally in tallies)
    failed = sum(tally["failed"] for tally in tallies)
    text = f"{ended} ended ({failed} failed)" if failed else f"{ended} ended"
    if queue is not None:
        waiting = queue["sched"] + queue["priority"] + queue["depend"] + queue["new"]
        text = f"{waiting} wait, {queue['run']} run, {text}"
    return text


def _nodes(row: Row) -> str:
    member = row["member"]
    if "nodes" not in row:
        left = sum(burst["nodes"] for burst in member["bursts"])
        return f"{'?' if member['ended'] is None else left}/{member['nodes']}"
    isolated = member["mode"] == "isolated"
    up = member["nodes_paid"] if isolated else row["nodes"]["node_up_count"]
    return f"{up}/{member['nodes']}"


def _member_state(row: Row) -> str:
    member = row["member"]
    if member["trouble"]:
        return "stopped"
    if member["ended"] is None and member.get("silent"):
        return "unreadable"
    if member["ended"] is None:
        return "running"
    return "ending" if member["bursts"] or "queue" in row else "ended"


def _lasted(member: Row) -> float:
    ended: float | None = member["ended"]
    began: float = member["started"]
    return (time.time() if ended is None else ended) - began


def _note(row: Row) -> str:
    member = row["member"]
    found = member["trouble"] or member["waits_for"] or member["why"]
    if member["ended"] is not None:
        # What the end waits for, such as a job that runs.
        found = next(filter(None, (b["note"] for b in member["bursts"])), found)
    return "; ".join(filter(None, (found, member["never_taken"]))) or "-"


_MEMBERS = (
    Column("MEMBER", lambda row: row["member"]["name"]),
    Column("PROVIDER", lambda row: row["member"]["provider"] or "-"),
    Column(
        "STATE", _member_state, lambda row: state_style({"state": _member_state(row)})
    ),
    Column("FOR", lambda row: fsd(round(_lasted(row["member"])))),
    Column("NODES", _nodes),
    Column("JOBS", _jobs),
    Column("NOTE", _note),
)
