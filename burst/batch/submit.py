# SPDX-License-Identifier: MIT
"""Submits the lead: one `flux batch` whose tasks start the brokers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

import msgspec

from burst.batch.batch_plan import LeadRequest
from burst.batch.flux_command import run_flux
from burst.batch.lead_directory import BatchJob, LeadDirectory
from burst.errors import ConfigError, LeadError
from burst.flux.bindings import find_program
from burst.kits.own_command import own_command

_PATH = "FLUX_CLI_PLUGINPATH"
# What flux batch says if neither the options nor the script's directives have -N. Slots
# mean rank slots here.
_NO_NODES = "Number of slots to allocate must be specified"


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """What to submit."""

    request: LeadRequest
    settings: bytes
    """Content of burst.toml."""
    nodes: int | None
    """Number of own nodes; None: from the script's directives (RFC 36)."""
    words: tuple[str, ...]
    """Further options of flux batch, the script, and its arguments."""


class FluxBatchResult(msgspec.Struct, frozen=True):
    """Output and exit status of flux batch."""

    stdout: str
    stderr: str
    status: int


def find_flux() -> str:
    """Return the path of `flux`. Raises ConfigError if there is none."""
    flux = find_program()
    if not flux:
        raise ConfigError(
            "there is no flux on PATH", "install flux-core, or add its directory"
        )
    return flux


def check_parent(flux: str, nodes: int | None) -> None:
    """Raise BurstError unless there is an instance that could ever have the nodes."""
    if nodes is not None and nodes < 1:
        raise ConfigError(f"-N{nodes}: a lead has at least one own node", "use -N1")
    words = ("resource", "list", "--states=all", "--no-header", "-o{nnodes}")
    try:
        most = int(run_flux(flux, *words).split()[0])
    except LeadError as error:
        raise LeadError(
            f"there is no Flux instance to submit to: {error.what}",
            "run this where `flux resource list` works, or set FLUX_URI",
        ) from error
    if nodes is not None and nodes > most:
        raise ConfigError(
            f"-N{nodes}: this instance has {most} nodes",
            f"ask for at most -N{most} of its own; --slots says how many more may join",
        )


def submit(
    base: Path, submission: Submission, *, dry_run: bool = False
) -> FluxBatchResult:
    """Submit the job and return the output of flux batch.

    With `dry_run`, flux batch prints the jobspec, and nothing is written. Raises
    BurstError if there is no instance, or the directory cannot be written.
    """
    request = submission.request
    check_parent(request.flux, submission.nodes)
    directory = LeadDirectory.new(base)
    if dry_run:
        return _run_batch(directory, submission, "--dry-run")
    uri = run_flux(request.flux, "getattr", "local-uri").strip()
    directory.make(request, submission.settings)
    try:
        said = _run_batch(directory, submission)
    except BaseException:
        directory.remove()
        raise
    if said.status:
        directory.remove()
    else:
        directory.set_job(BatchJob(said.stdout.split()[0], uri))
    return said


def _run_batch(
    directory: LeadDirectory, submission: Submission, *options: str
) -> FluxBatchResult:
    nodes = () if submission.nodes is None else (f"-N{submission.nodes}",)
    command = (submission.request.flux, "batch", *nodes, *options, *submission.words)
    with as_file(files("burst") / "flux_setup" / "files" / "batch") as plugins:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=_environment(os.environ, plugins, directory),
            check=False,
        )
    told = done.stderr
    if _NO_NODES in told:
        told += "give -N, the number of own nodes\n"
    return FluxBatchResult(done.stdout, told, done.returncode)


def _environment(
    ours: Mapping[str, str], plugins: Path, directory: LeadDirectory
) -> dict[str, str]:
    """Return our environment, with the variables for flux batch and for our plugin."""
    path = ours.get(_PATH, "")
    command = own_command("lead", "batch-node", str(directory.path))
    told = {"command": command, "path": path}
    both = f"{plugins}:{path}" if path else str(plugins)
    return {**ours, _PATH: both, "BURST_LEAD_BATCH": json.dumps(told)}
