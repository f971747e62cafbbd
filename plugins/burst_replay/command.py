# SPDX-License-Identifier: MIT
"""`burst replay`: replay a recorded workload under other rules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from burst.cli.listing import (
    Column,
    Listing,
    counted,
    money,
    print_json,
    print_rows,
)
from burst.cli.numbers import Finite, duration_option
from burst.cli.picture import save_picture
from burst.cli.progress import show_progress, show_wait
from burst.model.exit_status import INTERRUPTED
from burst.model.fsd import format_fsd
from burst.model.scheduler import Order
from burst_replay.policies import Policy
from burst_replay.policy_files import read_policies
from burst_replay.read_trace import read_trace
from burst_replay.report import PolicyResult, json_report, policy_result
from burst_replay.simulator import replay
from burst_replay.site import Site, SiteOptions
from burst_replay.trace import Machine, Trace, TraceError

FRONTIER = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""The worths that `--frontier` tries."""

_COLUMNS = (
    Column("POLICY", lambda row: row["policy"]),
    Column("MEAN WAIT", lambda row: format_fsd(row["mean_wait_s"])),
    Column("P95", lambda row: format_fsd(row["p95_wait_s"])),
    Column("BOUGHT h", lambda row: f"{row['bought_node_hours']:.0f}"),
    Column("SHARE", lambda row: f"{100 * row['bought_share']:.1f} %"),
    Column("MONEY", lambda row: money(row["money"])),
    Column("WORK", lambda row: money(row["work"])),
    Column("IDLE", lambda row: money(row["idle"])),
    Column("BOOT", lambda row: money(row["boot"])),
    Column("TEAR-DOWN", lambda row: money(row["teardown"])),
    Column("BURSTS", lambda row: row["bursts"]),
    Column("REFUSED", lambda row: row["refused"]),
)


