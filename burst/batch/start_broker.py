# SPDX-License-Identifier: MIT
"""Each task of the batch job runs this: it starts the broker of its node.

Rank 0 writes R, the lead's configuration and the certificate, which all ranks read:
only now it is known which nodes and cores the job has.

Sources: flux-environment(7) for the variables of a task; flux-broker(1); the memo is
the one that a broker bootstrapped by PMI sets (src/broker/bootstrap.c in flux-core).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from burst.batch.batch_plan import (
    AllocatedNode,
    allocated_nodes,
    batch_tables,
    make_plan,
    own_hosts,
    read_allocation,
)
from burst.batch.flux_command import run_flux
from burst.batch.lead_directory import BatchJob, LeadDirectory
from burst.config import parse, read_toml
from burst.errors import BurstError, ConfigError, LeadError
from burst.flux.bindings import find_program
from burst.flux_setup.setup_files import IntakeChoice
from burst.kits.atomic_file import write_atomically
from burst.kits.own_command import own_command
from burst.lead_setup.intake_files import install_intake
from burst.lead_setup.lead_files import write_lead
from burst.lead_setup.own_host import free_port
from burst.lead_setup.start_files import env_for_slurm
from burst.model.exit_status import shell_status
from burst.model.resource_set import ResourceSet

FILES_DEADLINE_S = 300.0
"""How long rank 0's files may take to appear on the other nodes: NFS hides a new
file for a minute, and rank 0 may be slow to start."""
JOIN_DEADLINE_S = 600.0
"""How long the brokers of all own nodes may take to join after rank 0's broker started:
longer than they may wait for their files."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
"""Signals that end a job."""
_LOOK_S = 0.2


class BatchTask(msgspec.Struct, frozen=True):
    """This process, as a task of the batch job."""

    rank: int
    job: str
    tmpdir: Path
    """Temporary directory of the job on this node, which Flux removes."""


