# SPDX-License-Identifier: MIT
"""`burst lead batch`: a lead in one's own allocation; `sweep` after one that failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from burst.batch.batch_plan import LeadRequest, parse_slot_request
from burst.batch.lead_directory import LeadDirectory, default_parent
from burst.batch.reap import is_job_over, reap_lead
from burst.batch.run_script import ScriptRunner
from burst.batch.start_broker import run_node
from burst.batch.submit import Submission, find_flux, submit
from burst.cli.common import Place
from burst.config import load
from burst.errors import BurstError, ConfigError
from burst.runtime import provider_registry

_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_BASE = "~/.local/share/burst/batch"


@click.command(context_settings=_PASS_ON)
@click.option("-N", "--nodes", type=int, help="Own nodes, of this instance.")
@click.option(
    "--slots",
    multiple=True,
    required=True,
    metavar="COUNT[:CORES[:GPUS]]",
    help="Ranks for one burst; may be given again. By default its nodes are as the"
    " first own one.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings of the daemon: who brings nodes. Default: as burst daemon has it.",
)
@click.option("-t", "--time-limit", metavar="FSD", help="Of the job.")
@click.option("--output", metavar="FILE", help="Default: flux-JOBID.out.")
@click.option("-q", "--queue", metavar="NAME", help="Of this instance, for the job.")
@click.option("--address", default="", help="Where followers reach the first own node.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="And at which port. Default for both: [lead] of the settings, else the node's"
    " name and a free port.",
)
@click.option(
    "--dir",
    "base",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Where the lead's files are while it lives; all nodes have to see it."
    f" Default: {_BASE}.",
)
@click.option("--dry-run", is_flag=True, help="Print the jobspec; submit nothing.")
@click.argument("script", nargs=-1, type=click.UNPROCESSED, required=True)
def batch(
    slots: tuple[str, ...],
    config: Path | None,
    base: Path | None,
    dry_run: bool,
    script: tuple[str, ...],
    **options: Any,
) -> None:
    """Submit SCRIPT as a batch job that can burst, and print its jobid.

    No privilege is needed: the job is an instance of your own on N nodes, which is a
    lead with further ranks, and its daemon runs in it with your settings. In SCRIPT,
    `flux submit --burst` and `flux submit --setattr=burstable` burst. When it ends,
    jobs that are left are canceled and all bursts taken down; the job's exit status is
    the script's.

    All else is as with flux batch, whose other options may come after these and before
    SCRIPT.
    """
    found = Place(config, None).find()
    if found is None:
        raise ConfigError(
            "there are no settings, so nobody would bring nodes",
            "name a burst.toml with --config; `burst lead init` writes one",
        )
    # What is wrong with them is better told now than when the job comes to run.
    if not provider_registry.load_providers(load(found), "nobody"):
        raise ConfigError(
            f"{found}: no provider is enabled, so nobody would bring nodes",
            "add a table [providers.NAME]",
        )
    request = LeadRequest(
        slots=tuple(map(parse_slot_request, slots)),
        address=options["address"],
        port=options["port"] or 0,
        flux=find_flux(),
    )
    passed = [
        f"--{name}={options[name.replace('-', '_')]}"
        for name in ("time-limit", "output", "queue")
        if options[name.replace("-", "_")]
    ]
    submission = Submission(
        request=request,
        settings=found.read_bytes(),
        nodes=options["nodes"],
        words=(*passed, *script),
    )
    said = submit(base or default_parent(), submission, dry_run=dry_run)
    click.echo(said.stdout, nl=False)
    click.echo(said.stderr, nl=False, err=True)
    sys.exit(said.status)


@click.command("batch-node", hidden=True)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--broker-opt", "options", multiple=True)
@click.argument("script", nargs=-1, type=click.UNPROCESSED, required=True)
def batch_node(
    directory: Path, options: tuple[str, ...], script: tuple[str, ...]
) -> None:
    """Run this node's broker. Tasks of `burst lead batch` do it."""
    sys.exit(run_node(LeadDirectory(directory), options, script))


@click.command("batch-script", hidden=True)
@click.argument("directory", type=click.Path(path_type=Path))
@click.option("--job", required=True)
@click.argument("script", nargs=-1, type=click.UNPROCESSED, required=True)
def batch_script(directory: Path, job: str, script: tuple[str, ...]) -> None:
    """Run the script beside a daemon. Rank 0 of `burst lead batch` does it."""
    sys.exit(ScriptRunner(LeadDirectory(directory), job, _tell).run(script))


@click.command()
@click.argument("directories", nargs=-1, type=click.Path(path_type=Path))
def sweep(directories: tuple[Path, ...]) -> None:
    """Take down what killed leads of `burst lead batch` left.

    DIRECTORIES are those of leads; by default all in ~/.local/share/burst/batch. Only
    those are touched whose jobs are over.
    """
    places = list(map(LeadDirectory, directories)) or LeadDirectory.find(
        default_parent()
    )
    failed = False
    for place in places:
        try:
            click.echo(_sweep(place))
        except BurstError as error:
            failed = True
            click.echo(f"{place.path}: {error}", err=True)
    if not places:
        click.echo("nothing is left of any lead")
    if failed:
        sys.exit(1)


def _sweep(place: LeadDirectory) -> str:
    if not is_job_over(place):
        return f"{place.path}: its job is not over"
    reap_lead(place, _tell)
    place.remove()
    return f"{place.path}: nothing is left"


def _tell(line: str) -> None:
    click.echo(f"burst: {line}", err=True)