@click.command("replay")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "files",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Try the rules [[policy]] of a settings file. May be repeated.",
)
@click.option(
    "--worth",
    multiple=True,
    metavar="X",
    type=Finite(),
    help="Try one worth for all jobs: hours saved for each node-hour bought. May be"
    " repeated.",
)
@click.option("--frontier", is_flag=True, help="Try several worths from 0.01 to 2.")
@click.option("--nodes", type=click.IntRange(min=1), help="Number of own nodes.")
@click.option("--cores", type=click.IntRange(min=1), help="Cores of each node.")
@click.option(
    "--order",
    type=click.Choice([each.value for each in Order]),
    default=Order.EASY.value,
    show_default=True,
    help="How own nodes are scheduled: in the order of submission (fifo), or with"
    " backfill that does not delay the first waiting job (easy) or any (conservative).",
)
@duration_option(
    "--boot",
    "How long bought nodes take to come online. Default: as the bought offer of"
    " --policy says, else 5m.",
)
@duration_option(
    "--teardown", "How long nodes are paid after they are given back.", "1m"
)
@duration_option(
    "--idle",
    "How long an idle burst is kept. Default: [deadlines] idle of a --policy file that"
    " names providers, else not at all.",
)
@click.option(
    "--price",
    type=Finite(),
    help="Price of a node for an hour. Default: that of the bought offer of --policy,"
    " else 1.",
)
@click.option(
    "--picture",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Draw wait against money as a picture: .svg, .png or .pdf.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay_trace(
    path: Path,
    files: tuple[Path, ...],
    worth: tuple[float, ...],
    frontier: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Show how long the jobs of TRACE would have waited, at what cost, by other rules.

    TRACE is a file in the Standard Workload Format, the output of
    `flux jobs -a -A --count=0 --json`, a file of `[daemon] record`, or a journal of
    Flux; the output of Slurm's `sacct --parsable2` or `sacct --json`; an accounting log
    of PBS, Torque, LSF (lsb.acct) or Grid Engine; or flux-fiction's CSV; plain or
    compressed by gzip.
    Records that lack data or are no jobs are counted, and their number is printed.
    Nothing is bought, and no daemon is asked: the queue is simulated, and each waiting
    job is judged as the daemon would. The policies never and at once are always shown.
    """
    found: dict[str, PolicyResult] = {}
    try:
        with show_wait(f"reading {path.name}"):
            trace = read_trace(path)
        machine = _machine(trace, options.pop("nodes"), options.pop("cores"))
        picture = options.pop("picture")
        order, teardown = Order(options.pop("order")), options.pop("teardown")
        sold = SiteOptions(Site(machine, order, teardown=teardown), **options)
        _tell(trace, machine)
        worths = [*worth, *(FRONTIER if frontier else ())]
        for policy, site in read_policies(files, sold, trace, worths):
            found[policy.name] = _replay_one(trace, site, policy)
    except KeyboardInterrupt:
        if found and not as_json:
            _print_table(found)
        click.echo("burst: stopped; the replay is not complete", err=True)
        sys.exit(INTERRUPTED)
    if as_json:
        print_json(json_report(trace, found))
    else:
        _print_table(found)
    # Last: if the file cannot be written, the results of minutes are already printed.
    if picture is not None:
        with show_wait(f"drawing {picture}"):
            draw(picture, trace.name, found)


def _print_table(found: Mapping[str, PolicyResult]) -> None:
    rows = [{"policy": n, **msgspec.structs.asdict(r)} for n, r in found.items()]
    print_rows(rows, _COLUMNS, Listing())


def _machine(trace: Trace, nodes: int | None, cores: int | None) -> Machine:
    """Return the own nodes by the command's options, or else by the trace."""
    known = trace.machine
    cores = cores or (known.cores if known else trace.node_cores)
    if nodes is not None:
        return Machine(nodes, cores)
    if known is not None:
        return Machine(-(-known.total // cores), cores)
    largest = -(-max(job.cores for job in trace.jobs) // cores)
    raise TraceError(
        f"{trace.name}: does not say on how many nodes it was recorded",
        "give --nodes and --cores of the machine; its largest job alone had"
        f" {counted(largest, 'node')} of {counted(cores, 'core')}",
    )


def _tell(trace: Trace, machine: Machine) -> None:
    text = (
        f"{trace.name}: {counted(len(trace.jobs), 'job')} on"
        f" {counted(machine.nodes, 'node')} of {counted(machine.cores, 'core')}"
    )
    told = filter(None, (text, trace.left_out_text, *trace.notes))
    click.echo("; ".join(told), err=True)


def _replay_one(trace: Trace, site: Site, policy: Policy) -> PolicyResult:
    with show_progress(policy.name, len(trace.jobs), "jobs") as show:
        outcome = replay(trace, site, policy, show)
    if outcome.turned_down:
        told = counted(outcome.turned_down, "job")
        click.echo(f"{policy.name}: no budget had the money for {told}", err=True)
    unused = policy.unused()
    if unused:
        names = ", ".join(unused)
        click.echo(f"{policy.name}: rules for no job that waited: {names}", err=True)
    return policy_result(trace.jobs, site.machine, outcome)


def draw(path: Path, trace: str, found: Mapping[str, PolicyResult]) -> None:
    """Write a picture in the format of the file's suffix. Raises PictureError."""
    rows = sorted(found.items(), key=lambda item: item[1].money)

    def plot(axes: Any) -> None:
        axes.plot(
            [row.money for _, row in rows],
            [row.mean_wait_s / 3600.0 for _, row in rows],
            marker="o",
            linewidth=1,
        )
        for name, row in rows:
            at = (row.money, row.mean_wait_s / 3600.0)
            axes.annotate(
                name, at, xytext=(4, 4), textcoords="offset points", fontsize=8
            )
        # Shows zero and amounts that differ by a factor of ten thousand.
        least = min((row.money for _, row in rows if row.money), default=1.0)
        axes.set_xscale("symlog", linthresh=least)
        axes.set(xlabel="money", ylabel="mean wait in hours", title=trace)
        axes.set(ylim=(0, None))

    save_picture(path, (6.4, 4.0), plot)