class BrokerCommand(msgspec.Struct, frozen=True):
    """How this node's broker is started."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """Variables in addition to those of this process."""


def read_task(environment: Mapping[str, str] = os.environ) -> BatchTask:
    """Return what Flux told this process. Raises ConfigError outside of a job."""
    try:
        return BatchTask(
            rank=int(environment["FLUX_TASK_RANK"]),
            job=environment["FLUX_JOB_ID"],
            tmpdir=Path(environment["FLUX_JOB_TMPDIR"]),
        )
    except (KeyError, ValueError) as error:
        raise ConfigError(
            f"this process is not a task of a Flux job: {error}",
            "only tasks of `burst lead batch` run this command",
        ) from error


def run_node(
    directory: LeadDirectory, options: Sequence[str], script: Sequence[str]
) -> int:
    """Run this node's broker; return its exit status, on rank 0 the script's.

    Use it in the main thread. Raises BurstError if the broker cannot be started, after
    it has ended the whole job, since the other brokers would wait for this one.
    """
    task = read_task()
    try:
        broker = prepare_broker(directory, task, options, script)
        if task.rank == 0 and directory.job() is None:
            # The command that submitted the job may have ended before it wrote that,
            # and `burst lead sweep` takes a lead without a job for one that ended.
            directory.set_job(BatchJob(task.job, os.environ["FLUX_URI"]))
        status = _run_broker(directory, task, broker)
    except BurstError as error:
        if task.rank == 0:
            directory.remove()
        _end_job(task, error)
        raise
    if task.rank == 0 and not directory.owner():
        directory.remove()
    return shell_status(status)


def _run_broker(
    directory: LeadDirectory, task: BatchTask, broker: BrokerCommand
) -> int:
    """Run the broker; return its status. Raises LeadError if no script could begin."""
    # Flux signals all processes of the task, so the broker, too. This process ends once
    # the broker has.
    for number in ENDING:
        signal.signal(number, lambda *_: None)
    process = subprocess.Popen(broker.argv, env={**os.environ, **broker.environment})
    try:
        if task.rank == 0:
            await_script_start(directory, process)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status and not directory.has_begun():
        raise LeadError(
            f"the broker ended with status {status} before the script began",
            "see the broker's messages in the job's output",
        )
    return status


def await_script_start(
    directory: LeadDirectory,
    process: subprocess.Popen[bytes],
    limit_s: float = JOIN_DEADLINE_S,
) -> None:
    """Return once all own nodes have joined and the script is started.

    Also returns if the broker has ended. Raises LeadError past the deadline.
    """
    ends = time.monotonic() + limit_s
    while process.poll() is None and not directory.has_begun():
        if time.monotonic() > ends:
            raise LeadError(
                f"not all own nodes joined rank 0 within {limit_s:.0f} s",
                "they connect to the name of its node; set others with --address and"
                " --port",
            )
        time.sleep(_LOOK_S)


def prepare_broker(
    directory: LeadDirectory,
    task: BatchTask,
    options: Sequence[str],
    script: Sequence[str],
) -> BrokerCommand:
    """Return how to start this node's broker, once its files exist.

    Rank 0 writes them, the others wait for them. Raises BurstError.
    """
    request = directory.request()
    flux = request.flux
    r = read_allocation(run_flux(flux, "job", "info", task.job, "R"))
    nodes = allocated_nodes(r)
    rundir = task.tmpdir / "burst"
    environment: Mapping[str, str] = {}
    if task.rank == 0:
        environment = _make_lead(directory, r, nodes, rundir)
        uri = f"uri=ssh://{nodes[0].name}{rundir}/local"
        run_flux(flux, "job", "memo", task.job, uri)
    else:
        rundir.mkdir(mode=0o700)
        await_lead_files(directory)
    own = (
        f"-Sbroker.quorum={len(nodes)}",
        *options,
        *env_for_slurm(),
        *own_command("lead", "batch-script", str(directory.path)),
        *("--job", task.job, "--", *script),
    )
    argv = (
        *(flux, "broker", f"--config-path={directory.path / 'broker.toml'}"),
        f"-Shostname={own_hosts(nodes)[task.rank]}",
        f"-Srundir={rundir}",
        f"-Slocal-uri=local://{rundir}/local",
        *(own if task.rank == 0 else options),
    )
    return BrokerCommand(argv, environment)


def _end_job(task: BatchTask, error: BurstError) -> None:
    """Raise an exception on the job, so that Flux ends it and this process."""
    note = f"rank {task.rank}: {error}"
    words = ("job", "raise", "--severity=0", "--type=burst", task.job, note)
    try:
        run_flux(find_program() or "flux", *words)
    except LeadError as other:
        raise LeadError(f"{error}; and the job could not be ended: {other}") from error


def await_lead_files(
    directory: LeadDirectory, limit_s: float = FILES_DEADLINE_S
) -> None:
    """Return once rank 0 has written all files. Raises LeadError past the deadline."""
    ends = time.monotonic() + limit_s
    # The last file that rank 0 writes.
    while not directory.certificate.exists():
        if time.monotonic() > ends:
            raise LeadError(
                f"{directory.certificate} did not appear on this node within"
                f" {limit_s:.0f} s",
                "the directory has to be on a file system that all nodes share; set"
                " it with --dir",
            )
        time.sleep(_LOOK_S)


def _make_lead(
    directory: LeadDirectory,
    r: ResourceSet,
    nodes: Sequence[AllocatedNode],
    rundir: Path,
) -> Mapping[str, str]:
    """Write all files of the lead; return variables for its broker."""
    tables = read_toml(directory.given)
    settings = parse(tables, str(directory.given))
    request = directory.request()
    read_by_daemon = batch_tables(tables, request)
    write_atomically(directory.settings, tomli_w.dumps(read_by_daemon))
    port = request.port or settings.lead.port or free_port()
    plan = make_plan(request, nodes, settings, port)
    share = settings.plan.share_users
    intake = settings.intake
    choice = IntakeChoice(intake=intake, local_queue="batch", share_users=share)
    installed = install_intake(directory.path, choice)
    extra = msgspec.structs.replace(
        installed,
        tables={**installed.tables, **_end_table(r, installed.tables)},
        own=tuple(node.children for node in nodes),
        run=rundir,
    )
    write_lead(directory.path, plan, extra=extra)
    return {
        # Values that the user has set stay in effect.
        name: ":".join(filter(None, (path, os.environ.get(name))))
        for name, path in extra.environment.items()
    }


def _end_table(r: ResourceSet, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table that tells the lead when its job ends, if that has a limit."""
    if not r.expiration:
        return {}
    return {"burst": {**tables.get("burst", {}), "ends": r.expiration}}
