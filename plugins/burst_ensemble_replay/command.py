# SPDX-License-Identifier: MIT
"""`burst ensemble replay`: simulate an ensemble before it costs anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
from burst_ensemble.cli.check import known_providers
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.read_members import offered_price
from burst_ensemble.runtime.read_file import read_ensemble
from burst_replay.policy_files import read_offers
from burst_replay.read_trace import read_trace
from burst_replay.site import DEFAULT_PRICE, sold_offers

from burst.cli.listing import (
    Column,
    Listing,
    Row,
    counted,
    listing_options,
    money,
    print_json,
    print_rows,
)
from burst.cli.numbers import Finite, duration_option
from burst.cli.progress import show_progress
from burst.cli.target import Target, target_options
from burst.errors import ConfigError
from burst.model.fsd import format_fsd
from burst.provider import Offer
from burst_ensemble_replay.member import NodeTimes
from burst_ensemble_replay.simulator import (
    EnsembleOutcome,
    EnsembleSimulator,
    Workload,
    drawn_job,
)


def _end(row: Row) -> str:
    fault = f"stopped: {row['trouble']}" if row["trouble"] else ""
    still = "" if fault else f"still there, {counted(row['nodes'], 'node')}"
    return "; ".join(filter(None, (fault, row["end"] or still)))


_ROWS = (
    Column("MEMBER", lambda row: row["name"]),
    Column("PAID h", lambda row: f"{row['paid_node_hours']:.1f}"),
    Column("NEEDED h", lambda row: f"{row['needed_node_hours']:.1f}"),
    Column("MONEY", lambda row: money(row["money"])),
    Column("JOBS", lambda row: row["jobs"]),
    Column("MEAN WAIT", lambda row: format_fsd(row["mean_wait_s"])),
    Column("P95", lambda row: format_fsd(row["p95_wait_s"])),
    Column("RESIZES", lambda row: row["changes"]),
    Column("END", _end),
)


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also submit the jobs of this trace, in a format that `burst replay` reads.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="Seed of the random run times and failures.",
)
@click.option(
    "--failures",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of the file's jobs that fail.",
)
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    help="Cores of a node, for the jobs of the trace. Default: from the trace.",
)
@duration_option("--boot", "Time from the request for a node until it is online.", "5m")
@duration_option(
    "--teardown", "Time for which a node is paid after it is given back.", "1m"
)
@click.option(
    "--price",
    type=Finite(),
    help="Price of a node for an hour. Default: that of the member's offer in the"
    " settings, or 1 if there is none.",
)
@duration_option(
    "--longest",
    "Longest time to simulate. It stops earlier if all members have ended, or an hour"
    " after the last job.",
    "7d",
)
@target_options
@listing_options
def replay(path: Path, target: Target, listing: Listing, **options: Any) -> None:
    """Show what the ensemble in FILE would do and cost, and how long jobs would wait.

    The daemon's own controller and algorithms decide about simulated members; nothing
    is made. A job of the file runs for a random part of its `duration`, or of 20
    minutes if it has none.
    """
    file, algorithms = read_ensemble(path, known_providers(target))
    for member in file.spec.members:
        if member.is_external:
            raise ConfigError(
                f"member {member.name} is an instance of its own, and the file does not"
                " say how large it is",
                "try a copy of the file in which it is a joined member",
            )
    price = options["price"]
    prices = _prices(target, file.spec) if price is None else {}
    usual = DEFAULT_PRICE if price is None else price
    times = NodeTimes(options["boot"], options["teardown"], usual)
    workload = _workload(options)
    simulator = EnsembleSimulator(file.spec, algorithms, times, workload, prices)
    longest = options["longest"]
    with show_progress(path.name, int(longest), "s") as show:
        outcome = simulator.run(longest, lambda now: show(int(now)))
    told = msgspec.to_builtins(outcome)
    if listing.as_json:
        print_json(told)
        return
    print_rows(list(told["members"]), _ROWS, listing)
    if listing.form is None:
        click.echo(_remark(outcome))


def _prices(target: Target, spec: EnsembleSpec) -> Mapping[str, float]:
    """Return the price of each member's nodes by the settings, if there are some."""
    path, settings = target.find(), target.settings()
    if path is None:
        return {}
    sold: dict[str, list[Offer]] = {}
    for each in sold_offers(settings, read_offers(path, settings)):
        sold.setdefault(each.provider, []).append(each.offer)
    found = {member.name: offered_price(member, sold) for member in spec.members}
    known = {name: price for name, price in found.items() if price is not None}
    for name in sorted(found.keys() - known.keys()):
        click.echo(
            f"warning: no offer that is known is for member {name}: its nodes cost"
            f" {money(DEFAULT_PRICE)} an hour here; see --price",
            err=True,
        )
    return known


def _workload(options: dict[str, Any]) -> Workload:
    """Return the workload that the options describe. Raises TraceError."""
    job = drawn_job(options["seed"], options["failures"])
    if options["trace"] is None:
        return Workload(job=job)
    trace = read_trace(options["trace"])
    cores = trace.machine.cores if trace.machine else trace.node_cores
    return Workload(trace.jobs, options["cores"] or cores, job)


def _remark(outcome: EnsembleOutcome) -> str:
    text = f"after {format_fsd(outcome.elapsed_s)}: {outcome.why or 'it goes on'}"
    if outcome.refused:
        text += f"; {counted(outcome.refused, 'job')} fit in no member or came too late"
    return text
