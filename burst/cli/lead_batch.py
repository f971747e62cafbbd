# SPDX-License-Identifier: MIT
"""`burst lead batch`: a lead in a user's own allocation."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from burst.batch.batch_plan import LeadRequest, parse_slot_request
from burst.batch.lead_directory import LeadDirectory, default_parent
from burst.batch.run_script import ScriptRunner
from burst.batch.start_broker import run_node
from burst.batch.submit import Submission, find_flux, submit
from burst.cli.progress import show_wait
from burst.cli.target import Target
from burst.config import load
from burst.errors import ConfigError
from burst.runtime import provider_registry

_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


_BASE = "~/.local/share/burst/batch"


@click.command(context_settings=_PASS_ON)
@click.option(
    "-N",
    "--nodes",
    type=int,
    help="Number of own nodes of the lead, from this instance.",
)
@click.option(
    "--slots",
    multiple=True,
    required=True,
    metavar="COUNT[:CORES[:GPUS]]",
    help="Number of nodes in a rank slot; may be repeated. Without CORES, they have the"
    " cores and GPUs of the first own node.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Settings file of the daemon. Default: the one that burst daemon uses.",
)
@click.option("-t", "--time-limit", metavar="FSD", help="Time limit of the job.")
@click.option(
    "--output",
    metavar="FILE",
    help="File for the output of the job. Default: flux-JOBID.out.",
)
@click.option(
    "-q", "--queue", metavar="NAME", help="Queue of this instance for the job."
)
@click.option(
    "--address", default="", help="Address at which followers reach the first own node."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port at which followers reach the first own node. Default for address and"
    " port: [lead] of the settings, else the node's name and a free port.",
)
@click.option(
    "--dir",
    "base",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Directory for the lead's files while it runs, on a file system that all"
    " nodes share."
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

    No privilege is needed: the job is an instance of your own on N nodes. It is a lead
    with further ranks, and the daemon runs in it with your settings. In SCRIPT, jobs of
    `flux submit --burst` and `flux submit --setattr=burstable` burst. When SCRIPT ends,
    the remaining jobs are canceled and all bursts are taken down. The job's exit status
    is that of SCRIPT.

    Other options of flux batch may come after these and before SCRIPT.
    """
    settings = _find_settings(config)
    request = LeadRequest(
        slots=tuple(map(parse_slot_request, slots)),
        address=options["address"],
        port=options["port"] or 0,
        flux=find_flux(),
    )
    passed = {name: options[name] for name in ("time_limit", "output", "queue")}
    submission = Submission(
        request=request,
        settings=settings.read_bytes(),
        nodes=options["nodes"],
        words=(*_as_options(passed), *script),
    )
    with show_wait("submitting the job"):
        result = submit(base or default_parent(), submission, dry_run=dry_run)
    click.echo(result.stdout, nl=False)
    click.echo(result.stderr, nl=False, err=True)
    sys.exit(result.status)


def _find_settings(config: Path | None) -> Path:
    """Return the settings file for the daemon. Raises ConfigError.

    A mistake in it is reported now rather than when the job starts.
    """
    found = Target(config, None).find()
    if found is None:
        raise ConfigError(
            "there is no settings file, so no provider can add nodes",
            "name a burst.toml with --config; `burst lead init` writes one",
        )
    if not provider_registry.load_providers(load(found), "nobody"):
        raise ConfigError(
            f"{found}: no provider is enabled, so none can add nodes",
            "add a table [providers.NAME]",
        )
    return found


def _as_options(given: Mapping[str, str | None]) -> Iterator[str]:
    for name, value in given.items():
        if value:
            yield f"--{name.replace('_', '-')}={value}"


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
    sys.exit(ScriptRunner(LeadDirectory(directory), job, tell).run(script))


def tell(line: str) -> None:
    """Print a line of progress to the output of the job, or of the command."""
    click.echo(f"burst: {line}", err=True)
