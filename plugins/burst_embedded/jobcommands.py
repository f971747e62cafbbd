# SPDX-License-Identifier: MIT
"""What a user does with jobs of an embedded lead: submit, jobs, attach, cancel."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from burst.model.fsd import format_fsd, parse_fsd
from burst.model.jobid import JobId, format_f58, parse_jobid
from burst.model.ranks import format_hostlist
from burst_embedded import calls
from burst_embedded.calls import JobInfo
from burst_embedded.client import EmbeddedClient
from burst_embedded.jobspec import (
    Wanted,
    build_jobspec,
    parse_requires,
    parse_setattr,
    set_attribute,
)
from burst_embedded.wire import Output

_URGENCIES = {"hold": 0, "default": 16, "expedite": 31}


def _job_id(text: str) -> JobId:
    try:
        return parse_jobid(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _duration(text: str) -> float:
    try:
        return parse_fsd(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _urgency(text: str) -> int:
    try:
        return _URGENCIES[text] if text in _URGENCIES else int(text)
    except ValueError:
        raise click.BadParameter(
            f"not an urgency: {text!r} (0 to 31, hold, default, expedite)"
        ) from None


_uri_option = click.option(
    "--uri", envvar="FLUX_URI", required=True, help="Of the lead; default $FLUX_URI."
)


@click.command(context_settings={"allow_interspersed_args": False})
@_uri_option
@click.option("-N", "nodes", type=click.IntRange(1), metavar="N", help="Nodes.")
@click.option("-n", "slots", type=click.IntRange(1), metavar="N", help="Tasks in all.")
@click.option(
    "-c", "cores", type=click.IntRange(1), default=1, metavar="N", help="Cores a task."
)
@click.option(
    "-g", "gpus", type=click.IntRange(0), default=0, metavar="N", help="GPUs a task."
)
@click.option("-t", "limit", type=_duration, default="0", metavar="FSD", help="Limit.")
@click.option("--setattr", "attributes", multiple=True, metavar="KEY[=VALUE]")
@click.option("--urgency", type=_urgency, default="default", metavar="URGENCY")
@click.option("--requires", default="", help="Such as burst or ^burst or host:n[0-3].")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(uri: str, urgency: int, command: tuple[str, ...], **options: Any) -> None:
    """Submit a job, one task a slot or a node, and print its id."""
    system: dict[str, Any] = {
        "duration": 0 if options["limit"] == float("inf") else options["limit"],
        "cwd": str(Path.cwd()),
        "environment": dict(os.environ),
    }
    if options["requires"]:
        system["constraints"] = parse_requires(options["requires"])
    for text in options["attributes"]:
        set_attribute(system, *parse_setattr(text))
    counts = {key: options[key] or 0 for key in ("nodes", "slots", "cores", "gpus")}
    with closing(EmbeddedClient(uri)) as client:
        jobspec = build_jobspec(command, Wanted(**counts), system)
        job_id = client.call(calls.Submit(jobspec, urgency), JobId)
    click.echo(format_f58(job_id))


@click.command()
@_uri_option
@click.option("--json", "as_json", is_flag=True)
@click.argument("job_ids", nargs=-1, type=_job_id)
def jobs(uri: str, as_json: bool, job_ids: tuple[JobId, ...]) -> None:
    """List jobs: these, or all that the lead knows."""
    with closing(EmbeddedClient(uri)) as client:
        found = client.call(calls.ListJobs(job_ids), list[JobInfo])
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    table = Table("JOBID", "STATE", "URG", "NNODES", "NTASKS", "TIME", "NODELIST")
    for job in found:
        table.add_row(*_row(job))
    Console().print(table)


@click.command()
@_uri_option
@click.option(
    "-l", "--label-io", is_flag=True, help="Begin lines with the task's rank."
)
@click.argument("job_id", type=_job_id)
def attach(uri: str, label_io: bool, job_id: JobId) -> None:
    """Print what a job writes until it ends, and exit with its status."""
    with closing(EmbeddedClient(uri)) as client:
        for payload in client.stream(calls.Attach(job_id)):
            if "stream" not in payload:
                job = msgspec.convert(payload, JobInfo)
                break
            _print_piece(msgspec.convert(payload, Output), label_io)
    if job.output_cut:
        click.echo("burst: it wrote more than is kept; the rest is lost", err=True)
    for event in job.events:
        if event.name == "exception":
            text = "{type} {note}".format(**event.context)
            click.echo(f"{format_f58(job_id)}: exception: {text}", err=True)
    sys.exit(job.exit_code)


@click.command()
@_uri_option
@click.argument("job_ids", nargs=-1, required=True, type=_job_id)
def cancel(uri: str, job_ids: tuple[JobId, ...]) -> None:
    """End jobs: those that wait at once, those that run by SIGTERM."""
    with closing(EmbeddedClient(uri)) as client:
        for job_id in job_ids:
            client.call(calls.RaiseException(job_id, "cancel", ""), type(None))


@click.command()
@_uri_option
@click.argument("job_id", type=_job_id)
@click.argument("value", type=_urgency, metavar="URGENCY")
def urgency(uri: str, job_id: JobId, value: int) -> None:
    """Change a job's urgency: 0 to 31, hold, default or expedite."""
    with closing(EmbeddedClient(uri)) as client:
        failures = client.call(calls.SetUrgencies({job_id: value}), dict[JobId, str])
    if failures:
        raise click.ClickException(f"{format_f58(job_id)}: {failures[job_id]}")


def _row(job: JobInfo) -> tuple[str, ...]:
    held = job.state.value == "sched" and not job.urgency
    ran = max(job.t_finish or job.t_start, job.t_start) - job.t_start
    return (
        format_f58(job.id),
        "held" if held else job.result or job.state.value,
        str(job.urgency),
        str(job.nnodes or ""),
        str(job.ntasks),
        format_fsd(ran) if job.t_finish else "",
        format_hostlist(job.hosts),
    )


def _print_piece(piece: Output, label_io: bool) -> None:
    file = sys.stderr if piece.stream == 2 else sys.stdout
    text = piece.data.decode(errors="replace")
    if label_io:
        text = "".join(f"{piece.task}: {line}" for line in text.splitlines(True))
    file.write(text)
    file.flush()


COMMANDS: Sequence[click.Command] = (submit, jobs, attach, cancel, urgency)
