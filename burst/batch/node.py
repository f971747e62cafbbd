# SPDX-License-Identifier: MIT
"""What each task of the batch job does: it runs this node's broker.

The one on rank 0 writes what all of them read, since only now it is known on which
nodes, and that with which cores: R, the lead's configuration and the certificate.

Sources: flux-environment(7) for the variables of a task; flux-broker(1); the memo is
the one that a broker bootstrapped by PMI sets (src/broker/bootstrap.c in flux-core).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from burst.batch.flux import ask_flux
from burst.batch.place import BatchPlace
from burst.batch.plan import (
    Node,
    batch_tables,
    make_plan,
    own_hosts,
    parse_allocation,
)
from burst.config import Settings, parse, read_toml
from burst.errors import BurstError, ConfigError, LeadError
from burst.flux.bindings import find_program
from burst.flux_setup.plan import Choice
from burst.kits.atomic_file import write_whole
from burst.lead_setup.files import write_lead
from burst.lead_setup.init import install_intake

READY_DEADLINE_S = 300.0
"""How long rank 0's files may take to be seen on the other nodes: NFS hides a new
file for a minute, and rank 0 may be slow to start."""
JOIN_DEADLINE_S = 600.0
"""From the start of rank 0's broker until those of all own nodes have joined: longer
than they may wait for their files."""
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
"""Signals that end a job."""
_LOOK_S = 0.2


class Task(msgspec.Struct, frozen=True):
    """This process, as a task of the batch job."""

    rank: int
    job: str
    tmpdir: Path
    """Of the job on this node; Flux removes it with the job."""


class Broker(msgspec.Struct, frozen=True):
    """How this node's broker is started."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """Added to ours."""


def read_task(environment: Mapping[str, str] = os.environ) -> Task:
    """Return what Flux told this process. Raises ConfigError outside of a job."""
    try:
        return Task(
            rank=int(environment["FLUX_TASK_RANK"]),
            job=environment["FLUX_JOB_ID"],
            tmpdir=Path(environment["FLUX_JOB_TMPDIR"]),
        )
    except (KeyError, ValueError) as error:
        raise ConfigError(
            f"this is no task of a Flux job: {error}", "it is for burst lead batch"
        ) from error


def run_node(place: BatchPlace, options: Sequence[str], script: Sequence[str]) -> int:
    """Run this node's broker; return its exit status, on rank 0 the script's.

    From the main thread. Raises BurstError where one does not come to run; then the
    whole job is ended, as the others would wait for it.
    """
    task = read_task()
    try:
        broker = make_broker(place, task, options, script)
        status = _run_broker(place, task, broker)
    except BurstError as error:
        if task.rank == 0:
            place.remove()
        _end_job(task, error)
        raise
    if task.rank == 0 and not place.owner():
        place.remove()
    return status if status >= 0 else 128 - status


def _run_broker(place: BatchPlace, task: Task, broker: Broker) -> int:
    """Return its status once it has ended. Raises LeadError if that was too early."""
    # Flux signals all processes of the task, so the broker too. This one ends with it.
    for number in ENDING:
        signal.signal(number, lambda *_: None)
    process = subprocess.Popen(broker.argv, env={**os.environ, **broker.environment})
    try:
        if task.rank == 0:
            await_begin(place, process)
        status = process.wait()
    finally:
        process.kill()
        process.wait()
    if status and not place.has_begun():
        raise LeadError(
            f"the broker ended with status {status} before the script began",
            "the job's output has what it said",
        )
    return status


def await_begin(
    place: BatchPlace,
    process: subprocess.Popen[bytes],
    limit_s: float = JOIN_DEADLINE_S,
) -> None:
    """Return once all own nodes are there and the script's turn has come.

    Or once the broker has ended. Raises LeadError past the deadline.
    """
    ends = time.monotonic() + limit_s
    while process.poll() is None and not place.has_begun():
        if time.monotonic() > ends:
            raise LeadError(
                f"not all own nodes joined rank 0 within {limit_s:.0f} s",
                "they connect to its node's name; --address and --port set others",
            )
        time.sleep(_LOOK_S)


def make_broker(
    place: BatchPlace, task: Task, options: Sequence[str], script: Sequence[str]
) -> Broker:
    """Return how to start this node's broker, once all is there that it needs.

    On rank 0 that is made. Raises BurstError.
    """
    wish = place.wish()
    flux = wish.flux
    r: dict[str, Any] = json.loads(ask_flux(flux, "job", "info", task.job, "R"))
    nodes = parse_allocation(r)
    rundir = task.tmpdir / "burst"
    environment: Mapping[str, str] = {}
    if task.rank == 0:
        environment = _make_lead(place, r, nodes, rundir)
        uri = f"uri=ssh://{nodes[0].name}{rundir}/local"
        ask_flux(flux, "job", "memo", task.job, uri)
    else:
        rundir.mkdir(mode=0o700)
        await_ready(place)
    own = (
        f"-Sbroker.quorum={len(nodes)}",
        *options,
        *(sys.executable, "-m", "burst", "lead", "batch-script", str(place.path)),
        *("--job", task.job, "--", *script),
    )
    argv = (
        *(flux, "broker", f"--config-path={place.path / 'broker.toml'}"),
        f"-Shostname={own_hosts(nodes)[task.rank]}",
        f"-Srundir={rundir}",
        f"-Slocal-uri=local://{rundir}/local",
        *(own if task.rank == 0 else options),
    )
    return Broker(argv, environment)


def _end_job(task: Task, error: BurstError) -> None:
    """Have Flux end the job, which ends this process too."""
    note = f"rank {task.rank}: {error}"
    words = ("job", "raise", "--severity=0", "--type=burst", task.job, note)
    try:
        ask_flux(find_program() or "flux", *words)
    except LeadError as other:
        raise LeadError(f"{error}; nor can the job be ended: {other}") from error


def await_ready(place: BatchPlace, limit_s: float = READY_DEADLINE_S) -> None:
    """Return once rank 0 has written all. Raises LeadError past the deadline."""
    ends = time.monotonic() + limit_s
    # The last file that rank 0 writes.
    while not place.certificate.exists():
        if time.monotonic() > ends:
            raise LeadError(
                f"{place.certificate} was not seen here within {limit_s:.0f} s",
                "every node has to see that directory: name another with --dir",
            )
        time.sleep(_LOOK_S)


def _make_lead(
    place: BatchPlace, r: Mapping[str, Any], nodes: Sequence[Node], rundir: Path
) -> Mapping[str, str]:
    """Write all files of the lead; return what its broker's environment needs."""
    tables = read_toml(place.given)
    settings = parse(tables, str(place.given))
    expiration = float(r["execution"].get("expiration", 0.0))
    left_s = expiration - time.time() if expiration else None
    found = batch_tables(tables, settings, left_s)
    write_whole(place.settings, tomli_w.dumps(found))
    wish = place.wish()
    plan = make_plan(wish, nodes, settings, _port(wish.port, settings))
    choice = Choice(intake=settings.intake, local_queue="batch")
    extra = msgspec.structs.replace(
        install_intake(place.path, choice),
        own=tuple(node.children for node in nodes),
        run=rundir,
    )
    write_lead(place.path, plan, extra=extra)
    return {
        # What the user set himself counts too.
        name: ":".join(filter(None, (path, os.environ.get(name))))
        for name, path in extra.environment.items()
    }


def _port(wished: int, settings: Settings) -> int:
    """Return the port to listen at: the one that is set, or one that is free."""
    port = wished or settings.lead.port
    if port:
        return port
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
