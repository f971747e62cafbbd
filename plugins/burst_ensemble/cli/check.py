# SPDX-License-Identifier: MIT
"""The command group `burst ensemble`, and `check`, which says what a file means."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import msgspec

from burst.cli.help_texts import CommandGroup
from burst.cli.listing import (
    Column,
    Listing,
    counted,
    listing_options,
    money,
    print_json,
    print_rows,
)
from burst.cli.target import Target, target_options
from burst.core.tagged_nodes import TaggedNodes
from burst.decode import from_plain
from burst.errors import BurstError
from burst.lead import Lead
from burst.model.fsd import format_fsd
from burst_ensemble.config.spec import (
    AlgorithmSpec,
    EnsembleSpec,
    JobSpec,
    MemberSpec,
)
from burst_ensemble.core.record import spec_tables
from burst_ensemble.runtime.algorithms import Algorithms
from burst_ensemble.runtime.read_file import (
    KnownProviders,
    providers_of_daemon,
    providers_of_settings,
    read_ensemble,
)

_MEMBERS = (
    Column("MEMBER", lambda row: row["name"]),
    Column("PROVIDER", lambda row: row["provider"] or "-"),
    Column("MODE", lambda row: row["mode"]),
    Column(
        "NODES",
        lambda row: (
            "its own"
            if row["mode"] == "external"
            else f"{row['size']} ({row['min']}-{row['max']})"
        ),
    ),
    Column("SHARE", lambda row: f"{row['share']:g}"),
    Column("JOBS", lambda row: row["jobs_text"]),
    Column("ALGORITHM", lambda row: row["algorithms_text"]),
)


@click.group(cls=CommandGroup)
def ensemble() -> None:
    """Members that grow, shrink, get jobs and end as algorithms decide."""


@ensemble.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@target_options
@listing_options
def check(path: Path, target: Target, listing: Listing) -> None:
    """Say what FILE means, or which line is wrong and what would be right.

    Members name providers: those of the settings, or of the daemon that serves the lead
    if no settings file is found. Nothing is made.
    """
    file, algorithms = read_ensemble(path, known_providers(target))
    warn_of_endless(file.spec, algorithms)
    rows = [_row(member) for member in file.spec.members]
    if listing.as_json:
        print_json(spec_tables(file.spec))
        return
    if listing.form is None:
        click.echo(_headline(file.spec))
    print_rows(rows, _MEMBERS, listing)
    if listing.form is None:
        for job in file.spec.jobs:
            click.echo(f"for whichever member is first: {_job(job)}")


def warn_of_endless(spec: EnsembleSpec, algorithms: Algorithms) -> None:
    """Warn of members with nodes that nothing in the file ends."""
    if spec.limits.money or not math.isinf(spec.limits.time):
        return
    for member in spec.members:
        its = algorithms[member.name].values()
        endless = all(getattr(each, "never_ends", False) for each in its)
        if endless and not member.is_external:
            click.echo(
                f"warning: nothing in the file ends member {member.name}, and its nodes"
                " cost until burst ensemble down; set time or money under [limits], or"
                " also list the algorithm stop",
                err=True,
            )


def known_providers(target: Target) -> KnownProviders:
    """Return the providers of the settings; without a file, those of the daemon."""
    if target.find() is None:
        # If no daemon serves, the file is refused for the lack of a provider.
        with suppress(BurstError), target.lead() as lead:
            return served_providers(lead)
    return providers_of_settings(target.settings())


def served_providers(lead: Lead) -> KnownProviders:
    """Return the providers of the daemon that serves a lead. Raises BurstError."""
    return providers_of_daemon(from_plain(lead.call("tagged", {}), TaggedNodes))


def _row(member: MemberSpec) -> dict[str, Any]:
    return {
        **msgspec.structs.asdict(member),
        "jobs_text": "; ".join(map(_job, member.jobs)) or "-",
        "algorithms_text": ", then ".join(map(_algorithm, member.algorithms)),
    }


def _algorithm(spec: AlgorithmSpec) -> str:
    said = ", ".join(_option(*option) for option in spec.options.items())
    return f"{spec.name} ({said})" if said else spec.name


def _option(key: str, value: Any) -> str:
    if isinstance(value, list):
        return counted(len(value), key.removesuffix("s"))
    return f"{key} {value}"


def _job(job: JobSpec) -> str:
    many = f"{job.total} x " if job.total else "any number of "
    limit = f", {format_fsd(job.duration)}" if job.duration else ""
    return f"{many}{job.name} ({counted(job.nodes, 'node')}{limit})"


def _headline(spec: EnsembleSpec) -> str:
    limits = spec.limits
    said = [
        counted(limits.nodes, "node") if limits.nodes else "",
        f"{money(limits.money)} of money" if limits.money else "",
        "" if math.isinf(limits.time) else format_fsd(limits.time),
    ]
    most = " and ".join(text for text in said if text)
    return (
        f"ensemble {spec.name}: {counted(len(spec.members), 'member')}, checked every"
        f" {format_fsd(spec.check)}; " + (f"at most {most}" if most else "no limits")
    )
